//! Another process swaps a directory and a file with links that lead outside, as fast as it can, while every
//! operation runs. Not one byte outside is read or changed.
//!
//! Runs for a moment by default; `CROFT_RACE_SECONDS=10` for each operation is the full measure.

#[path = "../../examples/race_swap.rs"]
#[allow(dead_code)]
mod race_swap;

use crate::support::{BOTH, Ground, call, put};
use croft::tree::{DiskTree, EntryList, Folder, Tree, WalkStart};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECRET: &str = "OUTSIDE-SECRET";

struct Attacker(Child);

impl Attacker {
    fn start(ground: &Ground) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["race::attack", "--exact", "--nocapture"])
            .env("CROFT_TEST_SWAP", &ground.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Until it is at work: `d` has been seen as a link.
        let patience = Instant::now();
        while !ground.root.join("d").is_symlink() {
            assert!(
                patience.elapsed() < Duration::from_secs(30),
                "the attacker does not come"
            );
            std::thread::yield_now();
        }
        Self(child)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn attack() {
    let Ok(dir) = std::env::var("CROFT_TEST_SWAP") else {
        return;
    };
    race_swap::swap_until_eof(&[&dir, "d", "l", "s.sh", "lf", "a", "b"].map(|name| name.to_string()));
}

/// `d` and `s.sh` are inside, `l` and `lf` lead out; they change places. `a` and `b` are both inside.
fn battlefield(ground: Ground) -> Ground {
    ground
        .file("d/f.txt", "IN")
        .file("d/sub/g.txt", "IN")
        .file("s.sh", "IN")
        .file("a/x", "IN")
        .file("b/x", "IN")
        .file("top.txt", "T")
        .file("movable", "IN")
        .link("l", "${OUT}")
        .link("lf", "${OUT}/f.txt");
    for path in ["f.txt", "sub/g.txt", "only-outside.txt"] {
        put(&ground.outside.join(path), SECRET.as_bytes());
    }
    std::fs::create_dir(ground.outside.join("empty")).unwrap();
    ground
}

/// Names, modes and bytes.
fn outside(ground: &Ground) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![ground.outside.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.strip_prefix(&ground.outside).unwrap().display().to_string();
            let mode = std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap());
            if path.is_dir() {
                found.push((shown, mode, Vec::new()));
                open.push(path);
            } else {
                found.push((shown, mode, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn duration() -> Duration {
    let seconds = std::env::var("CROFT_RACE_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(0.2))
}

/// Runs `attempt` against the attacker, for as long as asked, on both resolvers; it gives what it saw.
fn race(name: &str, reads: bool, attempt: impl Fn(&DiskTree) -> String) {
    for resolver in BOTH {
        // Reads on a real disk, where they may be answered from the cache; changes where flushing costs nothing.
        let ground = battlefield(if reads { Ground::on_disk() } else { Ground::new() });
        let before = outside(&ground);
        let tree = ground.tree(resolver);
        let attacker = Attacker::start(&ground);
        let (start, mut tries) = (Instant::now(), 0_u64);
        let mut answers = std::collections::BTreeSet::new();
        while start.elapsed() < duration() {
            let seen = attempt(&tree);
            assert!(
                !seen.contains(SECRET) && !seen.contains("only-outside"),
                "{name} {resolver:?}: {seen}"
            );
            tries += 1;
            if answers.len() < 100 {
                answers.insert(seen);
            }
        }
        drop(attacker);
        assert_eq!(
            outside(&ground),
            before,
            "{name} {resolver:?} changed something outside"
        );
        eprintln!(
            "{name} {resolver:?}: {tries} tries, {} different answers, nothing outside",
            answers.len()
        );
        // The attack took place: a reading operation saw more than one state of the tree. A loaded machine may
        // not let it in a moment.
        let long = duration() >= Duration::from_secs(1);
        assert!(
            answers.len() > 1 || !reads || !long,
            "{name} {resolver:?}: {answers:?}"
        );
    }
}

fn everything(folder: &dyn Folder, seen: &mut String, buffer: &mut Vec<u8>) {
    let mut entries = EntryList::default();
    if folder.entries(&mut entries).is_err() {
        return;
    }
    for (name, _) in entries.iter() {
        seen.push_str(&String::from_utf8_lossy(name));
        if let Ok(below) = folder.open_folder(name) {
            everything(below.as_ref(), seen, buffer);
        } else if folder.read_file(name, 100, buffer).is_ok() {
            seen.push_str(&String::from_utf8_lossy(buffer));
        }
    }
}

#[test]
fn reads_stay_inside() {
    race("read", true, |tree| {
        ["d/f.txt", "s.sh", "l/f.txt", "lf"]
            .map(|path| format!("{:?}", call(tree, "read", path)))
            .concat()
    });
    race("read_now", true, |tree| {
        if tree.stat_now(".").is_none() {
            // The walk alone never answers at once.
            return format!("{:?}", Instant::now());
        }
        ["d/f.txt", "s.sh", "l/f.txt", "lf"]
            .into_iter()
            .filter_map(|path| tree.read_now(path, 100)?.ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    });
    race("open_file", true, |tree| {
        let mut buffer = [0; 64];
        let file = tree
            .open_file("d/f.txt")
            .and_then(|file| file.read_at(0, &mut buffer));
        String::from_utf8_lossy(&buffer[..file.unwrap_or(0)]).into_owned()
    });
}

#[test]
fn listings_and_walks_stay_inside() {
    race("list", true, |tree| {
        ["d", "l", "d/sub"]
            .map(|path| format!("{:?}", tree.read_dir(path, true)))
            .concat()
    });
    race("stat", false, |tree| {
        // Both inside files are two bytes long, the outside ones are not.
        let stat = tree
            .stat("d/f.txt")
            .ok()
            .flatten()
            .or_else(|| tree.stat_now("s.sh")?.ok()?);
        match stat {
            Some(stat)
                if stat.size == SECRET.len() as u64 && stat.file_type == croft::tree::FileType::File =>
            {
                SECRET.to_owned()
            }
            _ => String::new(),
        }
    });
    race("walk", true, |tree| {
        let (mut seen, mut buffer) = (String::new(), Vec::new());
        for start in ["d", "l", ".", "d/sub"] {
            match tree.open_walk(start) {
                Ok(WalkStart::Folder { folder, above, .. }) => {
                    everything(folder.as_ref(), &mut seen, &mut buffer);
                    for (_, folder) in &above {
                        everything(folder.as_ref(), &mut seen, &mut buffer);
                    }
                }
                Ok(WalkStart::File { parent, name, .. }) => {
                    let _ = parent.read_file(&name, 100, &mut buffer);
                    seen.push_str(&String::from_utf8_lossy(&buffer));
                }
                Err(_) => {}
            }
        }
        seen
    });
}

#[test]
fn changes_stay_inside() {
    race("write", false, |tree| {
        for path in ["d/f.txt", "d/new.txt", "d/x/y.txt", "s.sh", "lf"] {
            let _ = call(tree, "write", path);
        }
        let _ = call(tree, "create", "d/sub/new.txt");
        String::new()
    });
    race("update", false, |tree| {
        ["d/f.txt", "s.sh"]
            .map(|path| {
                let mut seen = String::new();
                let _ = tree.update(path, &Default::default(), &mut |old| {
                    seen = String::from_utf8_lossy(old).into_owned();
                    Ok(Some(b"IN".to_vec()))
                });
                seen
            })
            .concat()
    });
    race("mkdir", false, |tree| {
        let _ = (call(tree, "mkdir", "d/m/n"), call(tree, "mkdir", "d/o"));
        String::new()
    });
    race("remove", false, |tree| {
        // Something to remove again, by way of the tree: by the host's path it might be put outside.
        let _ = (call(tree, "write", "d/f.txt"), call(tree, "write", "d/sub/g.txt"));
        for path in ["d/f.txt", "d/only-outside.txt", "d/sub/g.txt", "d/empty"] {
            let _ = call(tree, "remove", path);
        }
        let _ = call(tree, "remove_all", "d/sub");
        String::new()
    });
    race("rename", false, |tree| {
        let _ = tree.rename("movable", "d/moved", true);
        let _ = tree.rename("d/moved", "movable", true);
        let _ = tree.rename("d/only-outside.txt", "stolen", true);
        let _ = tree.rename("d/f.txt", "d/f2.txt", true);
        match tree.read("stolen", 100) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        }
    });
}

#[test]
fn a_working_directory_stays_inside() {
    race("open_directory", true, |tree| {
        let Ok(dir) = tree.open_directory("d") else {
            return String::new();
        };
        match rustix::fs::statat(&dir, "only-outside.txt", rustix::fs::AtFlags::empty()) {
            Ok(_) => SECRET.to_owned(),
            Err(_) => "inside".to_owned(),
        }
    });
}

#[test]
fn a_storm_of_renames_is_not_shown_to_the_caller() {
    for resolver in BOTH {
        let ground = battlefield(Ground::new());
        let tree = ground.tree(resolver);
        let attacker = Attacker::start(&ground);
        let start = Instant::now();
        while start.elapsed() < duration() {
            for path in ["a/../top.txt", "b/../top.txt", "a/x", "top.txt"] {
                tree.read(path, 10).unwrap();
            }
        }
        drop(attacker);
    }
}
