//! The messages between the addon and `croft-exec`, as bytes. Sending them is left to `channel`.
//!
//! One `Start` goes out, length-prefixed, because it carries text of any size; all that follows is of fixed
//! size. Both sides treat what they read as untrusted: a command of the same user could try to get at the
//! channel, so a malformed message ends the conversation and never indexes out of bounds.

use std::ffi::CStr;

/// Both halves come from one package; the number catches a stale helper beside a new addon.
pub const VERSION: u32 = 1;
/// Longer start messages are refused on both sides. The kernel's own ceiling for argv and environment
/// together is 6 MiB, so nothing that could start is refused.
pub const MAX_START_BYTES: usize = 8 * 1024 * 1024;

/// What happens to processes that outlive the command's own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    Kill,
    Keep,
}

/// How surely every descendant is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A cgroup v2 leaf of its own: the kernel knows every member.
    Cgroup,
    /// The helper is their sub-reaper: descendants cannot leave its tree while it lives.
    Subreaper,
    /// The process group and what a walk finds; a double fork with `setsid` escapes.
    Group,
}

impl Containment {
    pub fn as_str(self) -> &'static str {
        match self {
            Containment::Cgroup => "cgroup",
            Containment::Subreaper => "subreaper",
            Containment::Group => "group",
        }
    }
}

/// Where to make the command's cgroup: an existing v2 directory, and the name of the leaf in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupLeaf<'a> {
    pub parent: &'a CStr,
    pub name: &'a CStr,
}

/// A resource limit, numbered as the platform's `RLIMIT_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub resource: u32,
    pub soft: u64,
    pub hard: u64,
}

/// All that varies from command to command. Descriptors travel beside it, in the order cwd, stdin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start<'a> {
    pub argv: Vec<&'a CStr>,
    /// `NAME=value` each.
    pub env: Vec<&'a CStr>,
    /// Between SIGTERM and SIGKILL.
    pub grace_ms: u32,
    /// How long processes left behind may take to end by themselves before they count as left over.
    pub settle_ms: u32,
    pub leftover: Leftover,
    pub cgroup: Option<CgroupLeaf<'a>>,
    pub limits: Vec<Limit>,
    pub has_stdin: bool,
}

impl<'a> Start<'a> {
    /// `None` when the message would be longer than [`MAX_START_BYTES`].
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Writer::new();
        out.number(VERSION);
        out.number(self.grace_ms);
        out.number(self.settle_ms);
        out.number(u32::from(self.leftover == Leftover::Keep));
        out.number(u32::from(self.has_stdin));
        out.number(u32::from(self.cgroup.is_some()));
        if let Some(leaf) = &self.cgroup {
            out.text(leaf.parent);
            out.text(leaf.name);
        }
        out.number(self.limits.len() as u32);
        for limit in &self.limits {
            out.number(limit.resource);
            out.0.extend_from_slice(&limit.soft.to_le_bytes());
            out.0.extend_from_slice(&limit.hard.to_le_bytes());
        }
        out.texts(&self.argv);
        out.texts(&self.env);
        out.finish(MAX_START_BYTES)
    }

    /// Reads the body, without the length in front. `None` for anything malformed.
    pub fn decode(body: &'a [u8]) -> Option<Start<'a>> {
        let mut reader = Reader(body);
        if reader.number()? != VERSION {
            return None;
        }
        let grace_ms = reader.number()?;
        let settle_ms = reader.number()?;
        let leftover = if reader.flag()? {
            Leftover::Keep
        } else {
            Leftover::Kill
        };
        let has_stdin = reader.flag()?;
        let cgroup = match reader.flag()? {
            true => Some(CgroupLeaf {
                parent: reader.text()?,
                name: reader.text()?,
            }),
            false => None,
        };
        let mut limits = Vec::new();
        for _ in 0..reader.number()? {
            limits.push(Limit {
                resource: reader.number()?,
                soft: reader.wide()?,
                hard: reader.wide()?,
            });
        }
        let argv = reader.texts()?;
        let env = reader.texts()?;
        let whole = reader.0.is_empty() && !argv.is_empty();
        whole.then_some(Start {
            argv,
            env,
            grace_ms,
            settle_ms,
            leftover,
            cgroup,
            limits,
            has_stdin,
        })
    }
}

/// Builds a message with its length in front.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Self {
        Writer(vec![0; 4])
    }

    /// `None` when the message is longer than `max_bytes`.
    pub(crate) fn finish(mut self, max_bytes: usize) -> Option<Vec<u8>> {
        let length = self.0.len() - 4;
        if length > max_bytes {
            return None;
        }
        self.0[..4].copy_from_slice(&(length as u32).to_le_bytes());
        Some(self.0)
    }

    pub(crate) fn number(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &CStr) {
        let bytes = text.to_bytes_with_nul();
        self.number(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn texts(&mut self, texts: &[&CStr]) {
        self.number(texts.len() as u32);
        for text in texts {
            self.text(text);
        }
    }
}

pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn wide(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The final NUL travels too, so that the helper hands the text to `execve` where it lies.
    pub(crate) fn text(&mut self) -> Option<&'a CStr> {
        let length = self.number()? as usize;
        CStr::from_bytes_with_nul(self.bytes(length)?).ok()
    }

    pub(crate) fn texts(&mut self) -> Option<Vec<&'a CStr>> {
        let count = self.number()?;
        // Grown as texts arrive: a forged count must not reserve memory.
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(self.text()?);
        }
        Some(texts)
    }
}

/// From the addon, after `Start`: SIGTERM now, SIGKILL to everything after `grace_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    pub grace_ms: u32,
}

impl Kill {
    pub const BYTES: usize = 4;

    pub fn encode(self) -> [u8; Self::BYTES] {
        self.grace_ms.to_le_bytes()
    }

    pub fn decode(bytes: [u8; Self::BYTES]) -> Self {
        Kill {
            grace_ms: u32::from_le_bytes(bytes),
        }
    }
}

/// What the child was doing when it could not become the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The start message or its descriptors.
    Message,
    Fork,
    Cwd,
    Stdin,
    Limit,
    Exec,
}

/// From the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Sent by the child itself before `execve`: a command that kills its supervisor at once cannot keep its
    /// process group from the addon.
    Forked {
        pid: u32,
    },
    Started {
        pid: u32,
        containment: Containment,
    },
    /// Nothing was started; the helper ends.
    Failed {
        stage: Stage,
        errno: i32,
    },
    /// The command's own process ended, with its raw wait status. `alone` when nothing outlived it.
    Exited {
        status: i32,
        alone: bool,
    },
    /// So many processes outlived it; with `Leftover::Kill` they are being ended now.
    Left {
        count: u32,
    },
    /// No descendant is alive; the helper ends.
    Done,
}

impl Event {
    pub const BYTES: usize = 12;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let (tag, a, b) = match self {
            Event::Started { pid, containment } => (1, pid, containment as u32),
            Event::Failed { stage, errno } => (2, stage as u32, errno as u32),
            Event::Exited { status, alone } => (3, status as u32, u32::from(alone)),
            Event::Left { count } => (4, count, 0),
            Event::Done => (5, 0, 0),
            Event::Forked { pid } => (6, pid, 0),
        };
        let mut out = [0; Self::BYTES];
        for (slot, value) in out.chunks_exact_mut(4).zip([tag, a, b]) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: [u8; Self::BYTES]) -> Option<Event> {
        let mut reader = Reader(&bytes);
        let (tag, a, b) = (reader.number()?, reader.number()?, reader.number()?);
        match tag {
            1 => {
                let containment = match b {
                    0 => Containment::Cgroup,
                    1 => Containment::Subreaper,
                    2 => Containment::Group,
                    _ => return None,
                };
                Some(Event::Started { pid: a, containment })
            }
            2 => {
                let stage = match a {
                    0 => Stage::Message,
                    1 => Stage::Fork,
                    2 => Stage::Cwd,
                    3 => Stage::Stdin,
                    4 => Stage::Limit,
                    5 => Stage::Exec,
                    _ => return None,
                };
                Some(Event::Failed {
                    stage,
                    errno: b as i32,
                })
            }
            3 => Some(Event::Exited {
                status: a as i32,
                alone: b == 1,
            }),
            4 => Some(Event::Left { count: a }),
            5 => Some(Event::Done),
            6 => Some(Event::Forked { pid: a }),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sample() -> Start<'static> {
        Start {
            argv: vec![c"/bin/sh", c"-c", c"echo \xff"],
            env: vec![c"A=1", c"EMPTY="],
            grace_ms: 500,
            settle_ms: 100,
            leftover: Leftover::Keep,
            cgroup: Some(CgroupLeaf {
                parent: c"/sys/fs/cgroup",
                name: c"croft-1",
            }),
            limits: vec![Limit {
                resource: 4,
                soft: 0,
                hard: u64::MAX,
            }],
            has_stdin: true,
        }
    }

    #[test]
    fn a_start_message_comes_back_as_it_was_sent() {
        let bytes = sample().encode().unwrap();
        assert_eq!(
            u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize,
            bytes.len() - 4
        );
        assert_eq!(Start::decode(&bytes[4..]), Some(sample()));
    }

    #[test]
    fn a_start_message_cut_anywhere_or_with_a_tail_is_refused() {
        let bytes = sample().encode().unwrap();
        for cut in 4..bytes.len() {
            assert_eq!(Start::decode(&bytes[4..cut]), None, "cut at {cut}");
        }
        let longer = [&bytes[4..], b"x"].concat();
        assert_eq!(Start::decode(&longer), None);
    }

    #[test]
    fn a_start_message_without_a_command_or_of_another_version_is_refused() {
        let empty = Start {
            argv: vec![],
            ..sample()
        }
        .encode()
        .unwrap();
        assert_eq!(Start::decode(&empty[4..]), None);
        let mut other = sample().encode().unwrap();
        other[4] = 99;
        assert_eq!(Start::decode(&other[4..]), None);
    }

    #[test]
    fn events_come_back_as_they_were_sent() {
        for event in [
            Event::Started {
                pid: 7,
                containment: Containment::Cgroup,
            },
            Event::Started {
                pid: 7,
                containment: Containment::Subreaper,
            },
            Event::Started {
                pid: 7,
                containment: Containment::Group,
            },
            Event::Failed {
                stage: Stage::Exec,
                errno: 2,
            },
            Event::Failed {
                stage: Stage::Message,
                errno: 0,
            },
            Event::Exited {
                status: 0x0f00,
                alone: true,
            },
            Event::Exited {
                status: 9,
                alone: false,
            },
            Event::Left { count: 3 },
            Event::Done,
            Event::Forked { pid: 8 },
        ] {
            assert_eq!(Event::decode(event.encode()), Some(event));
        }
        assert_eq!(Event::decode([9; Event::BYTES]), None);
    }
}
