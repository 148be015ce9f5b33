//! The table again where the directory is one of several roots and is named by absolute path: the first of them, a
//! further one, and one that lies in the first together with everything that is outside of it.
//!
//! What is different by rule: an absolute path with `..` is refused, and a walk tells absolute paths, unless the
//! directory is the first root.

use crate::confine::{LEADS_OUT, alike, assert_led_nowhere, every_operation_on, linked, plain};
use crate::support::{Answer, BOTH, Ground, call, call_below, put};
use croft::ErrorCode::*;
use croft::tree::{DiskOptions, DiskTree, Resolver, RoutedTree, Symlinks, Tree};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Further,
    /// The first root holds this one and `Ground::outside`.
    Nested,
}

const PLACES: [Place; 3] = [Place::First, Place::Further, Place::Nested];

fn disk(root: &Path, resolver: Resolver, symlinks: Symlinks) -> Arc<dyn Tree> {
    let options = DiskOptions {
        root: root.to_owned(),
        symlinks,
        ..DiskOptions::default()
    };
    Arc::new(DiskTree::open_with(&options, resolver).unwrap())
}

fn name_of(root: &Path) -> String {
    root.to_str().unwrap().to_owned()
}

fn routed(ground: &Ground, place: Place, resolver: Resolver, symlinks: Symlinks) -> RoutedTree {
    let open = |root: &Path| disk(root, resolver, symlinks);
    let base = ground.root.parent().unwrap();
    let elsewhere = base.join("elsewhere");
    put(&elsewhere.join("f"), b"ELSEWHERE");
    let other = |root: &Path| (name_of(root), open(root));
    let main = match place {
        Place::First => &ground.root,
        Place::Further => &elsewhere,
        Place::Nested => base,
    };
    let others = [&ground.root, &elsewhere]
        .into_iter()
        .filter(|root| *root != main);
    RoutedTree::new(
        open(main),
        vec![name_of(main)],
        others.map(|root| other(root)).collect(),
    )
}

fn climbs(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part == "..")
}

#[test]
fn no_operation_follows_a_link_out_of_one_of_several_roots() {
    for (place, resolver) in PLACES
        .into_iter()
        .flat_map(|place| BOTH.map(|resolver| (place, resolver)))
    {
        for symlinks in [Symlinks::Inside, Symlinks::Deny] {
            for (operation, path) in every_operation_on(&LEADS_OUT) {
                let ground = linked();
                let tree = routed(&ground, place, resolver, symlinks);
                let base = format!("{}/", name_of(&ground.root));
                let answer = call_below(&tree, &base, operation, path);
                let case = format!("{operation} {path} {place:?} {resolver:?} {symlinks:?}");
                if climbs(path) {
                    assert_eq!(answer, Answer::Refused(OutsideWorkspace), "{case}");
                } else {
                    assert_led_nowhere(&ground, operation, path, &answer, &case);
                }
            }
        }
    }
}

#[test]
fn an_absolute_path_answers_as_a_relative_one() {
    for (place, resolver) in PLACES
        .into_iter()
        .flat_map(|place| BOTH.map(|resolver| (place, resolver)))
    {
        for (operation, path, expected) in alike() {
            let ground = plain();
            let tree = routed(&ground, place, resolver, Symlinks::Inside);
            let root = name_of(&ground.root);
            let answer = call_below(&tree, &format!("{root}/"), operation, path);
            let case = format!("{operation} {path:?} {place:?} {resolver:?}");
            assert_eq!(answer, as_absolute(expected, path, &root, place), "{case}");
        }
    }
}

fn as_absolute(expected: Answer, path: &str, root: &str, place: Place) -> Answer {
    match expected {
        _ if climbs(path) => Answer::Refused(OutsideWorkspace),
        // Behind a root it is a path below that.
        _ if path.starts_with('/') => Answer::Refused(NotFound),
        Answer::Ok(text) if place != Place::First => Answer::Ok(match text.split_once(' ') {
            Some(("folder", "." | ". 0")) => format!("folder {root} 0"),
            Some((kind @ ("folder" | "file"), rest)) => format!("{kind} {root}/{rest}"),
            _ => text,
        }),
        expected => expected,
    }
}

#[test]
fn each_root_keeps_to_itself_where_one_lies_in_another() {
    for resolver in BOTH {
        let ground = linked();
        ground.link("in-abs", "${ROOT}/in.txt");
        let tree = routed(&ground, Place::Nested, resolver, Symlinks::Inside);
        let (root, outside) = (name_of(&ground.root), name_of(&ground.outside));
        let ok = |text: &str| Answer::Ok(text.to_owned());
        for (path, expected) in [
            ("ws/in.txt".to_owned(), ok("in")),
            (format!("{root}/in.txt"), ok("in")),
            (format!("{root}/in-abs"), ok("in")),
            ("out/secret.txt".to_owned(), ok("OUTSIDE-SECRET\n")),
            (format!("{outside}/secret.txt"), ok("OUTSIDE-SECRET\n")),
            // The same link leads nowhere from the inner root, and to a file of the outer one from there.
            (format!("{root}/out-file"), Answer::Refused(LinkRefused)),
            ("ws/out-file".to_owned(), ok("OUTSIDE-SECRET\n")),
            (
                format!("{root}/../out/secret.txt"),
                Answer::Refused(OutsideWorkspace),
            ),
            (format!("{root}-evil/x"), Answer::Refused(NotFound)),
        ] {
            assert_eq!(call(&tree, "read", &path), expected, "{path} {resolver:?}");
        }
        let across = tree.rename(&format!("{root}/in.txt"), &format!("{outside}/in.txt"), false);
        assert_eq!(
            Answer::from(across.map(|()| "")),
            Answer::Refused(InvalidArgument)
        );
        assert_eq!(call(&tree, "remove_all", &root), Answer::Refused(InvalidArgument));
    }
}
