use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// (path, content)
type Listed = [(&'static str, &'static str)];
type Files = BTreeMap<String, Vec<u8>>;

fn files(list: &[(&str, &str)]) -> Files {
    list.iter()
        .map(|(path, text)| (path.to_string(), text.as_bytes().to_vec()))
        .collect()
}

/// Plans and carries out, as a tree would.
fn apply(before: &Files, patch: &str, fuzz: u8) -> Result<(Files, Plan)> {
    let plan = plan_patch(patch, fuzz, &mut |path| Ok(before.get(path).cloned()))?;
    let mut after = before.clone();
    for operation in &plan.operations {
        match operation.clone() {
            Operation::Write {
                path,
                before,
                content,
                ..
            } => {
                assert_eq!(after.insert(path, content), before);
            }
            Operation::Rename {
                from,
                to,
                before,
                content,
                ..
            } => {
                assert_eq!(after.remove(&from).as_ref(), Some(&before));
                assert_eq!(after.insert(to, content.unwrap_or(before)), None);
            }
            Operation::Remove { path, before } => assert_eq!(after.remove(&path), Some(before)),
        }
    }
    Ok((after, plan))
}

fn patched(before: &[(&str, &str)], patch: &str) -> Files {
    apply(&files(before), patch, 0)
        .unwrap_or_else(|error| panic!("{error}\n{patch}"))
        .0
}

fn refused(before: &[(&str, &str)], patch: &str) -> Error {
    apply(&files(before), patch, 0)
        .map(|(after, _)| panic!("applied: {after:?}\n{patch}"))
        .unwrap_err()
}

/// A patch of the file `f`.
fn on_f(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

#[test]
fn hunks_change_what_they_name_and_nothing_else() {
    let abc = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    let table: &[(&str, &str, &str)] = &[
        ("a\nb\nc\n", abc, "a\nB\nc\n"),
        ("a\nb\nc\na\nb\nc\n", abc, "a\nB\nc\na\nb\nc\n"),
        (
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n",
            "a\nB",
        ),
        (
            "a\nb\n",
            "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n",
            "a\nb",
        ),
        (
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
            "a\nb\n",
        ),
        (
            "a\r\nb\r\nc\r\n",
            "@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\r\n",
            "a\r\nB\r\nc\r\n",
        ),
        ("a\n\nc\n", "@@ -1,3 +1,3 @@\n a\n\n-c\n+C\n", "a\n\nC\n"),
        ("-- x\ny\n", "@@ -1,2 +1,1 @@\n--- x\n y\n", "y\n"),
        (
            "a\nb\nc\nd\ne\nf\n",
            "@@ -5,2 +5,2 @@\n e\n-f\n+F\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
            "A\nb\nc\nd\ne\nF\n",
        ),
        ("", "@@ -0,0 +1,2 @@\n+x\n+y\n", "x\ny\n"),
        ("x\ny\n", "@@ -1,2 +0,0 @@\n-x\n-y\n", ""),
        (
            "a\x0cz\nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\x0cz\n-b\n+B\n c\n",
            "a\x0cz\nB\nc\n",
        ),
        (
            "a\nb\nc\n",
            "@@ -1,3 +1,3 @@ fn x() @@ y\n a\n-b\n+B\n c\n",
            "a\nB\nc\n",
        ),
        // The other line ending throughout: the file's own wins.
        ("a\r\nb\r\nc\r\n", abc, "a\r\nB\r\nc\r\n"),
        (
            "a\nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\r\n",
            "a\nB\nc\n",
        ),
        // Each new line takes the ending of the one it follows or replaces.
        ("a\r\nb\nc\r\n", abc, "a\r\nB\nc\r\n"),
    ];
    for (before, hunks, after) in table {
        assert_eq!(
            patched(&[("f", before)], &on_f(hunks)),
            files(&[("f", after)]),
            "{before:?} {hunks:?}"
        );
    }
}

#[test]
fn a_hunk_that_moved_is_applied_where_it_alone_fits_and_the_offset_is_reported() {
    let hunk = "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n";
    let (after, plan) = apply(&files(&[("f", "x\ny\nz\na\nb\nc\n")]), &on_f(hunk), 0).unwrap();
    assert_eq!(after, files(&[("f", "x\ny\nz\na\nB\nc\n")]));
    assert_eq!(
        plan.files[0].hunks,
        [PlacedHunk {
            hunk: 1,
            line: 4,
            offset: 2,
            fuzz: 0
        }]
    );
    let error = refused(&[("f", "x\ny\nz\na\nb\nc\na\nb\nc\n")], &on_f(hunk));
    assert_eq!(error.code, ErrorCode::PatchConflict);
    assert!(
        error.message.contains("at several places (lines 4, 7)"),
        "{error}"
    );
    // Behind a hunk that moved, the named place is no longer believed when there are others.
    let two = format!("{hunk}@@ -8,3 +8,3 @@\n d\n-e\n+E\n d\n");
    let error = refused(
        &[("f", "x\ny\nz\na\nb\nc\n1\nd\ne\nd\n2\nd\ne\nd\n")],
        &on_f(&two),
    );
    assert!(error.message.contains("hunk 2 of 2"), "{error}");
}

#[test]
fn hunks_that_git_would_refuse_are_refused_with_what_was_expected_and_found() {
    let table: &[(&str, &str, &str)] = &[
        (
            "a1\nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
            "Expected:\n a\n-b\n c\nFound:\n a1\n b\n c",
        ),
        (
            "a \nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
            "(white space at the end)",
        ),
        (
            "x\ny\na\nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
            "Its lines are at line 3; a hunk that names line 1",
        ),
        (
            "a\nb\nc\n",
            "@@ -2 +2 @@\n-b\n+B\n",
            "Its lines are at line 2; a hunk without context after",
        ),
        ("a\nb\n", "@@ -1,0 +2 @@\n+X\n", "has no context"),
        (
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
            "No newline at end of file",
        ),
        (
            "a\nb\nc\nd\ne\nf\ng\nh\n",
            "@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -7,2 +7,2 @@\n g\n-ZZ\n+H\n",
            "hunk 2 of 2 (line 7 of the patch) does not fit \"f\" at line 7",
        ),
        (
            "a\nB\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
            "is in \"f\" already",
        ),
        ("", "@@ -1 +1 @@\n-a\n+b\n", "(nothing: the file ends before)"),
    ];
    for (before, hunks, words) in table {
        let error = refused(&[("f", before)], &on_f(hunks));
        assert_eq!(error.code, ErrorCode::PatchConflict, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn a_malformed_patch_is_refused_with_its_line() {
    let table = [
        ("", "nothing to apply"),
        ("just text\n", "nothing to apply"),
        ("--- a/f\n+++ b/f\n", "followed by no hunk"),
        ("@@ -1 +1 @@\n-a\n+b\n", "has no file header"),
        ("--- a/f\n+++ b/f\n@@\n a\n-b\n+B\n c\n", "has no line numbers"),
        ("--- a/f\n+++ b/f\n@@ -x +1 @@\n-a\n+b\n", "malformed"),
        (
            "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n",
            "says 9 old and 9 new lines, but has 3 and 3",
        ),
        (
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n c\n",
            "says 2 old and 2 new lines, but has 3 and 3",
        ),
        ("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n a\n", "changes nothing"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "names two files"),
        (
            "diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n",
            "is binary",
        ),
        ("diff --git a/f b/f\nindex 1..2 100644\n", "followed by no change"),
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../out\n\\ No newline at end of file\n",
            "symbolic link",
        ),
        (
            "diff --git a/l b/l\nindex 1..2 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n+b\n",
            "symbolic link",
        ),
        (
            "diff --git a/f b/f\nnew file mode 100644\n--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
            "contradicts",
        ),
        (
            "--- /dev/null\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n",
            "has lines of an old file",
        ),
        (
            "--- a/f\n+++ /dev/null\n@@ -1,2 +1 @@\n a\n-b\n",
            "leaves lines in it",
        ),
        (
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n+b\n c\n",
            "before other lines",
        ),
    ];
    for (patch, words) in table {
        let error = refused(&[("f", "a\nb\nc\n")], patch);
        assert_eq!(error.code, ErrorCode::PatchInvalid, "{patch}: {error}");
        assert!(error.message.contains(words), "{patch}: {error}");
    }
}

#[test]
fn files_are_created_deleted_renamed_and_copied() {
    let table: &[(&Listed, &str, &Listed)] = &[
        (
            &[],
            "--- /dev/null\n+++ b/d/e/f\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n",
            &[("d/e/f", "one\ntwo")],
        ),
        (&[], "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+one\n", &[("f", "one\n")]),
        (
            &[],
            "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n",
            &[("e", "")],
        ),
        (
            &[("f", "x\n")],
            "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            &[],
        ),
        (
            &[("e", "")],
            "diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0000000\n",
            &[],
        ),
        (
            &[("old", "a\n")],
            "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n",
            &[("new", "a\n")],
        ),
        (
            &[("old", "a\nb\n")],
            "diff --git a/old b/d/new\nsimilarity index 50%\nrename from old\nrename to d/new\n--- a/old\n+++ b/d/new\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
            &[("d/new", "a\nB\n")],
        ),
        (
            &[("f", "a\n")],
            "diff --git a/f b/g\ncopy from f\ncopy to g\n",
            &[("f", "a\n"), ("g", "a\n")],
        ),
        (
            &[("a", "1\n"), ("b", "2\n")],
            "diff --git a/a b/b\nrename from a\nrename to b\ndiff --git a/b b/a\nrename from b\nrename to a\n",
            &[("a", "2\n"), ("b", "1\n")],
        ),
        (
            &[("f", "a\n")],
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\n",
            &[("f", "c\n")],
        ),
        (
            &[("d", "a\n")],
            "--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n--- /dev/null\n+++ b/d/x\n@@ -0,0 +1 @@\n+b\n",
            &[("d/x", "b\n")],
        ),
        (
            &[("caf\u{e9}.txt", "caf\n")],
            "--- \"a/caf\\303\\251.txt\"\n+++ \"b/caf\\303\\251.txt\"\n@@ -1 +1 @@\n-caf\n+CAF\n",
            &[("caf\u{e9}.txt", "CAF\n")],
        ),
        (
            &[("f", "a\n")],
            "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n",
            &[("f", "b\n")],
        ),
        (
            &[("a/f", "a\n")],
            "--- a/f\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n",
            &[("a/f", "b\n")],
        ),
        (
            &[("f", "a\nb\nc\n")],
            "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n f | 2 +-\n\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n-- \n2.40.1\n\n",
            &[("f", "a\nB\nc\n")],
        ),
        (
            &[("f", "a\nb\nc\n")],
            "--- a/f\r\n+++ b/f\r\n@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+B\r\n c\r\n",
            &[("f", "a\nB\nc\n")],
        ),
        (
            &[("f", "a\nb\nc\n")],
            "```diff\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n```\n",
            &[("f", "a\nB\nc\n")],
        ),
    ];
    for (before, patch, after) in table {
        assert_eq!(patched(before, patch), files(after), "{patch}");
    }
}

#[test]
fn what_is_not_there_or_there_already_refuses_the_whole_patch() {
    let table: &[(&Listed, &str, ErrorCode, &str)] = &[
        (
            &[("f", "a\n"), ("g", "b\n")],
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-zzz\n+B\n",
            ErrorCode::PatchConflict,
            "\"g\"",
        ),
        (
            &[("f", "old\n")],
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n",
            ErrorCode::AlreadyExists,
            "\"f\"",
        ),
        (
            &[("old", "a\n"), ("new", "z\n")],
            "diff --git a/old b/new\nrename from old\nrename to new\n",
            ErrorCode::AlreadyExists,
            "\"new\"",
        ),
        (
            &[],
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n",
            ErrorCode::NotFound,
            "\"f\"",
        ),
        (
            &[("f", "a\nb\n")],
            "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            ErrorCode::PatchConflict,
            "\"f\"",
        ),
        (
            &[("f", "a\n")],
            "diff --git a/f b/f\ndeleted file mode 100644\n",
            ErrorCode::PatchConflict,
            "does not remove all",
        ),
        (
            &[("f", "a\n")],
            "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
            ErrorCode::NotFound,
            "\"f\"",
        ),
        (
            &[],
            "--- /dev/null\n+++ b/../out/pwn\n@@ -0,0 +1 @@\n+x\n",
            ErrorCode::OutsideWorkspace,
            "..",
        ),
        (
            &[],
            "--- /etc/hosts\n+++ /etc/hosts\n@@ -1 +1 @@\n-h\n+x\n",
            ErrorCode::OutsideWorkspace,
            "/etc/hosts",
        ),
        (
            &[("f", "a\n")],
            "diff --git a/f b/.git/hooks/x\nrename from f\nrename to .git/hooks/x\n",
            ErrorCode::ProtectedPath,
            ".git",
        ),
    ];
    for (before, patch, code, words) in table {
        let error = refused(before, patch);
        assert_eq!(error.code, *code, "{patch}: {error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn a_mode_is_part_of_the_plan() {
    let (_, plan) = apply(
        &files(&[("s", "x\n")]),
        "diff --git a/s b/s\nold mode 100644\nnew mode 100755\n",
        0,
    )
    .unwrap();
    assert_eq!(
        plan.operations,
        [Operation::Write {
            path: "s".into(),
            before: Some(b"x\n".to_vec()),
            content: b"x\n".to_vec(),
            executable: Some(true),
            mode_from: None
        }]
    );
    let patch = "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    let (_, plan) = apply(&files(&[]), patch, 0).unwrap();
    assert!(matches!(
        &plan.operations[..],
        [Operation::Write {
            executable: Some(true),
            ..
        }]
    ));
    let (_, plan) = apply(
        &files(&[("o", "x\n")]),
        "diff --git a/o b/n\nrename from o\nrename to n\n",
        0,
    )
    .unwrap();
    assert!(matches!(
        &plan.operations[..],
        [Operation::Rename { content: None, .. }]
    ));
}

#[test]
fn a_patch_that_multiplies_is_refused_before_it_fills_the_memory() {
    let copy = |n: usize| format!("diff --git a/f b/c{n}\ncopy from f\ncopy to c{n}\n");
    let before = Files::from([("f".to_owned(), vec![b'a'; 10 << 20])]);
    let patch: String = (0..1000).map(copy).collect();
    assert_eq!(apply(&before, &patch, 0).unwrap_err().code, ErrorCode::TooLarge);
    assert_eq!(apply(&before, &copy(1), 0).unwrap().0.len(), 2);
}

#[test]
fn fuzz_leaves_out_context_on_request_and_says_so() {
    let hunk = on_f("@@ -2,5 +2,5 @@\n a\n b\n-c\n+C\n d\n e\n");
    let before = files(&[("f", "x\nA\nb\nc\nd\nE\ny\n")]);
    assert_eq!(
        apply(&before, &hunk, 0).unwrap_err().code,
        ErrorCode::PatchConflict
    );
    let (after, plan) = apply(&before, &hunk, 1).unwrap();
    assert_eq!(after, files(&[("f", "x\nA\nb\nC\nd\nE\ny\n")]));
    assert_eq!(
        plan.files[0].hunks,
        [PlacedHunk {
            hunk: 1,
            line: 2,
            offset: 0,
            fuzz: 1
        }]
    );
    let worse = files(&[("f", "x\nA\nB\nc\nD\nE\ny\n")]);
    assert_eq!(
        apply(&worse, &hunk, 1).unwrap_err().code,
        ErrorCode::PatchConflict
    );
    assert_eq!(apply(&worse, &hunk, 2).unwrap().1.files[0].hunks[0].fuzz, 2);
    let twice = files(&[("f", "x\nA\nB\nc\nD\nc\n")]);
    let moved = on_f("@@ -3,5 +3,5 @@\n a\n b\n-c\n+C\n d\n e\n");
    assert_eq!(
        apply(&twice, &moved, 2).unwrap_err().code,
        ErrorCode::PatchConflict,
        "two places"
    );
    assert_eq!(
        apply(&before, &hunk, 3).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
    let first_line = on_f("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    let (after, _) = apply(&files(&[("f", "x\ny\na\nb\nc\n")]), &first_line, 1).unwrap();
    assert_eq!(after, files(&[("f", "x\ny\na\nB\nc\n")]));
}

#[test]
fn encodings_survive_and_other_bytes_are_refused_by_name() {
    let plan = |bytes: &[u8], patch: &str| -> Result<Vec<u8>> {
        let plan = plan_patch(patch, 0, &mut |_| Ok(Some(bytes.to_vec())))?;
        match &plan.operations[..] {
            [Operation::Write { content, .. }] => Ok(content.clone()),
            other => panic!("{other:?}"),
        }
    };
    let patch = on_f("@@ -1,2 +1,2 @@\n a\n-b\n+B\n");
    assert_eq!(
        plan(b"\xef\xbb\xbfa\nb\n", &patch).unwrap(),
        b"\xef\xbb\xbfa\nB\n"
    );
    let with_bom = on_f("@@ -1,2 +1,2 @@\n \u{feff}a\n-b\n+B\n");
    assert_eq!(
        plan(b"\xef\xbb\xbfa\nb\n", &with_bom).unwrap(),
        b"\xef\xbb\xbfa\nB\n"
    );
    let drops_bom = on_f("@@ -1,2 +1,2 @@\n-\u{feff}a\n+a\n b\n");
    assert_eq!(plan(b"\xef\xbb\xbfa\nb\n", &drops_bom).unwrap(), b"a\nb\n");
    assert_eq!(
        plan(b"\xff\xfea\0\n\0b\0\n\0", &patch).unwrap(),
        b"\xff\xfea\0\n\0B\0\n\0"
    );
    let error = plan(b"\xe9\nb\n", &on_f("@@ -1,2 +1,2 @@\n \u{e9}\n-b\n+B\n")).unwrap_err();
    assert_eq!(error.code, ErrorCode::UnsupportedEncoding);
}

proptest! {
    #[test]
    fn no_patch_breaks_the_reader_and_no_file_is_touched_that_it_does_not_name(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "diff --git a/f b/f\n", "--- a/f\n", "+++ b/f\n", "--- /dev/null\n", "+++ b/g\n", "+++ /dev/null\n",
                "@@ -1,2 +1,2 @@\n", "@@ -0,0 +1 @@\n", "@@ -3 +2,0 @@\n", "@@ -1 +1,2 @@\n", "@@\n", "@@ a\n", " a\n", "-b\n",
                "+B\n", "+\u{e9}\n", "\n", "\\ No newline at end of file\n", "rename from f\n", "rename to g\n", "new file mode 100644\n",
                "deleted file mode 100644\n", "old mode 100644\n", "new mode 100755\n", "*** Begin Patch\n", "*** End Patch\n",
                "*** Update File: f\n", "*** Add File: g\n", "*** Delete File: f\n", "*** Move to: g\n", "*** End of File\n",
                "\"a/\\303\\251\"\n", "-- \n", " \r\n", "-b\r\n",
            ]),
            0..14,
        ),
        before in prop::sample::select(vec!["", "a\nb\n", "a\nb\nc\na\nb\n", "a\r\nb\r\n", "b"]),
        fuzz in 0u8..3,
    ) {
        let before = files(&[("f", before), ("other", "o\n")]);
        if let Ok((after, _)) = apply(&before, &pieces.concat(), fuzz) {
            prop_assert_eq!(after.get("other"), before.get("other"));
        }
    }
}

mod v4a {
    use super::*;

    fn envelope(body: &str) -> String {
        format!("*** Begin Patch\n{body}*** End Patch\n")
    }

    fn update(body: &str) -> String {
        envelope(&format!("*** Update File: f\n{body}"))
    }

    #[test]
    fn sections_add_delete_update_and_move() {
        let table: &[(&Listed, &str, &Listed)] = &[
            (&[], "*** Add File: n/f\n+one\n+two\n", &[("n/f", "one\ntwo\n")]),
            (&[], "*** Add File: n\n+one\n+\n\n", &[("n", "one\n\n")]),
            (&[], "*** Add File: empty\n", &[("empty", "")]),
            (
                &[("d", "x\n"), ("m", "line1\nline2\n")],
                "*** Add File: n\n+created\n*** Delete File: d\n*** Update File: m\n@@\n-line2\n+changed\n",
                &[("n", "created\n"), ("m", "line1\nchanged\n")],
            ),
            (
                &[("f", "a\n")],
                "*** Update File: f\n*** Move to: d/g\n@@\n-a\n+b\n",
                &[("d/g", "b\n")],
            ),
            (
                &[("f", "a\n")],
                "*** Update File: f\n*** Move to: d/g\n",
                &[("d/g", "a\n")],
            ),
            (
                &[("f", "old\n")],
                "  *** Update File: f\n@@\n-old\n+new\n",
                &[("f", "new\n")],
            ),
        ];
        for (before, body, after) in table {
            assert_eq!(patched(before, &envelope(body)), files(after), "{body}");
        }
        assert_eq!(
            patched(
                &[("f", "one\n")],
                "Here it is:\n *** Begin Patch\n*** Update File: f\n@@\n-one\n+two\n*** End Patch \n"
            ),
            files(&[("f", "two\n")])
        );
    }

    #[test]
    fn chunks_are_placed_by_context_and_anchors() {
        let class = "class A:\n    def f():\n        pass\n\nclass B:\n    def f():\n        pass\n";
        let table = [
            (
                "line1\nline2\nline3\nline4\n",
                "@@\n-line2\n+changed2\n@@\n-line4\n+changed4\n",
                "line1\nchanged2\nline3\nchanged4\n",
            ),
            (
                "line1\nline2\nline3\n",
                "@@\n line1\n-line2\n line3\n",
                "line1\nline3\n",
            ),
            ("a\nb\n", "-b\n+B\n", "a\nB\n"),
            (
                class,
                "@@ class B:\n@@     def f():\n-        pass\n+        return 1\n",
                "class A:\n    def f():\n        pass\n\nclass B:\n    def f():\n        return 1\n",
            ),
            (
                class,
                "@@ class B:\n     def f():\n-        pass\n+        return 1\n",
                "class A:\n    def f():\n        pass\n\nclass B:\n    def f():\n        return 1\n",
            ),
            (
                "def f():\n    x\ny\n",
                "@@ def f():\n def f():\n-    x\n+    z\n",
                "def f():\n    z\ny\n",
            ),
            ("a\nx\nb\nx\n", "@@ b\n-x\n+y\n", "a\nx\nb\ny\n"),
            ("a\nx\nb\nx\n", "@@\n-x\n+y\n*** End of File\n", "a\nx\nb\ny\n"),
            ("a\nb\n", "@@ a\n+x\n", "a\nx\nb\n"),
            (
                "line1\nline2\n",
                "@@\n+added line 1\n+added line 2\n",
                "line1\nline2\nadded line 1\nadded line 2\n",
            ),
            ("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
            // Line endings and a missing final newline stay.
            ("a\r\nb\r\n", "@@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n"),
            (
                "no newline at end",
                "@@\n-no newline at end\n+first line\n+second line\n",
                "first line\nsecond line",
            ),
            ("a\nb", "@@\n a\n b\n+c\n", "a\nb\nc"),
            ("", "@@\n+x\n", "x\n"),
            // Blank lines that the patch's layout brought in, and one that is context.
            ("a\nb\nc\n", "@@\n-b\n+B\n\n", "a\nB\nc\n"),
            ("a\n\nc\n", "@@\n a\n\n-c\n+C\n", "a\n\nC\n"),
        ];
        for (before, body, after) in table {
            assert_eq!(
                patched(&[("f", before)], &update(body)),
                files(&[("f", after)]),
                "{body}"
            );
        }
    }

    #[test]
    fn chunks_without_a_certain_place_are_refused() {
        let table = [
            ("x\nx\n", "@@\n-x\n+y\n", "fits at several places (lines 1, 2)"),
            ("a\n", "@@ zzz\n-a\n+b\n", "anchor \"zzz\""),
            ("foo\nbar\n", "@@\n-missing\n+x\n", "does not fit"),
            ("a\nb\na\n", "@@\n-b\n+B\n@@\n-b\n+C\n", "does not fit"),
            (
                "def f():\n    x\ndef f():\n    x\n",
                "@@ def f():\n-    x\n+    y\n",
                "several places (lines 2, 4)",
            ),
            ("a\nb\n", "@@\n-a\n+A\n*** End of File\n", "does not fit"),
        ];
        for (before, body, words) in table {
            let error = refused(&[("f", before)], &update(body));
            assert_eq!(error.code, ErrorCode::PatchConflict, "{body}: {error}");
            assert!(error.message.contains(words), "{error}");
        }
    }

    #[test]
    fn a_malformed_envelope_is_refused() {
        let table = [
            (
                "*** Begin Patch\n*** End Patch\n",
                ErrorCode::PatchInvalid,
                "nothing to apply",
            ),
            (
                "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n",
                ErrorCode::PatchInvalid,
                "no \"*** End Patch\"",
            ),
            (
                "*** Begin Patch\n*** Update File: f\n*** End Patch\n",
                ErrorCode::PatchInvalid,
                "nothing to apply",
            ),
            (
                "*** Begin Patch\n*** Frobnicate File: f\n*** End Patch\n",
                ErrorCode::PatchInvalid,
                "must be",
            ),
            (
                "*** Begin Patch\n*** Update File: f\n@@\nx\n*** End Patch\n",
                ErrorCode::PatchInvalid,
                "begin with a space",
            ),
            (
                "*** Begin Patch\n*** Update File: f\n@@\n a\n*** End Patch\n",
                ErrorCode::PatchInvalid,
                "changes nothing",
            ),
            (
                "*** Begin Patch\n*** Add File: n\nx\n*** End Patch\n",
                ErrorCode::PatchInvalid,
                "begins with \"+\"",
            ),
            (
                "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n",
                ErrorCode::AlreadyExists,
                "\"f\"",
            ),
            (
                "*** Begin Patch\n*** Delete File: zzz\n*** End Patch\n",
                ErrorCode::NotFound,
                "\"zzz\"",
            ),
            (
                "*** Begin Patch\n*** Update File: zzz\n@@\n-a\n+b\n*** End Patch\n",
                ErrorCode::NotFound,
                "\"zzz\"",
            ),
            (
                "*** Begin Patch\n*** Add File: ../n\n+x\n*** End Patch\n",
                ErrorCode::OutsideWorkspace,
                "..",
            ),
            (
                "*** Begin Patch\n*** Update File: f\n*** Move to: .git/x\n@@\n-a\n+b\n*** End Patch\n",
                ErrorCode::ProtectedPath,
                ".git",
            ),
        ];
        for (patch, code, words) in table {
            let error = refused(&[("f", "a\n")], patch);
            assert_eq!(error.code, code, "{patch}: {error}");
            assert!(error.message.contains(words), "{error}");
        }
    }

    #[test]
    fn a_headerless_diff_updates_or_creates_one_file() {
        let run = |bytes: Option<&str>, diff: &str| {
            apply_v4a_diff(bytes.map(str::as_bytes), "f", diff).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        assert_eq!(run(None, "+hello\n+world\n+").unwrap(), "hello\nworld\n");
        assert_eq!(run(None, "+hello\n+world\n").unwrap(), "hello\nworld");
        assert_eq!(run(None, "hello\n").unwrap_err().code, ErrorCode::PatchInvalid);
        assert_eq!(run(Some("a\nb\nc\n"), "@@ a\n-b\n+B\n").unwrap(), "a\nB\nc\n");
        assert_eq!(run(Some("a\r\nb\r\n"), " a\n-b\n+B\n").unwrap(), "a\r\nB\r\n");
        assert_eq!(
            run(Some("a\n"), "@@\n+x\n").unwrap_err().code,
            ErrorCode::PatchConflict
        );
        assert_eq!(run(Some("a\n"), "").unwrap_err().code, ErrorCode::PatchInvalid);
    }
}
