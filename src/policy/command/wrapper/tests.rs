//! What each wrapper is found to run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn words(line: &str) -> Vec<Word> {
    line.split(' ')
        .map(|word| Word::quoted(&word.replace('_', " ")))
        .collect()
}

/// The inner commands, joined by ` ; `; scripts in brackets; `?` at the end for a doubt.
fn inner(line: &str) -> String {
    let Some(wrapped) = unwrap(&words(line), false) else {
        return "no wrapper".to_owned();
    };
    let mut shown: Vec<String> = wrapped
        .inner
        .iter()
        .map(|inner| match inner {
            Inner::Script(text) => format!("[{text}]"),
            Inner::Command { words, open_ended } => {
                let mut text: Vec<String> = words
                    .iter()
                    .map(|word| word.fixed().unwrap_or("*".to_owned()))
                    .collect();
                if *open_ended {
                    text.push("...".to_owned());
                }
                text.join(" ")
            }
        })
        .collect();
    if wrapped.doubt.is_some() {
        shown.push("?".to_owned());
    }
    shown.join(" ; ")
}

#[test]
fn the_command_behind_a_wrapper_is_found() {
    for (line, expected) in [
        ("env rm x", "rm x"),
        ("/usr/bin/env -i -u A FOO=1 BAR=2 rm x", "rm x"),
        ("env - rm x", "rm x"),
        ("env -C sub rm x", "rm x"),
        ("env -S rm_x", "[rm x] ; ?"),
        ("env", ""),
        ("nice rm x", "rm x"),
        ("nice -n 5 rm x", "rm x"),
        ("nice -5 rm x", "rm x"),
        ("nice --adjustment=5 rm", "rm"),
        ("nohup rm x", "rm x"),
        ("time -p rm x", "rm x"),
        ("timeout 5 rm x", "rm x"),
        ("timeout -k 1 --signal=KILL 5s rm x", "rm x"),
        ("timeout -s9 5 rm", "rm"),
        ("sudo -u root -n A=b rm x", "rm x"),
        ("sudo -s rm", "?"),
        ("xargs rm", "rm ..."),
        ("xargs -0 -n1 rm -f", "rm -f ..."),
        ("xargs -I {} mv {} x", "mv * x"),
        ("xargs -i rm {}", "rm *"),
        ("xargs -I% sh -c rm_%", "sh -c *"),
        ("xargs", ""),
        ("command rm x", "rm x"),
        ("command -v rm", ""),
        ("exec rm x", "rm x"),
        ("exec -a name rm", "rm"),
        ("builtin cd x", "cd x"),
        ("sh -c rm_x", "[rm x]"),
        ("bash -euxo pipefail -c rm_x arg0", "[rm x]"),
        ("bash -lc rm_x", "[rm x]"),
        ("sh", "?"),
        ("sh -s", "?"),
        ("bash script.sh", ""),
        ("sh -c", "?"),
        ("eval rm x", "[rm x]"),
        ("trap rm_x EXIT", "[rm x]"),
        ("trap - EXIT", ""),
        ("find . -exec rm {} ;", "rm *"),
        ("find . -exec a {} + -okdir b ;", "a * ; b"),
        ("find . -name x", ""),
        (". ./s", "?"),
        ("alias ls=rm", "?"),
        ("alias", "no wrapper"),
        ("busybox rm x", "rm x"),
        ("stdbuf -oL rm x", "rm x"),
        ("watch -n 1 rm_x", "[rm x]"),
        ("env --what rm", "?"),
        ("rm x", "no wrapper"),
    ] {
        assert_eq!(inner(line), expected, "{line}");
    }
}

#[test]
fn a_wrapper_that_its_input_completes_is_a_doubt() {
    for line in ["env", "sh", "sh -c", "nice"] {
        assert!(unwrap(&words(line), true).unwrap().doubt.is_some(), "{line}");
    }
    assert!(unwrap(&words("env cat"), true).unwrap().doubt.is_none());
}

#[test]
fn what_a_wrapper_sets_and_writes_is_kept() {
    let wrapped = unwrap(&words("env -C sub PATH=. rm"), false).unwrap();
    assert_eq!(wrapped.assignments, [("PATH".to_owned(), Word::quoted("."))]);
    assert_eq!(wrapped.folder, Some(Word::quoted("sub")));
    let wrapped = unwrap(&words("time -o out rm"), false).unwrap();
    assert_eq!(wrapped.writes, [Word::quoted("out")]);
}
