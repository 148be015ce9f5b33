//! What the constructor refuses, and the shell's default.

use super::*;
use crate::error::ErrorCode;
use crate::policy::CustomPolicy;
use Action::{Allow, Ask, Deny};

fn refused(options: PolicyOptions) -> String {
    let error = Policy::new(options, &|_| None).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    error.message
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    assert!(refused(mode("yolo")).contains("'readonly', 'coding' or 'trusted'"));
    assert!(
        refused(PolicyOptions {
            command_rules: command_rules(&["allow:ls"]),
            ..mode("readonly")
        })
        .contains("no shell")
    );
    assert!(
        refused(PolicyOptions {
            policy: Some(CustomPolicy::default()),
            ..mode("coding")
        })
        .contains("policy replaces mode")
    );
    for (action, pattern) in [("allow", ""), ("maybe", "ls"), ("deny", "git *x")] {
        let rule = format!("{action}:{pattern}");
        refused(PolicyOptions {
            command_rules: command_rules(&[&rule]),
            ..mode("coding")
        });
    }
    for rule in ["maybe:x", "deny:", "deny:x:execute", "deny:../x"] {
        refused(PolicyOptions {
            path_rules: path_rules(&[rule]),
            ..mode("coding")
        });
    }
    refused(PolicyOptions {
        asks: Some("never".to_owned()),
        ..mode("coding")
    });
    // The nearest thing that is allowed.
    policy(PolicyOptions {
        command_rules: Some(vec![]),
        ..mode("readonly")
    });
    policy(PolicyOptions {
        policy: Some(CustomPolicy::default()),
        ..options()
    });
}

#[test]
fn unknown_option_names_are_refused() {
    for text in [
        r#"{"root":"/w","modes":"coding"}"#,
        r#"{"root":"/w","pathRules":[{"pattern":"x","action":"deny","op":["read"]}]}"#,
    ] {
        assert!(serde_json::from_str::<PolicyOptions>(text).is_err(), "{text}");
    }
    assert!(serde_json::from_str::<PolicyOptions>(r#"{"root":"/w","mode":"coding"}"#).is_ok());
}

#[test]
fn who_allows_some_commands_by_name_does_not_allow_the_rest() {
    let with = |rules: &[&str]| {
        policy(PolicyOptions {
            command_rules: command_rules(rules),
            ..options()
        })
    };
    assert_runs(&with(&["allow:ls"]), "ls", Allow);
    assert_runs(&with(&["allow:ls"]), "rm x", Ask);
    assert_runs(&with(&["deny:rm"]), "ls", Allow);
    assert_runs(&with(&["deny:rm", "allow:*"]), "ls", Allow);
    assert_runs(&with(&["deny:rm", "allow:*"]), "rm", Deny);
}

#[test]
fn a_policy_spelled_out_replaces_the_mode() {
    let custom = policy(PolicyOptions {
        policy: Some(CustomPolicy {
            write_inside: Some("ask".to_owned()),
            read_outside: Some("allow".to_owned()),
            shell: Some("none".to_owned()),
            denied_paths: strings(&["x"]),
            ..CustomPolicy::default()
        }),
        ..options()
    });
    assert_eq!(path(&custom, PathOp::Write, "a"), Ask);
    assert_eq!(path(&custom, PathOp::Read, "/a"), Allow);
    assert_eq!(path(&custom, PathOp::Write, "/a"), Deny);
    assert_eq!(path(&custom, PathOp::Read, "x"), Deny);
    assert_runs(&custom, "ls", Deny);
    assert!(!custom.offers_shell());
}

#[test]
fn the_tool_set_follows_the_mode() {
    for (name, writes, shell) in [
        ("readonly", false, false),
        ("coding", true, true),
        ("trusted", true, true),
    ] {
        let policy = policy(mode(name));
        assert_eq!(
            (policy.offers_writes(), policy.offers_shell()),
            (writes, shell),
            "{name}"
        );
    }
}
