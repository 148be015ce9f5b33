//! Whose a container or a network is, as labels, and whether that owner is still alive. Removing what a dead owner
//! left is `sweep`.

use std::collections::HashMap;
use std::sync::OnceLock;

pub const KIND: &str = "com.lousho.sandbox";
pub const OWNER: &str = "com.lousho.sandbox.owner";
const FILE_PREFIX: &str = "croft-";

/// The labels of everything this process makes.
pub fn labels(kind: &str, given: &[(String, String)]) -> HashMap<String, String> {
    let mut all: HashMap<String, String> = given.iter().cloned().collect();
    all.insert(KIND.into(), kind.into());
    all.insert(OWNER.into(), me().into());
    all
}

/// `boot id/pid namespace/pid/start time`.
fn me() -> &'static str {
    static ME: OnceLock<String> = OnceLock::new();
    ME.get_or_init(|| {
        let pid = std::process::id();
        let started = start_time(pid).unwrap_or_default();
        format!("{}/{}/{pid}/{started}", boot_id(), namespace())
    })
}

/// Whether the owner in a label is certainly gone. One in another pid namespace cannot be judged from here.
pub fn is_dead(owner: &str) -> bool {
    let parts: Vec<&str> = owner.split('/').collect();
    let [boot, place, pid, started] = parts[..] else {
        return false;
    };
    if boot.is_empty() || boot_id().is_empty() {
        return false;
    }
    if boot != boot_id() {
        // The engine is on this machine, so a label of another boot is one from before it.
        return true;
    }
    if place != namespace() {
        return false;
    }
    match pid.parse() {
        Ok(pid) => start_time(pid).is_none_or(|now| now != started),
        Err(_) => false,
    }
}

fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    })
}

fn namespace() -> &'static str {
    static NAMESPACE: OnceLock<String> = OnceLock::new();
    NAMESPACE.get_or_init(|| {
        let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect();
        digits(&link.to_string_lossy())
    })
}

/// The same as part of a file name; without the boot, since temporary files seldom outlive it.
pub fn file_prefix() -> String {
    let rest = me().split_once('/').map_or("", |(_, rest)| rest);
    format!("{FILE_PREFIX}{}-", rest.replace('/', "-"))
}

/// Whether a file with such a prefix belongs to a process that is certainly gone.
pub fn is_dead_file(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(FILE_PREFIX) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('-').collect();
    let [place, pid, started, random] = parts[..] else {
        return false;
    };
    let numbers = [place, pid, started];
    let ours = numbers
        .iter()
        .all(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        && random.len() == 16;
    ours && is_dead(&format!("{}/{place}/{pid}/{started}", boot_id()))
}

/// In clock ticks since boot: tells a reused pid from the one that was labelled.
fn start_time(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.get(text.rfind(')')? + 1..)?;
    fields.split_ascii_whitespace().nth(19).map(str::to_owned)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_with_its_pid_from_another_time_or_boot_is_not() {
        assert!(!is_dead(me()));
        let parts: Vec<&str> = me().split('/').collect();
        assert!(is_dead(&format!("{}/{}/{}/1", parts[0], parts[1], parts[2])));
        assert!(is_dead(&format!("other/{}/{}/{}", parts[1], parts[2], parts[3])));
    }

    #[test]
    fn a_folder_is_dead_only_when_its_name_says_whose_it_was() {
        let random = "0123456789abcdef";
        assert!(!is_dead_file(&format!("{}{random}", file_prefix())));
        assert!(is_dead_file(&format!("croft-{}-4194303-1-{random}", namespace())));
        for other in [
            "croft-up-x",
            "croft-1-2-3",
            "croft-engine-abcdef",
            "croft-1-4194303-1-0123456789abcdef",
            "x",
        ] {
            assert!(!is_dead_file(other), "{other}");
        }
    }

    #[test]
    fn an_owner_that_cannot_be_judged_counts_as_alive() {
        let boot = boot_id();
        for owner in [
            "",
            "x",
            "a/b/c",
            &format!("{boot}/1/1/1"),
            &format!("{boot}/{}/x/1", namespace()),
        ] {
            assert!(!is_dead(owner), "{owner}");
        }
    }
}
