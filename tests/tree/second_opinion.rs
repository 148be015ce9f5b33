//! Random trees of links and random paths, put to both resolvers, to cap-std and to the kernel itself.

use crate::support::{Answer, BOTH, Ground, OPERATIONS, call, put};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use croft::tree::Tree;
use proptest::prelude::*;
use std::os::unix::fs::symlink;

#[derive(Clone, Debug)]
enum Made {
    Directory(String),
    File(String),
    Link(String, String),
}

/// Few names, so that paths meet what was made.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d"])
}

fn place() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![8 => name(), 3 => Just(".."), 1 => Just("."), 1 => Just("")];
    (prop::collection::vec(part, 1..7), prop::bool::weighted(0.15))
        .prop_map(|(parts, slash)| parts.join("/") + if slash { "/" } else { "" })
}

fn link_target() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => path(),
        2 => path().prop_map(|path| format!("${{ROOT}}/{path}")),
        1 => path().prop_map(|path| format!("${{OUT}}/{path}")),
        1 => Just("../out/a".to_owned()),
        1 => Just("../ws/a".to_owned()),
        1 => Just("/".to_owned()),
    ]
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![
        2 => place().prop_map(Made::Directory),
        3 => place().prop_map(Made::File),
        4 => (place(), link_target()).prop_map(|(path, target)| Made::Link(path, target)),
    ]
}

/// What cannot be made (a file is in the way, a link leads out) is left out: the oracle makes it, confined.
fn build(ground: &Ground, made: &[Made]) {
    put(&ground.outside.join("a"), b"OUT");
    put(&ground.outside.join("b/c"), b"OUT");
    let root = Dir::open_ambient_dir(&ground.root, ambient_authority()).unwrap();
    for made in made {
        let (Made::Directory(path) | Made::File(path) | Made::Link(path, _)) = made;
        if let Some((above, _)) = path.rsplit_once('/') {
            let _ = root.create_dir_all(above);
        }
        match made {
            Made::Directory(path) => drop(root.create_dir_all(path)),
            Made::File(path) => {
                if root.symlink_metadata(path).is_err() {
                    let _ = root.write(path, format!("IN {path}"));
                }
            }
            Made::Link(path, target) => {
                let target = target
                    .replace("${ROOT}", ground.root.to_str().unwrap())
                    .replace("${OUT}", ground.outside.to_str().unwrap());
                let Some((above, name)) = path.rsplit_once('/').or(Some((".", path))) else {
                    continue;
                };
                // Only where the parent really is inside.
                let above = ground.root.join(above).canonicalize();
                if let Ok(above) = above
                    && above.starts_with(&ground.root)
                {
                    let _ = symlink(&target, above.join(name));
                }
            }
        }
    }
}

/// A link through `..` in the storm of renames that the race tests next door make: told, not walked.
fn kept_moving<T>(result: &croft::Result<T>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.code == croft::ErrorCode::Io)
}

fn outside_is_whole(ground: &Ground) {
    let mut names: Vec<_> = std::fs::read_dir(&ground.outside)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(std::fs::read(ground.outside.join("a")).unwrap(), b"OUT");
    assert_eq!(std::fs::read(ground.outside.join("b/c")).unwrap(), b"OUT");
    assert_eq!(std::fs::read_dir(ground.outside.join("b")).unwrap().count(), 1);
}

proptest! {
    #[test]
    fn all_agree_on_what_is_read(made in prop::collection::vec(made(), 1..14), paths in prop::collection::vec(path(), 12)) {
        let ground = Ground::new();
        build(&ground, &made);
        let oracle = Dir::open_ambient_dir(&ground.root, ambient_authority()).unwrap();
        let [kernel, walk] = BOTH.map(|resolver| ground.tree(resolver));
        for path in &paths {
            let ours = kernel.read(path, 1000);
            if kept_moving(&ours) {
                continue;
            }
            prop_assert_eq!(&ours, &walk.read(path, 1000), "{:?}", path);
            let stat = kernel.stat(path);
            prop_assert!(kept_moving(&stat) || stat == walk.stat(path), "{:?}: {:?}", path, stat);
            let listed = kernel.read_dir(path, false);
            prop_assert!(kept_moving(&listed) || listed == walk.read_dir(path, false), "{:?}: {:?}", path, listed);
            if let Some(quick) = kernel.read_now(path, 1000) {
                prop_assert_eq!(&quick, &ours);
            }
            if let Some(quick) = kernel.stat_now(path) {
                prop_assert!(kept_moving(&stat) || quick == stat, "{:?}: {:?}", path, quick);
            }
            if let Ok(bytes) = &ours {
                // The kernel's meaning of the same path, and never an outside file.
                let plain = std::fs::read(ground.root.join(path)).ok();
                prop_assert_eq!(Some(bytes), plain.as_ref());
                prop_assert!(bytes.starts_with(b"IN "), "{:?}", path);
            }
            if let Ok(theirs) = oracle.read(path) {
                // What climbs lexically is refused before links are looked at.
                let climbs = ours.as_ref().is_err_and(|error| error.code == croft::ErrorCode::OutsideWorkspace);
                prop_assert!(climbs || ours.as_ref().ok() == Some(&theirs), "{:?}: {:?}", path, ours);
            }
        }
    }

    #[test]
    fn memory_is_a_twin(
        calls in prop::collection::vec((prop::sample::select(OPERATIONS.to_vec()), path()), 30),
        moves in prop::collection::vec((path(), path(), any::<bool>()), 30),
    ) {
        let ground = Ground::new();
        let disk = ground.tree(BOTH[0]);
        let memory = croft::tree::MemoryTree::default();
        for ((operation, path), (from, to, overwrite)) in calls.iter().zip(&moves) {
            let answers = [&disk as &dyn Tree, &memory].map(|tree| {
                let _ = call(tree, "write", "movable");
                (call(tree, operation, path), Answer::from(tree.rename(from, to, *overwrite).map(|()| "")))
            });
            prop_assert_eq!(&answers[0], &answers[1], "{} {:?}, {:?} -> {:?} {}", operation, path, from, to, overwrite);
        }
        let files = memory.snapshot();
        for (path, file) in &files {
            prop_assert_eq!(disk.read(path, 1000), Ok(file.content().to_vec()));
        }
    }

    #[test]
    fn no_sequence_of_changes_gets_out(
        made in prop::collection::vec(made(), 1..14),
        calls in prop::collection::vec((prop::sample::select(OPERATIONS.to_vec()), path()), 12),
    ) {
        let grounds = BOTH.map(|_| Ground::new());
        for ground in &grounds {
            build(ground, &made);
            ground.file("movable", "IN movable");
        }
        let [kernel, walk] = [grounds[0].tree(BOTH[0]), grounds[1].tree(BOTH[1])];
        for (operation, path) in &calls {
            let answer = call(&kernel, operation, path);
            if answer == Answer::Refused(croft::ErrorCode::Io) {
                break;
            }
            prop_assert_eq!(&answer, &call(&walk, operation, path), "{} {:?}", operation, path);
            if let ("write" | "create", Answer::Ok(_)) = (*operation, &answer) {
                let seen = std::fs::read(grounds[0].root.join(path)).ok();
                prop_assert_eq!(seen.as_deref(), Some(&b"NEW"[..]));
            }
            grounds.iter().for_each(outside_is_whole);
        }
    }
}
