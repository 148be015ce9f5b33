//! The `## Workspace` section of a system prompt, made from the policy so that it promises nothing the policy would
//! refuse: each sentence is chosen by asking the very decision it is about.

use super::offers::{SAMPLE_COMMAND, SAMPLE_FILE, SAMPLE_OUTSIDE, sample_of};
use super::path_rules::{PathOp, PathRule};
use super::place::Place;
use super::{Action, Policy};
use serde::Deserialize;

/// What is true of the workspace beside its policy; whoever looks at the disk fills it in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Surroundings {
    /// `.venv` or `venv`, if one is active.
    pub venv: Option<String>,
    /// `npm`, `pnpm`, `yarn`, `bun`, `uv`, `poetry`, `cargo`, ... by its lock file.
    pub package_manager: Option<String>,
    pub git: bool,
    /// The shell tool can start background processes.
    pub background: bool,
    /// Links are refused altogether (`symlinks: 'deny'`).
    pub links_denied: bool,
}

/// A sentence, and what it says can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub text: String,
    pub promises: Vec<Promise>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    pub what: Promised,
    /// Whether the sentence says that it happens without approval.
    pub freely: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Promised {
    Read(String),
    Write(String),
    Run(String),
}

impl Policy {
    pub fn instructions(&self, surroundings: &Surroundings) -> String {
        let mut out = String::from("## Workspace\n\n");
        for statement in self.statements(surroundings) {
            out.push_str("- ");
            out.push_str(&statement.text);
            out.push('\n');
        }
        out
    }

    pub(super) fn statements(&self, surroundings: &Surroundings) -> Vec<Statement> {
        let mut all = vec![
            self.about_root(surroundings),
            plain(
                "Look before you change: glob and grep find the place, read_file shows it. Page long files with offset and limit.",
            ),
        ];
        all.extend(self.about_writes());
        all.extend(self.about_git(surroundings));
        all.extend(self.about_outside());
        all.extend(self.about_grants());
        all.extend(self.about_off_limits());
        all.extend(self.about_path_rules());
        all.extend(self.about_shell(surroundings));
        all
    }

    fn about_root(&self, surroundings: &Surroundings) -> Statement {
        let links = if surroundings.links_denied {
            "Symbolic links are refused."
        } else {
            "A symbolic link counts as the place it leads to."
        };
        Statement {
            text: format!("The root is `.`; use paths relative to it. {links}"),
            promises: vec![],
        }
    }

    fn about_writes(&self) -> Vec<Statement> {
        let writing = self.action_on(PathOp::Write, SAMPLE_FILE);
        let nowhere = !self.offers_writes();
        let promise = |freely| {
            vec![Promise {
                what: Promised::Write(SAMPLE_FILE.to_owned()),
                freely,
            }]
        };
        let mut all = vec![match writing {
            Action::Allow => Statement {
                text: "You may create and change files. Read a file before you edit it.".to_owned(),
                promises: promise(true),
            },
            Action::Ask => Statement {
                text: "You may propose to create or change files; each change needs approval. Read a file before you edit it.".to_owned(),
                promises: promise(false),
            },
            Action::Deny if nowhere => {
                plain("The workspace is read-only: files cannot be created or changed.")
            }
            Action::Deny => plain(
                "Files cannot be created or changed, except where it says so below. Read a file before you edit it.",
            ),
        }];
        if writing < Action::Deny && self.action_on(PathOp::Write, "tmp/x") < Action::Deny {
            all.push(Statement {
                text: "Put temporary files in `tmp/` and clear them away when you are done.".to_owned(),
                promises: vec![Promise {
                    what: Promised::Write("tmp/x".to_owned()),
                    freely: false,
                }],
            });
        }
        all
    }

    fn about_git(&self, surroundings: &Surroundings) -> Vec<Statement> {
        if !surroundings.git {
            return Vec::new();
        }
        vec![plain(
            "The workspace is a git repository. File tools do not write in `.git`.",
        )]
    }

    fn about_outside(&self) -> Vec<Statement> {
        let read = self.action_on(PathOp::Read, SAMPLE_OUTSIDE);
        let write = match self.offers_writes() {
            true => self.action_on(PathOp::Write, SAMPLE_OUTSIDE),
            false => Action::Deny,
        };
        let mut promises = Vec::new();
        if read < Action::Deny {
            promises.push(Promise {
                what: Promised::Read(SAMPLE_OUTSIDE.to_owned()),
                freely: read == Action::Allow,
            });
        }
        if write < Action::Deny {
            promises.push(Promise {
                what: Promised::Write(SAMPLE_OUTSIDE.to_owned()),
                freely: write == Action::Allow,
            });
        }
        let text = match (read, write) {
            (Action::Deny, Action::Deny) => {
                "Nothing outside the workspace can be read or written.".to_owned()
            }
            _ => format!(
                "Outside the workspace, by absolute path: reading {}, writing {}.",
                spoken(read),
                spoken(write)
            ),
        };
        vec![Statement { text, promises }]
    }

    /// Grants that are not overruled.
    fn about_grants(&self) -> Vec<Statement> {
        let mut all = Vec::new();
        let writable = match self.offers_writes() {
            true => (&self.writable, PathOp::Write, "read and write"),
            false => (&self.writable, PathOp::Read, "read"),
        };
        for (patterns, op, verb) in [(&self.readable, PathOp::Read, "read"), writable] {
            let held: Vec<(&str, String)> = patterns
                .iter()
                .filter(|pattern| !pattern.source().contains('['))
                .map(|pattern| (pattern.source(), sample_of(pattern)))
                .filter(|(_, path)| {
                    self.action_on(op, path) == Action::Allow
                        && self.action_on(PathOp::Read, path) == Action::Allow
                })
                .collect();
            if held.is_empty() {
                continue;
            }
            let promises = held
                .iter()
                .map(|(_, path)| {
                    let what = match op {
                        PathOp::Read => Promised::Read(path.clone()),
                        PathOp::Write => Promised::Write(path.clone()),
                    };
                    Promise { what, freely: true }
                })
                .collect();
            let names: Vec<&str> = held.iter().map(|(source, _)| *source).collect();
            all.push(Statement {
                text: format!("You may also {verb}: {}.", list(&names)),
                promises,
            });
        }
        all
    }

    fn about_off_limits(&self) -> Vec<Statement> {
        let names: Vec<&str> = self.denied.iter().map(super::PathPattern::source).collect();
        if names.is_empty() {
            return Vec::new();
        }
        vec![Statement {
            text: format!(
                "Off limits, also to commands: {}. Do not look for ways around this.",
                list(&names)
            ),
            promises: vec![],
        }]
    }

    fn about_path_rules(&self) -> Vec<Statement> {
        self.path_rules
            .iter()
            .flat_map(|rule| {
                let written = rule.writes && self.offers_writes();
                let said: &[(PathOp, &str)] = match (rule.reads, written) {
                    (true, true) => &[(PathOp::Read, "Reading"), (PathOp::Write, "Writing")],
                    (true, false) => &[(PathOp::Read, "Reading")],
                    (false, true) => &[(PathOp::Write, "Writing")],
                    (false, false) => &[],
                };
                said.iter().map(move |(op, verb)| (rule, *op, *verb))
            })
            .filter_map(|(rule, op, verb)| self.about_path_rule(rule, op, verb))
            .collect()
    }

    /// By what is decided about a path that the rule names: an earlier rule or a denial may have the last word.
    fn about_path_rule(&self, rule: &PathRule, op: PathOp, verb: &str) -> Option<Statement> {
        let sample = sample_of(&rule.pattern);
        let source = rule.pattern.source();
        let text = match self.action_on(op, &sample) {
            _ if source.contains('[') => return None,
            Action::Allow => return self.about_allowed(rule, op, &sample),
            Action::Ask => format!("{verb} `{source}` needs approval."),
            Action::Deny => return Some(plain(&format!("{verb} `{source}` is not permitted."))),
        };
        let what = match op {
            PathOp::Read => Promised::Read(sample),
            PathOp::Write => Promised::Write(sample),
        };
        Some(Statement {
            text,
            promises: vec![Promise { what, freely: false }],
        })
    }

    /// A rule that lets files be written where the mode does not.
    fn about_allowed(&self, rule: &PathRule, op: PathOp, sample: &str) -> Option<Statement> {
        let place = self.ground.locate(sample, &Place::root());
        let is_news = op == PathOp::Write && self.judge_default(op, &place).action > Action::Allow;
        is_news.then(|| Statement {
            text: format!("Writing `{}` is allowed.", rule.pattern.source()),
            promises: vec![Promise {
                what: Promised::Write(sample.to_owned()),
                freely: true,
            }],
        })
    }

    fn about_shell(&self, surroundings: &Surroundings) -> Vec<Statement> {
        if !self.offers_shell() {
            return vec![plain("There is no shell: use the file tools.")];
        }
        let mut all = Vec::new();
        let default = self.action_of(SAMPLE_COMMAND);
        let promise = |line: &str, freely| Promise {
            what: Promised::Run(line.to_owned()),
            freely,
        };
        let named = |action: Action| -> Vec<&str> {
            self.command_rules
                .iter()
                .filter(|rule| rule.action == action && !rule.words.is_empty())
                .map(|rule| rule.pattern.as_str())
                .collect()
        };
        let free: Vec<&str> = named(Action::Allow)
            .into_iter()
            .filter(|line| self.action_of(line) == Action::Allow)
            .collect();
        let free_promises = free.iter().map(|line| promise(line, true)).collect();
        // A rule may allow what is then not certain enough: `sh` runs what its input holds.
        let asking: Vec<&str> = [named(Action::Allow), named(Action::Ask)]
            .concat()
            .into_iter()
            .filter(|line| self.action_of(line) == Action::Ask)
            .collect();
        match default {
            Action::Allow => all.push(Statement {
                text: "Shell commands run without approval, as far as their paths are allowed.".to_owned(),
                promises: vec![promise(SAMPLE_COMMAND, true)],
            }),
            Action::Ask => {
                let mut promises: Vec<Promise> = free_promises;
                promises.push(promise(SAMPLE_COMMAND, false));
                let except = if free.is_empty() {
                    String::new()
                } else {
                    format!(", except those that begin with {}", list(&free))
                };
                all.push(Statement {
                    text: format!("Shell commands need approval{except}."),
                    promises,
                });
            }
            Action::Deny => all.push(self.about_few_commands(&free, &asking)),
        }
        let refused = match self.unattended {
            true => [named(Action::Deny), named(Action::Ask)].concat(),
            false => named(Action::Deny),
        };
        if !refused.is_empty() && default < Action::Deny {
            all.push(plain(&format!("Never run: {}.", list(&refused))));
        }
        if !asking.is_empty() && default == Action::Allow {
            all.push(Statement {
                text: format!("Needs approval: {}.", list(&asking)),
                promises: asking.iter().map(|line| promise(line, false)).collect(),
            });
        }
        all.push(plain("Every command in a line is judged, and the paths it names as well. Write plain commands: what cannot be read with certainty is not run without a person."));
        if surroundings.background {
            all.push(plain(
                "Start servers and watchers with background: true; read and end them with their process id.",
            ));
        }
        if let Some(venv) = &surroundings.venv {
            all.push(plain(&format!(
                "The Python environment `{venv}` is active for every command."
            )));
        }
        all.extend(self.about_packages(surroundings));
        all
    }

    fn about_few_commands(&self, free: &[&str], asking: &[&str]) -> Statement {
        let mut parts = Vec::new();
        if !free.is_empty() {
            parts.push(format!("commands that begin with {}", list(free)));
        }
        if !asking.is_empty() {
            parts.push(format!("with approval those that begin with {}", list(asking)));
        }
        let promise = |lines: &[&str], freely| -> Vec<Promise> {
            lines
                .iter()
                .map(|line| Promise {
                    what: Promised::Run((*line).to_owned()),
                    freely,
                })
                .collect()
        };
        Statement {
            text: format!("The shell runs only {}.", parts.join(", ")),
            promises: [promise(free, true), promise(asking, false)].concat(),
        }
    }

    fn about_packages(&self, surroundings: &Surroundings) -> Option<Statement> {
        let name = surroundings.package_manager.as_deref()?;
        (self.action_of(name) < Action::Deny).then(|| Statement {
            text: format!("The project uses `{name}`: use it, not another package manager."),
            promises: vec![Promise {
                what: Promised::Run(name.to_owned()),
                freely: false,
            }],
        })
    }
}

fn plain(text: &str) -> Statement {
    Statement {
        text: text.to_owned(),
        promises: vec![],
    }
}

fn spoken(action: Action) -> &'static str {
    match action {
        Action::Allow => "is allowed",
        Action::Ask => "needs approval",
        Action::Deny => "is not permitted",
    }
}

fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
