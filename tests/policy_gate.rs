//! The gate of a tree on disk under attack: a link that is exchanged in a loop between an allowed and a denied file.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use croft::ErrorCode;
use croft::policy::{Policy, PolicyGate, PolicyOptions};
use croft::tree::{DiskOptions, DiskTree, GatedTree, Tree, WriteOptions};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn gated(root: &Path, denied: &[&str]) -> GatedTree {
    let options = PolicyOptions {
        root: root.to_string_lossy().into_owned(),
        denied_paths: Some(denied.iter().map(|text| (*text).to_owned()).collect()),
        ..PolicyOptions::default()
    };
    let policy = Arc::new(Policy::new(options, &|_| None).unwrap());
    let mut disk = DiskTree::open(&DiskOptions {
        root: root.to_owned(),
        ..DiskOptions::default()
    })
    .unwrap();
    disk.set_gate(Arc::new(PolicyGate::new(policy.clone(), None)));
    GatedTree::new(Arc::new(disk), Arc::new(PolicyGate::new(policy, None)))
}

/// Exchanges two names as fast as it can until it is told to stop.
fn swapping(
    a: std::path::PathBuf,
    b: std::path::PathBuf,
    stop: Arc<AtomicBool>,
) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut swaps = 0;
        while !stop.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(
                rustix::fs::CWD,
                &a,
                rustix::fs::CWD,
                &b,
                rustix::fs::RenameFlags::EXCHANGE,
            )
            .unwrap();
            swaps += 1;
        }
        swaps
    })
}

#[test]
fn no_byte_of_a_denied_file_is_read_or_written_through_a_link_that_is_swapped() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (path, content) in [("open/f", "open"), ("secrets/f", "SECRET")] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), content).unwrap();
    }
    symlink("open", root.join("link")).unwrap();
    symlink("secrets", root.join("other")).unwrap();
    let tree = gated(&root, &["secrets"]);
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = swapping(root.join("link"), root.join("other"), stop.clone());
    let (mut read, mut refused) = (0, 0);
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end
        || (read == 0 || refused == 0) && Instant::now() < end + Duration::from_secs(20)
    {
        match tree.read("link/f", 100) {
            Ok(content) => {
                assert_ne!(content, b"SECRET");
                read += 1;
            }
            Err(error) => {
                assert_eq!(error.code, ErrorCode::PolicyDenied, "{}", error.message);
                refused += 1;
            }
        }
        let now = tree.read_now("link/f", 100).and_then(Result::ok);
        assert!(now.is_none_or(|content| content != b"SECRET"));
        let _ = tree.write("link/f", b"open", &WriteOptions::default());
        if let Ok(entries) = tree.read_dir("link", false) {
            assert!(entries.len() <= 1);
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 0);
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    assert_eq!(fs::read(root.join("secrets/f")).unwrap(), b"SECRET");
}

#[test]
fn what_leads_nowhere_denied_is_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/f"), "x").unwrap();
    symlink("a/b", root.join("link")).unwrap();
    symlink(root.join("a"), root.join("absolute")).unwrap();
    symlink("/etc", root.join("outside")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let gated = gated(&root, &["secrets"]);
    let plain = DiskTree::open(&DiskOptions {
        root: root.clone(),
        ..DiskOptions::default()
    })
    .unwrap();
    for path in [
        "a/b/f",
        "link/f",
        "absolute/b/f",
        "outside/passwd",
        "dangling",
        "a",
        "a/b/f/",
        "../x",
        "link/../b/f",
    ] {
        let (with, without) = (gated.read(path, 100), plain.read(path, 100));
        assert_eq!(
            with.map_err(|error| error.code),
            without.map_err(|error| error.code),
            "{path}"
        );
        let stat = |tree: &dyn Tree| {
            tree.stat(path)
                .map(|stat| stat.map(|stat| stat.file_type))
                .map_err(|error| error.code)
        };
        assert_eq!(stat(&gated), stat(&plain), "{path}");
    }
    // Outside by absolute path is what the policy decides.
    let error = gated.read("/etc/passwd", 100).unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyDenied);
    for (path, resolved) in [
        ("link/f", "a/b/f"),
        ("absolute", "a"),
        ("a/./b", "a/b"),
        ("link/../b", "a/b"),
        (".", "."),
    ] {
        assert_eq!(gated.resolved(path).unwrap(), resolved, "{path}");
    }
}
