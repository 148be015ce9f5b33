//! Order of the path decision, links, roots and grants; and where commands are when they name a path.

use super::*;
use crate::policy::Place;
use Action::{Allow, Ask, Deny};

#[test]
fn denials_come_before_rules_rules_before_grants_and_grants_before_the_mode() {
    let policy = policy(PolicyOptions {
        denied_paths: strings(&["a/secret"]),
        path_rules: path_rules(&["allow:a", "deny:b", "ask:c:write", "allow:/opt/x:read"]),
        readable: strings(&["/opt/r", "b"]),
        writable: strings(&["/opt/w", "/opt/x", "a/secret"]),
        ..mode("coding")
    });
    for (op, asked, expected) in [
        (PathOp::Read, "a/secret/k", Deny),
        (PathOp::Write, "a/secret", Deny),
        (PathOp::Read, "a/x", Allow),
        (PathOp::Read, "b/x", Deny),
        (PathOp::Read, "c", Allow),
        (PathOp::Write, "c", Ask),
        (PathOp::Read, "/opt/r/x", Allow),
        (PathOp::Write, "/opt/r/x", Deny),
        (PathOp::Read, "/opt/w/x", Allow),
        (PathOp::Write, "/opt/w/x", Allow),
        (PathOp::Read, "/opt/other", Ask),
        (PathOp::Write, "/opt/other", Deny),
        (PathOp::Write, "/opt/x/y", Allow),
        (PathOp::Write, "/opt/wx", Deny),
    ] {
        assert_eq!(path(&policy, op, asked), expected, "{op:?} {asked}");
    }
}

#[test]
fn a_link_is_judged_by_its_name_and_by_its_target() {
    let policy = denying("trusted", &["secrets", ".env*"]);
    let place = |path: &str| Place::Inside(path.to_owned());
    for (asked, resolved, expected) in [
        ("notes", "secrets/k", Deny),
        (".env.link", "notes", Deny),
        ("notes", "other", Allow),
        ("dir/x", "secrets/x", Deny),
    ] {
        let verdict = policy.decide_path(PathOp::Read, &place(asked), &place(resolved));
        assert_eq!(
            verdict.action, expected,
            "{asked} -> {resolved}: {}",
            verdict.reason
        );
        assert!(policy.hides_something());
    }
}

#[test]
fn more_roots_count_as_inside() {
    let policy = policy(PolicyOptions {
        roots: vec!["/data".to_owned()],
        ..mode("coding")
    });
    assert_eq!(path(&policy, PathOp::Read, "/data/x"), Allow);
    assert_eq!(path(&policy, PathOp::Write, "/data/x"), Allow);
    assert_eq!(path(&policy, PathOp::Write, "/database/x"), Deny);
}

#[test]
fn a_root_given_through_a_link_is_inside_by_both_its_names() {
    let options = PolicyOptions {
        root: "/w".to_owned(),
        roots: vec!["/alias".to_owned()],
        ..mode("coding")
    };
    let real = |path: &str| Some(path.replacen("/alias", "/private/real", 1));
    let policy = Policy::new(options, &real).unwrap();
    assert_eq!(path(&policy, PathOp::Write, "/alias/x"), Allow);
    assert_eq!(path(&policy, PathOp::Write, "/private/real/x"), Allow);
    assert_eq!(path(&policy, PathOp::Write, "/private/other/x"), Deny);
}

#[test]
fn without_any_option_the_inside_is_free_the_outside_closed_and_commands_run() {
    let policy = policy(options());
    assert_eq!(path(&policy, PathOp::Write, "x"), Allow);
    assert_eq!(path(&policy, PathOp::Read, "/etc/x"), Deny);
    assert_runs(&policy, "cat /etc/passwd; )(", Allow);
}

#[test]
fn a_command_is_followed_where_cd_leads() {
    let coding = with_rules(
        "coding",
        &["allow:cd", "allow:echo", "allow:cat", "allow:pushd", "allow:sh"],
    );
    for (line, expected) in [
        ("cd sub && echo x > ../out", Allow),
        ("cd sub && echo x > ../../out", Deny),
        ("cd a/b && cat ../../x", Allow),
        ("cd a/b && cat ../../../x", Ask),
        ("cd .. && echo x > out", Deny),
        ("cd /etc && echo x > passwd", Deny),
        ("cd ~ && echo x > f", Deny),
        ("cd && echo x > f", Deny),
        ("(cd sub); echo x > f", Allow),
        ("(cd sub); echo x > ../out", Deny),
        ("(cd sub && echo x > ../out)", Allow),
        ("(cd /etc && echo x > f)", Deny),
        ("cd \"$d\" && echo x > f", Ask),
        ("cd - && echo x > f", Ask),
        // Whether the first cd worked is not known.
        ("cd sub; echo x > ../out", Ask),
        ("echo x > f; cd /etc", Ask),
        ("sh -c 'cd sub'; echo x > ../out", Deny),
        ("env -C /etc cat passwd", Ask),
    ] {
        assert_runs(&coding, line, expected);
    }
    let denied = denying("trusted", &["build/out"]);
    assert_runs(&denied, "cd build; cat out/x", Deny);
    assert_runs(&denied, "cd build && cd out && cat x", Deny);
    assert_runs(&denied, "env -C build cat out/x", Deny);
}

#[test]
fn a_path_that_only_the_shell_knows_is_asked_about_when_it_is_written() {
    let trusted = policy(mode("trusted"));
    for line in [
        "echo x > $f",
        "echo x > \"$(cat name)\"",
        "cp a $d",
        "rm -rf $d",
        "rm -rf \"$d/x\"",
        "tee `cat n`",
        "echo x > ~root/f",
    ] {
        assert_runs(&trusted, line, Ask);
    }
    for line in [
        "cat $f",
        "echo x > f$x".replace('$', "").as_str(),
        "echo x 2>&1",
        "echo x >&2",
        "cat <&3",
        "echo x 3>&-",
        "ls > /dev/null",
    ] {
        assert_runs(&trusted, line, Allow);
    }
}

#[test]
fn urls_options_and_assignments_are_read_as_what_they_are() {
    let coding = with_rules("coding", &["allow:curl", "allow:gcc", "allow:ls"]);
    for (line, expected) in [
        ("curl https://example.org/etc/passwd", Allow),
        ("curl file:///etc/passwd", Ask),
        ("gcc -I/usr/include x.c", Ask),
        ("gcc -Iinclude x.c", Allow),
        ("ls --color=auto", Allow),
        ("ls --hide=/etc/x", Ask),
        ("A=/etc/x ls", Ask),
        ("A=b ls", Allow),
        ("ls -", Allow),
        ("ls ''", Allow),
        ("ls /dev/null", Allow),
        ("ls /dev/sda", Ask),
        ("curl -o /etc/x u", Deny),
    ] {
        assert_runs(&coding, line, expected);
    }
}

#[test]
fn an_argument_list_is_judged_without_a_shell() {
    let policy = with_rules("coding", &["allow:echo", "deny:rm"]);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (line, expected) in [
        ("echo $(rm x)", Allow),
        ("echo ; rm", Allow),
        ("rm x", Deny),
        ("/bin/rm x", Deny),
        ("env rm x", Deny),
        ("echo /etc/*", Ask),
        ("echo *", Allow),
        ("cat x", Ask),
    ] {
        assert_eq!(
            policy.decide_arguments(&words(line), ".").action,
            expected,
            "{line}"
        );
    }
    assert_eq!(policy.decide_arguments(&[], ".").action, Ask);
}

#[test]
fn other_shells_are_never_certain() {
    use crate::policy::ShellKind;
    let with = |shell_kind| {
        policy(PolicyOptions {
            shell_kind,
            command_rules: command_rules(&["allow:echo", "deny:rm"]),
            ..mode("coding")
        })
    };
    let other = with(ShellKind::Other);
    assert_runs(&other, "echo x", Ask);
    assert_runs(&other, "rm x", Deny);
    let cmd = with(ShellKind::Cmd);
    assert_runs(&cmd, "echo x", Allow);
    assert_runs(&cmd, "echo x & del y", Ask);
    assert_runs(&cmd, "echo %PATH%", Ask);
    assert_runs(&cmd, "echo ^& x", Ask);
}

#[test]
fn what_a_person_allowed_lifts_ask_and_nothing_else() {
    let policy = policy(PolicyOptions {
        command_rules: command_rules(&["deny:git push", "ask:make", "deny:rm"]),
        denied_paths: strings(&[".env"]),
        ..mode("coding")
    });
    let granted = |line: &str, grants: &[&str]| {
        let grants: Vec<String> = grants.iter().map(|text| (*text).to_owned()).collect();
        policy.decide_granted(line, ".", &grants).unwrap().action
    };
    for (line, grants, expected) in [
        ("npm test", vec!["npm test"], Allow),
        ("npm test -- x", vec!["npm test"], Allow),
        ("npm run", vec!["npm test"], Ask),
        ("npm test; ls", vec!["npm test"], Ask),
        ("npm test; ls", vec!["npm test", "ls"], Allow),
        ("make all", vec!["make"], Allow),
        ("git status", vec!["git"], Allow),
        ("git push", vec!["git"], Deny),
        ("git -C x push", vec!["git"], Deny),
        ("rm x", vec!["rm"], Deny),
        ("cat .env", vec!["cat"], Deny),
        ("cat /etc/passwd", vec!["cat"], Ask),
        ("cat x > /etc/x", vec!["cat"], Deny),
        ("find . -delete", vec!["find"], Ask),
        ("npm $x", vec!["npm test"], Ask),
        ("npm test", vec![], Ask),
    ] {
        assert_eq!(granted(line, &grants), expected, "{line} with {grants:?}");
    }
    assert!(policy.decide_granted("ls", ".", &["a*b".to_owned()]).is_err());
}

/// `/w/proj` with a few links in it.
fn with_links(policy: Policy) -> Policy {
    policy.following(|path| {
        let inside = path.strip_prefix("/w/proj/")?;
        let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
        let target = match first {
            "innocent" => "/w/proj/.env",
            "dir" => "/w/proj/secrets",
            "built" => "/w/proj/build",
            ".env.link" => "/w/proj/notes",
            "out" => "/opt/other",
            "granted" => "/opt/granted",
            _ => return Some(path.to_owned()),
        };
        Some(format!("{target}/{rest}").trim_end_matches('/').to_owned())
    })
}

#[test]
fn a_word_of_a_command_is_judged_by_where_its_links_lead() {
    let policy = |name: &str| {
        with_links(policy(PolicyOptions {
            denied_paths: strings(&["secrets", ".env*", "build/out"]),
            readable: strings(&["/opt/granted"]),
            ..mode(name)
        }))
    };
    let (coding, trusted) = (policy("coding"), policy("trusted"));
    for (line, expected) in [
        ("cat innocent", Deny),
        ("cat ./sub/../innocent", Deny),
        ("cat -- innocent", Deny),
        ("grep -f innocent x", Deny),
        ("grep -finnocent x", Deny),
        ("grep --file=innocent x", Deny),
        ("dd if=innocent", Deny),
        ("cat <innocent", Deny),
        ("echo x >innocent", Deny),
        ("cp a innocent", Deny),
        ("sh -c 'cat innocent'", Deny),
        ("cat $(echo innocent; cat innocent)", Deny),
        ("cat dir/key", Deny),
        ("cat {dir,x}/key", Deny),
        ("ls dir", Deny),
        ("cat dir/*", Deny),
        ("cat dir/k?y", Deny),
        ("echo x > dir/new", Deny),
        ("cd dir && cat key", Deny),
        ("./dir/tool", Deny),
        ("F=./innocent cat x", Deny),
        ("cat built/out/z", Deny),
        ("cat built/o*", Deny),
        ("cat .env.link", Deny),
        ("cat innocent; )", Deny),
        ("cat out/x", Allow),
        ("echo x > out/x", Ask),
        ("cat granted/x", Allow),
        ("cat built/log", Allow),
        ("cat built/l*", Allow),
        ("echo innocent.txt", Allow),
        ("cat notes", Allow),
    ] {
        let verdict = trusted.decide_command(line, ".");
        assert_eq!(verdict.action, expected, "{line}: {}", verdict.reason);
        for hidden in ["secrets/", "/opt/other"] {
            assert!(!verdict.reason.contains(hidden), "{line}: {}", verdict.reason);
        }
    }
    for (folder, expected) in [
        ("dir", Deny),
        ("built/out", Deny),
        ("built", Allow),
        ("out", Allow),
    ] {
        assert_eq!(
            trusted.decide_command("ls", folder).action,
            expected,
            "in {folder}"
        );
    }
    for (line, expected) in [
        ("cat out/x", Ask),
        ("echo x > out/x", Deny),
        ("cat innocent", Deny),
    ] {
        let verdict = coding.decide_command(line, ".");
        assert_eq!(verdict.action, expected, "{line}: {}", verdict.reason);
    }
}
