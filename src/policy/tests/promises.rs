//! The instructions promise nothing that a decision then refuses.

use super::*;
use crate::policy::instructions::Promised;
use crate::policy::{CustomPolicy, Surroundings};

fn policies() -> Vec<(String, Policy)> {
    let mut all = Vec::new();
    let mut add = |name: String, options: PolicyOptions| all.push((name, policy(options)));
    add("none".to_owned(), options());
    for name in ["readonly", "coding", "trusted"] {
        add(name.to_owned(), mode(name));
        add(
            format!("{name}, nobody to ask"),
            PolicyOptions {
                asks: Some("deny".to_owned()),
                ..mode(name)
            },
        );
        add(
            format!("{name}, denials and grants that overlap"),
            PolicyOptions {
                denied_paths: strings(&["tmp", "/opt/r", "secrets"]),
                readable: strings(&["/opt/r", "/opt/s", "~/x"]),
                writable: strings(&["/opt/w", "secrets", "src"]),
                ..mode(name)
            },
        );
        add(
            format!("{name}, rules over everything"),
            PolicyOptions {
                path_rules: path_rules(&["deny:*:write", "ask:/opt"]),
                writable: strings(&["/opt/w"]),
                ..mode(name)
            },
        );
    }
    for name in ["coding", "trusted"] {
        add(
            format!("{name}, command rules that contradict"),
            PolicyOptions {
                command_rules: command_rules(&[
                    "deny:npm",
                    "allow:npm test",
                    "allow:ls",
                    "allow:find -delete",
                    "ask:git",
                    "deny:rm",
                ]),
                ..mode(name)
            },
        );
        add(
            format!("{name}, all commands denied but one"),
            PolicyOptions {
                command_rules: command_rules(&["allow:ls", "deny:*"]),
                ..mode(name)
            },
        );
    }
    add(
        "spelled out".to_owned(),
        PolicyOptions {
            policy: Some(CustomPolicy {
                shell: Some("deny".to_owned()),
                write_inside: Some("ask".to_owned()),
                command_rules: command_rules(&["allow:ls", "ask:make"]),
                ..CustomPolicy::default()
            }),
            ..options()
        },
    );
    all
}

fn surroundings() -> Surroundings {
    Surroundings {
        venv: Some(".venv".to_owned()),
        package_manager: Some("npm".to_owned()),
        git: true,
        background: true,
        links_denied: false,
    }
}

#[test]
fn every_promise_is_kept() {
    for (name, policy) in policies() {
        for statement in policy.statements(&surroundings()) {
            for promise in &statement.promises {
                let action = match &promise.what {
                    Promised::Read(asked) => path(&policy, PathOp::Read, asked),
                    Promised::Write(asked) => path(&policy, PathOp::Write, asked),
                    Promised::Run(line) => run(&policy, line),
                };
                let kept = if promise.freely {
                    action == Action::Allow
                } else {
                    action < Action::Deny
                };
                assert!(
                    kept,
                    "{name}: {:?} promises {promise:?}, which is {action:?}",
                    statement.text
                );
            }
        }
    }
}

#[test]
fn a_shell_is_mentioned_only_where_there_is_one() {
    for (name, policy) in policies() {
        let text = policy.instructions(&surroundings());
        assert!(text.starts_with("## Workspace\n\n- "), "{name}");
        assert_eq!(
            text.contains("There is no shell"),
            !policy.offers_shell(),
            "{name}: {text}"
        );
        for word in ["background", "Python environment"] {
            assert!(policy.offers_shell() || !text.contains(word), "{name}: {text}");
        }
    }
}

#[test]
fn the_section_for_coding_reads_as_a_whole() {
    let policy = policy(PolicyOptions {
        denied_paths: strings(&[".env*"]),
        command_rules: command_rules(&["allow:npm test", "deny:git push"]),
        ..mode("coding")
    });
    let expected = "\
## Workspace

- The root is `.`; use paths relative to it. A symbolic link counts as the place it leads to.
- Look before you change: glob and grep find the place, read_file shows it. Page long files with offset and limit.
- You may create and change files. Read a file before you edit it.
- Put temporary files in `tmp/` and clear them away when you are done.
- The workspace is a git repository. File tools do not write in `.git`.
- Outside the workspace, by absolute path: reading needs approval, writing is not permitted.
- Off limits, also to commands: `.env*`. Do not look for ways around this.
- Shell commands need approval, except those that begin with `npm test`.
- Never run: `git push`.
- Every command in a line is judged, and the paths it names as well. Write plain commands: what cannot be read with certainty is not run without a person.
- Start servers and watchers with background: true; read and end them with their process id.
- The Python environment `.venv` is active for every command.
- The project uses `npm`: use it, not another package manager.
";
    assert_eq!(policy.instructions(&surroundings()), expected);
}
