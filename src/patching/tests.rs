use super::*;
use crate::tree::MemoryTree;

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let tree = MemoryTree::default();
    for (path, content) in files {
        tree.insert(path, content.as_bytes().to_vec()).unwrap();
    }
    tree
}

fn contents(tree: &MemoryTree) -> Vec<(String, String)> {
    let files = tree.snapshot().into_iter();
    files
        .map(|(path, file)| (path, String::from_utf8_lossy(file.content()).into_owned()))
        .collect()
}

fn options() -> PatchOptions {
    PatchOptions {
        max_bytes: 1 << 20,
        ..PatchOptions::default()
    }
}

const ALL_KINDS: &str = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n\
    diff --git a/old b/d/new\nsimilarity index 50%\nrename from old\nrename to d/new\n--- a/old\n+++ b/d/new\n@@ -1 +1 @@\n-o\n+O\n\
    diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n\
    diff --git a/x/y/made b/x/y/made\nnew file mode 100755\n--- /dev/null\n+++ b/x/y/made\n@@ -0,0 +1 @@\n+m\n";

#[test]
fn a_patch_changes_renames_removes_and_creates() {
    let tree = tree(&[("f", "a\n"), ("old", "o\n"), ("gone", "g\n")]);
    let done = apply_patch(&tree, ALL_KINDS, &options()).unwrap();
    assert_eq!(done.files.len(), 4);
    let expected = [("d/new", "O\n"), ("f", "A\n"), ("x/y/made", "m\n")];
    assert_eq!(
        contents(&tree),
        expected.map(|(p, c)| (p.to_owned(), c.to_owned()))
    );
    assert_eq!(tree.stat("x/y/made").unwrap().unwrap().mode & 0o111, 0o111);
}

/// The path whose step fails, as on a full disk.
struct FailsAt<'t>(&'t MemoryTree, &'static str);

#[test]
fn whatever_step_fails_the_files_are_as_before() {
    for failing in ["f", "d/new", "gone", "x/y/made"] {
        let tree = tree(&[("f", "a\n"), ("old", "o\n"), ("gone", "g\n")]);
        let before = contents(&tree);
        let error = run_with_failure(&FailsAt(&tree, failing)).unwrap_err();
        assert_eq!(error.code, ErrorCode::NoSpace, "{failing}");
        assert_eq!(contents(&tree), before, "{failing}: {}", error.message);
        assert!(tree.stat("x").unwrap().is_none(), "{failing}: a directory stayed");
        assert!(error.message.contains("No file was changed"), "{}", error.message);
    }
}

/// The steps of the plan, of which the one on the named path fails before it does anything.
fn run_with_failure(fails: &FailsAt<'_>) -> Result<()> {
    let FailsAt(tree, failing) = *fails;
    let plan = plan_patch(ALL_KINDS, 0, &mut |path| Ok(tree.read(path, 1 << 20).ok())).unwrap();
    let options = options();
    let mut run = Run {
        tree,
        options: &options,
        journal: Journal::default(),
        hashes: Vec::new(),
    };
    for operation in plan.operations {
        let path = match &operation {
            Operation::Write { path, .. } | Operation::Remove { path, .. } => path,
            Operation::Rename { to, .. } => to,
        };
        let step = if path == failing {
            Err(Error::new(ErrorCode::NoSpace, "the disk is full"))
        } else {
            run.step(operation)
        };
        if let Err(error) = step {
            return Err(run.journal.roll_back(tree, error));
        }
    }
    Ok(())
}

#[test]
fn a_file_that_is_not_what_the_caller_saw_is_stale_and_one_that_is_passes() {
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n";
    let tree = tree(&[("f", "a\n")]);
    let seen = |text: &str| PatchOptions {
        known: [("f".to_owned(), content_hash(text.as_bytes()))].into(),
        ..options()
    };
    let refused = apply_patch(&tree, patch, &seen("other\n")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Stale);
    let done = apply_patch(&tree, patch, &seen("a\n")).unwrap();
    assert_eq!(done.hashes, vec![("f".to_owned(), Some(content_hash(b"A\n")))]);
}

#[test]
fn undoing_leaves_what_another_writer_put_there_and_says_so() {
    let tree = tree(&[("f", "a\n")]);
    let mut journal = Journal::default();
    journal.replaced("f", b"a\n".to_vec(), b"A\n".to_vec());
    tree.insert("f", b"theirs\n".to_vec()).unwrap();
    let error = journal.roll_back(&tree, Error::new(ErrorCode::NoSpace, "the disk is full"));
    assert!(error.message.contains("except in \"f\""), "{}", error.message);
    assert_eq!(contents(&tree), vec![("f".to_owned(), "theirs\n".to_owned())]);
}
