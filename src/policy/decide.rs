//! The two decisions: may this path be read or written, may this command run.

use super::command::{self, Doubt, Item, Reading, Simple, Word};
use super::command_rules::{CommandRule, Match};
use super::path_rules::PathOp;
use super::place::{Place, below};
use super::reason::clipped;
use super::verdict::{Action, Verdict};
use super::{FoundCommands, MAX_LINE_BYTES, Policy, ShellKind};
use crate::error::Result;

impl Policy {
    /// Where the letters of `path` lead when it is written in `cwd`.
    pub fn locate(&self, path: &str, cwd: &Place) -> Place {
        self.ground.locate(path, cwd)
    }

    /// Judges the path as asked and the path that links resolved it to; the stricter wins, so that neither a
    /// link to a denied file nor a denied name of a link gets through.
    pub fn decide_path(&self, op: PathOp, asked: &Place, resolved: &Place) -> Verdict {
        let verdict = self.judge(op, asked);
        let verdict = if resolved == asked {
            verdict
        } else {
            verdict.stricter(self.judge_target(op, asked, resolved))
        };
        self.attended(verdict)
    }

    /// The place that the link `asked` leads to. Its own path may be one the workspace must not tell.
    pub(super) fn judge_target(&self, op: PathOp, asked: &Place, target: &Place) -> Verdict {
        through_link(&self.judge(op, target), op, asked.shown())
    }

    pub(super) fn is_off_limits(&self, place: &Place) -> bool {
        self.denied
            .iter()
            .any(|pattern| pattern.matches(place, &self.ground))
    }

    /// Whether listings, walks and searches may show it at all.
    pub fn is_denied(&self, place: &Place) -> bool {
        self.judge(PathOp::Read, place).action == Action::Deny
    }

    /// Whether any path inside can be denied for reading: if not, walks need not ask.
    pub fn hides_something(&self) -> bool {
        !self.denied.is_empty()
            || self
                .path_rules
                .iter()
                .any(|rule| rule.action == Action::Deny && rule.reads)
    }

    /// Whether a path inside can be judged otherwise than by the mode: if not, where links lead inside does not matter.
    pub fn judges_inside(&self) -> bool {
        !self.denied.is_empty()
            || !self.path_rules.is_empty()
            || (self.defaults.write_inside == Action::Deny && !self.writable.is_empty())
    }

    /// Some policy option was given.
    pub fn is_configured(&self) -> bool {
        self.configured
    }

    pub(super) fn judge(&self, op: PathOp, place: &Place) -> Verdict {
        self.judge_explicit(op, place)
            .unwrap_or_else(|| self.judge_default(op, place))
    }

    /// Denials, then rules, then grants.
    pub(super) fn judge_explicit(&self, op: PathOp, place: &Place) -> Option<Verdict> {
        let path = place.shown();
        if let Some(pattern) = self
            .denied
            .iter()
            .find(|pattern| pattern.matches(place, &self.ground))
        {
            return Some(denied(path, pattern.source()));
        }
        let rule = self
            .path_rules
            .iter()
            .find(|rule| rule.applies_to(op) && rule.pattern.matches(place, &self.ground));
        if let Some(rule) = rule {
            return Some(Verdict::new(
                rule.action,
                ruled(rule.action, op, path, rule.pattern.source()),
            ));
        }
        let grants = match op {
            PathOp::Read => self.readable.iter().chain(&self.writable).collect::<Vec<_>>(),
            PathOp::Write => self.writable.iter().collect(),
        };
        grants
            .iter()
            .find(|pattern| pattern.matches(place, &self.ground))
            .map(|pattern| {
                Verdict::new(
                    Action::Allow,
                    format!("{path:?} is granted by {:?}", pattern.source()),
                )
            })
    }

    pub(super) fn judge_default(&self, op: PathOp, place: &Place) -> Verdict {
        let path = clipped(place.shown());
        let inside = match place {
            Place::Inside(_) => true,
            Place::Outside(path) => {
                let mut roots = self.extra_roots.iter().chain(&self.extra_real_roots);
                roots.any(|root| below(path, root).is_some())
            }
        };
        match (op, inside) {
            (PathOp::Read, true) => Verdict::new(Action::Allow, "reading inside the workspace is allowed"),
            (PathOp::Write, true) => {
                let action = self.defaults.write_inside;
                let reason = match action {
                    Action::Allow => "writing inside the workspace is allowed".to_owned(),
                    Action::Ask => format!("writing {path:?} needs approval"),
                    Action::Deny => format!("the workspace is read-only: writing {path:?} is not permitted"),
                };
                Verdict::new(action, reason)
            }
            (PathOp::Read, false) => outside("reading", self.defaults.read_outside, &path),
            (PathOp::Write, false) => outside("writing", self.defaults.write_outside, &path),
        }
    }

    /// Judges a line for the shell, started in `cwd` (relative to the root, or absolute).
    pub fn decide_command(&self, line: &str, cwd: &str) -> Verdict {
        let folder = self.ground.locate(cwd, &Place::root());
        let read = || match self.shell_kind {
            ShellKind::Posix => command::read(line, &folder, &self.ground),
            ShellKind::Cmd => self.read_cmd(line, &folder),
            ShellKind::Other => {
                let mut reading = command::read(line, &folder, &self.ground);
                reading
                    .doubts
                    .push(Doubt("is for a shell whose language is not read here".to_owned()));
                reading
            }
        };
        self.decide(line, &folder, read)
    }

    /// As `decide_command`, with commands that a person allowed before (`grants`, each a prefix). They lift `ask` and
    /// nothing else: denials, paths and doubts are judged as ever.
    pub fn decide_granted(&self, line: &str, cwd: &str, grants: &[String]) -> Result<Verdict> {
        let verdict = self.decide_command(line, cwd);
        if verdict.action != Action::Ask || grants.is_empty() {
            return Ok(verdict);
        }
        let mut granting = self.clone();
        let (denials, rest): (Vec<_>, Vec<_>) = self
            .command_rules
            .iter()
            .cloned()
            .partition(|rule| rule.action == Action::Deny);
        granting.command_rules = denials;
        for grant in grants {
            granting
                .command_rules
                .push(CommandRule::parse(grant, Action::Allow)?);
        }
        granting.command_rules.extend(rest);
        let granted = granting.decide_command(line, cwd);
        Ok(if granted.action == Action::Allow {
            granted
        } else {
            verdict
        })
    }

    /// Judges an argument list that no shell reads.
    pub fn decide_arguments(&self, words: &[String], cwd: &str) -> Verdict {
        let folder = self.ground.locate(cwd, &Place::root());
        let line = words.join(" ");
        self.decide(&line, &folder, || {
            command::read_arguments(words, &folder, &self.ground)
        })
    }

    /// cmd.exe: words without any character that means something to it, or a doubt.
    fn read_cmd(&self, line: &str, folder: &Place) -> Reading {
        let plain = |c: char| {
            c.is_alphanumeric()
                || matches!(
                    c,
                    ' ' | '.' | '/' | '\\' | '_' | '-' | ':' | '=' | '+' | '@' | ','
                )
        };
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut reading = command::read_arguments(&words, folder, &self.ground);
        if !line.chars().all(plain) {
            reading.doubts.push(Doubt(
                "holds characters that cmd.exe treats in its own way".to_owned(),
            ));
        }
        reading
    }

    fn decide(&self, line: &str, folder: &Place, read: impl FnOnce() -> Reading) -> Verdict {
        if !self.configured {
            return Verdict::new(Action::Allow, "no policy is set: commands are allowed");
        }
        let Some(default) = self.defaults.shell else {
            return Verdict::new(Action::Deny, "there is no shell here: use the file tools");
        };
        if line.len() > MAX_LINE_BYTES {
            let reason = format!(
                "the command has {} bytes and at most {MAX_LINE_BYTES} bytes can be judged: write it to a script file and run that",
                line.len()
            );
            return Verdict::new(Action::Deny, reason);
        }
        let reading = read();
        let mut verdict = if reading.items.is_empty() && !line.trim().is_empty() || line.trim().is_empty() {
            self.default_verdict(default, "it")
        } else {
            Verdict::new(Action::Allow, "every command in it is allowed")
        };
        verdict = verdict.stricter(self.judge_with_links(PathOp::Read, folder));
        for item in &reading.items {
            verdict = verdict.stricter(self.judge_item(item, default));
        }
        if let Some(Doubt(doubt)) = reading.doubts.first() {
            let reason = format!("this line {doubt}, so what it runs is not certain");
            verdict = verdict.stricter(Verdict::new(Action::Ask, reason));
            verdict = verdict.stricter(self.judge_roughly(line, folder));
        }
        self.attended(verdict)
    }

    fn judge_item(&self, item: &Item, default: Action) -> Verdict {
        match item {
            Item::Command(command) => self
                .judge_command(command, default)
                .stricter(self.claims_of(command)),
            Item::Redirect(redirect) => self.claims_of_redirect(redirect),
            Item::Assignment { name, value, folders } => {
                let claim = self.claim_of_value(value, folders);
                if !self.command_rules.is_empty() && command::code_variable(name) {
                    let reason = format!(
                        "{name} decides which program runs, so the command rules cannot vouch for this"
                    );
                    return claim.stricter(Verdict::new(Action::Ask, reason));
                }
                claim
            }
        }
    }

    /// The rules, on one command. An allow rule needs certainty; a restricting rule needs only suspicion.
    fn judge_command(&self, command: &Simple, default: Action) -> Verdict {
        let name = command.words.first().map(Word::shown).unwrap_or_default();
        let exact = self
            .command_rules
            .iter()
            .find(|rule| rule.is_prefix_of(&command.words));
        let mut verdict = match exact {
            Some(rule) => {
                let verdict = Verdict::new(rule.action, command_reason(rule.action, &name, &rule.pattern));
                let gadget = (rule.action == Action::Allow && !rule.words.is_empty())
                    .then(|| command::gadget(command, rule.words.len()))
                    .flatten();
                match gadget {
                    Some(gadget) => Verdict::new(
                        Action::Ask,
                        format!(
                            "{name:?} {gadget}, which the rule {:?} does not name",
                            rule.pattern
                        ),
                    ),
                    None => verdict,
                }
            }
            None if command.transparent => Verdict::new(Action::Allow, "it only passes on what it runs"),
            None => self.default_verdict(default, &format!("{name:?}")),
        };
        for rule in &self.command_rules {
            if rule.action == Action::Allow {
                if rule.is_prefix_of(&command.words) {
                    break;
                }
                continue;
            }
            match rule.restricts(command) {
                Match::No => {}
                Match::Maybe => {
                    let reason = format!(
                        "{name:?} may turn out to be what the rule {:?} is about",
                        rule.pattern
                    );
                    verdict = verdict.stricter(Verdict::new(Action::Ask, reason));
                }
                Match::Yes => {
                    let reason = command_reason(rule.action, &name, &rule.pattern);
                    verdict = verdict.stricter(Verdict::new(rule.action, reason));
                    break;
                }
            }
        }
        verdict
    }

    fn default_verdict(&self, default: Action, what: &str) -> Verdict {
        let reason = match default {
            Action::Allow => "commands are allowed".to_owned(),
            Action::Ask if self.command_rules.is_empty() => format!("running {what} needs approval"),
            Action::Ask => format!("running {what} needs approval: no command rule allows it"),
            Action::Deny => format!("running {what} is not permitted: no command rule allows it"),
        };
        Verdict::new(default, reason)
    }

    /// A line that is not certain is still searched for what is denied.
    fn judge_roughly(&self, line: &str, folder: &Place) -> Verdict {
        let mut verdict = Verdict::new(Action::Allow, "");
        for words in command::rough_commands(line) {
            let from = words.iter().take_while(|word| is_prefix_word(word)).count();
            let reading = command::read_arguments(&words[from..], folder, &self.ground);
            for item in &reading.items {
                let found = match item {
                    Item::Command(command) => self
                        .judge_command(command, Action::Allow)
                        .stricter(self.denied_words(command, folder)),
                    Item::Redirect(_) | Item::Assignment { .. } => continue,
                };
                if found.action == Action::Deny {
                    verdict = verdict.stricter(found);
                }
            }
        }
        verdict
    }

    /// `asks: 'deny'`: nobody is there to ask.
    fn attended(&self, verdict: Verdict) -> Verdict {
        if self.unattended && verdict.action == Action::Ask {
            return Verdict::new(
                Action::Deny,
                format!("{} and nobody is there to give it", verdict.reason),
            );
        }
        verdict
    }

    /// The simple commands of a line, for callers with rules of their own.
    pub fn find_commands(line: &str) -> FoundCommands {
        if line.len() > MAX_LINE_BYTES {
            return FoundCommands {
                commands: Vec::new(),
                certain: false,
            };
        }
        let ground = super::place::Ground::new("/", None, None);
        let reading = command::read(line, &Place::root(), &ground);
        let certain = reading.doubts.is_empty();
        let mut commands: Vec<Vec<Option<String>>> = reading
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Command(command) => Some(command.words.iter().map(Word::literal).collect()),
                Item::Redirect(_) | Item::Assignment { .. } => None,
            })
            .collect();
        if !certain {
            commands.extend(command::rough_commands(line).into_iter().map(|words| {
                let from = words.iter().take_while(|word| is_prefix_word(word)).count();
                words.into_iter().skip(from).map(Some).collect()
            }));
        }
        FoundCommands { commands, certain }
    }
}

/// Keywords and assignments that may stand before a command.
fn is_prefix_word(word: &str) -> bool {
    matches!(
        word,
        "if" | "then" | "else" | "elif" | "do" | "while" | "until" | "!" | "time" | "coproc"
    ) || {
        let name = word.split('=').next().unwrap_or_default();
        name.len() < word.len()
            && !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

fn generic_reason(action: Action, op: PathOp) -> &'static str {
    match (action, op) {
        (Action::Allow, _) => "its target is allowed",
        (Action::Ask, PathOp::Read) => "reading the target needs approval",
        (Action::Ask, PathOp::Write) => "writing the target needs approval",
        (Action::Deny, PathOp::Read) => "reading the target is not permitted by the workspace policy",
        (Action::Deny, PathOp::Write) => "writing the target is not permitted by the workspace policy",
    }
}

/// What was found about the place that a link leads to, in words that do not tell the place.
pub(super) fn through_link(found: &Verdict, op: PathOp, link: &str) -> Verdict {
    let link = clipped(link);
    let reason = if found.reason.contains("off limits") {
        format!("the link {link:?} leads to what is off limits: work without it")
    } else {
        format!("{} (through the link {link:?})", generic_reason(found.action, op))
    };
    Verdict::new(found.action, reason)
}

pub(super) fn denied(path: &str, pattern: &str) -> Verdict {
    let reason = format!(
        "{:?} is off limits (denied by {pattern:?}): work without it",
        clipped(path)
    );
    Verdict::new(Action::Deny, reason)
}

fn ruled(action: Action, op: PathOp, path: &str, pattern: &str) -> String {
    let verb = match op {
        PathOp::Read => "reading",
        PathOp::Write => "writing",
    };
    match action {
        Action::Allow => format!("{verb} {path:?} is allowed by the path rule {pattern:?}"),
        Action::Ask => format!("{verb} {path:?} needs approval (path rule {pattern:?})"),
        Action::Deny => format!("{verb} {path:?} is not permitted (path rule {pattern:?})"),
    }
}

fn outside(verb: &str, action: Action, path: &str) -> Verdict {
    let reason = match action {
        Action::Allow => format!("{verb} outside the workspace is allowed"),
        Action::Ask => format!("{verb} outside the workspace needs approval: {path}"),
        Action::Deny => format!(
            "{verb} outside the workspace is not permitted: {path} (paths inside are relative to its root)"
        ),
    };
    Verdict::new(action, reason)
}

fn command_reason(action: Action, name: &str, pattern: &str) -> String {
    match action {
        Action::Allow => format!("{name:?} is allowed by the command rule {pattern:?}"),
        Action::Ask => format!("{name:?} needs approval (command rule {pattern:?})"),
        Action::Deny => format!("{name:?} is denied by the command rule {pattern:?}: do it another way"),
    }
}
