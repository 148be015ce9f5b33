//! The policy, for JavaScript: options in, verdicts out, and the tree put behind it.

use super::tree::NativeTree;
use super::work::guard;
use crate::error::{Error, ErrorCode, Result};
use crate::path::Platform;
use crate::policy::{Action, PathOp, Place, Policy, PolicyGate, PolicyOptions, Surroundings, Verdict};
use crate::tree::{DiskOptions, DiskTree, GatedTree, RoutedTree, Tree};
use napi::bindgen_prelude::Either;
use napi_derive::napi;
use std::path::Path;
use std::sync::{Arc, Weak};

#[napi(object, object_from_js = false)]
pub struct NativeDecision {
    #[napi(ts_type = "'allow' | 'ask' | 'deny'")]
    pub action: &'static str,
    pub reason: String,
}

impl From<Verdict> for NativeDecision {
    fn from(verdict: Verdict) -> Self {
        Self {
            action: verdict.action.as_str(),
            reason: verdict.reason,
        }
    }
}

/// The commands that a line would start.
#[napi(object, object_from_js = false)]
pub struct NativeFoundCommands {
    /// The words of each; one that only the shell knows is missing.
    pub commands: Vec<Vec<Option<String>>>,
    pub certain: bool,
}

#[napi]
pub struct NativePolicy {
    policy: Arc<Policy>,
    /// Not behind the gate: it only tells where links lead. Weak, so that closing the workspace lets go of the root.
    tree: Weak<dyn Tree>,
}

#[napi]
impl NativePolicy {
    #[napi]
    pub fn decide_path(
        &self,
        path: String,
        #[napi(ts_arg_type = "'read' | 'write'")] op: String,
    ) -> napi::Result<NativeDecision> {
        Ok(guard(|| {
            let op = PathOp::parse(&op).ok_or_else(|| {
                Error::new(
                    ErrorCode::InvalidArgument,
                    format!("op must be 'read' or 'write', not {op:?}"),
                )
            })?;
            Ok(decide_path(&self.policy, self.tree.upgrade().as_deref(), &path, op).into())
        })?)
    }

    #[napi]
    pub fn decide_command(
        &self,
        command: Either<String, Vec<String>>,
        cwd: String,
    ) -> napi::Result<NativeDecision> {
        Ok(guard(|| {
            Ok(match command {
                Either::A(line) => self.policy.decide_command(&line, &cwd),
                Either::B(words) => self.policy.decide_arguments(&words, &cwd),
            }
            .into())
        })?)
    }

    /// `decideCommand` with prefixes that a person allowed before.
    #[napi]
    pub fn decide_granted(
        &self,
        line: String,
        cwd: String,
        grants: Vec<String>,
    ) -> napi::Result<NativeDecision> {
        Ok(guard(|| {
            Ok(self.policy.decide_granted(&line, &cwd, &grants)?.into())
        })?)
    }

    /// Where links lead, as the policy names it; `null` for a path that is not there or not reachable.
    #[napi]
    pub fn resolve(&self, path: String) -> napi::Result<Option<String>> {
        Ok(guard(|| {
            let resolved = self.tree.upgrade().and_then(|tree| tree.resolved(&path).ok());
            Ok(resolved.map(|resolved| self.policy.locate(&resolved, &Place::root()).shown().to_owned()))
        })?)
    }

    /// `path` by its letters, as the policy names it.
    #[napi]
    pub fn locate(&self, path: String) -> napi::Result<String> {
        Ok(guard(|| {
            Ok(self
                .policy
                .locate(&path.replace('\\', "/"), &Place::root())
                .shown()
                .to_owned())
        })?)
    }

    /// `surroundings`: JSON, see `policy::Surroundings`.
    #[napi]
    pub fn instructions(&self, surroundings: String) -> napi::Result<String> {
        Ok(guard(|| {
            let surroundings: Surroundings = parse(&surroundings)?;
            Ok(self.policy.instructions(&surroundings))
        })?)
    }

    /// JSON for executors.
    #[napi]
    pub fn snapshot(&self) -> napi::Result<String> {
        Ok(guard(|| {
            serde_json::to_string(&self.policy.snapshot())
                .map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))
        })?)
    }

    #[napi(getter)]
    pub fn offers_writes(&self) -> bool {
        self.policy.offers_writes()
    }

    #[napi(getter)]
    pub fn offers_shell(&self) -> bool {
        self.policy.offers_shell()
    }

    #[napi(getter)]
    pub fn is_configured(&self) -> bool {
        self.policy.is_configured()
    }
}

/// For shells that are not a workspace of ours: every command asks, and so does every file that is written.
#[napi]
pub fn asking_policy() -> napi::Result<NativePolicy> {
    Ok(guard(|| {
        let asking =
            r#"{"policy":{"writeInside":"ask","readOutside":"allow","writeOutside":"ask","shell":"ask"}}"#;
        let policy = Arc::new(read_options(Some(asking), MEMORY_ROOT, None)?);
        Ok(NativePolicy {
            policy,
            tree: Weak::<crate::tree::MemoryTree>::new(),
        })
    })?)
}

#[napi]
pub fn find_commands(line: String) -> napi::Result<NativeFoundCommands> {
    Ok(guard(|| {
        let found = Policy::find_commands(&line);
        Ok(NativeFoundCommands {
            commands: found.commands,
            certain: found.certain,
        })
    })?)
}

/// A path that is not there yet, or whose link is refused by the tree, is judged by its letters: whoever uses it
/// then gets the tree's own refusal.
fn decide_path(policy: &Policy, tree: Option<&dyn Tree>, path: &str, op: PathOp) -> Verdict {
    let asked = policy.locate(&path.replace('\\', "/"), &Place::root());
    let resolved = match tree.map_or_else(|| Ok(asked.shown().to_owned()), |tree| tree.resolved(path)) {
        Ok(resolved) => policy.locate(&resolved, &Place::root()),
        Err(error) if error.code == ErrorCode::LinkRefused => {
            return policy
                .decide_path(op, &asked, &asked)
                .stricter(Verdict::new(Action::Deny, error.message));
        }
        Err(_) => asked.clone(),
    };
    policy.decide_path(op, &asked, &resolved)
}

/// A tree with its policy around it.
pub(super) struct Guarded {
    pub tree: Arc<dyn Tree>,
    pub policy: NativePolicy,
}

/// `policy`: the options as JSON, without the root.
pub(super) fn guard_disk(
    mut disk: DiskTree,
    options: &DiskOptions,
    policy: Option<&str>,
) -> Result<(Guarded, Arc<DiskTree>)> {
    let real = text(disk.real_path())?;
    let alias = std::path::absolute(&options.root)
        .ok()
        .and_then(|path| text(&path).ok());
    let policy = Arc::new(read_options(policy, &real, alias.clone())?.following(crate::tree::follow_links));
    if policy.judges_inside() {
        disk.set_gate(Arc::new(PolicyGate::new(policy.clone(), None)));
    }
    let disk = Arc::new(disk);
    let mut others = Vec::new();
    for folder in policy.more_roots() {
        others.extend(open_root(&folder, &policy, options)?);
    }
    let mut tree: Arc<dyn Tree> = disk.clone();
    if policy.is_configured() || !others.is_empty() {
        let prefixes = [Some(real), alias].into_iter().flatten().collect();
        tree = Arc::new(RoutedTree::new(tree, prefixes, others));
    }
    Ok((guarded(tree, policy), disk))
}

pub(super) fn guard_memory(tree: Arc<dyn Tree>, policy: Option<&str>) -> Result<Guarded> {
    let policy = Arc::new(read_options(policy, MEMORY_ROOT, None)?);
    Ok(guarded(tree, policy))
}

/// Where a tree in memory is for absolute patterns and commands. Nothing on the disk is meant.
const MEMORY_ROOT: &str = "/workspace";

fn guarded(tree: Arc<dyn Tree>, policy: Arc<Policy>) -> Guarded {
    let native = NativePolicy {
        policy: policy.clone(),
        tree: Arc::downgrade(&tree),
    };
    let tree: Arc<dyn Tree> = if policy.is_configured() {
        Arc::new(GatedTree::new(tree, Arc::new(PolicyGate::new(policy, None))))
    } else {
        tree
    };
    Guarded { tree, policy: native }
}

fn read_options(json: Option<&str>, root: &str, alias: Option<String>) -> Result<Policy> {
    let mut options: PolicyOptions = parse(json.unwrap_or("{}"))?;
    options.root = root.to_owned();
    options.root_alias = alias;
    Policy::new(options, &|path| {
        let real = std::fs::canonicalize(path).ok()?;
        text(&real).ok()
    })
}

/// A root of its own, with the same confinement, by each of its names: as it is, and as the user wrote it, which may
/// lead through a link (`/tmp` on macOS). A grant of a file opens its folder; the policy keeps to the file.
fn open_root(folder: &str, policy: &Arc<Policy>, like: &DiskOptions) -> Result<Vec<(String, Arc<dyn Tree>)>> {
    let required = policy.requires_root(folder);
    let mut path = Path::new(folder);
    if !required && path.is_file() {
        path = path.parent().unwrap_or(path);
    }
    let opened = DiskTree::open(&DiskOptions {
        root: path.to_owned(),
        ..like.clone()
    });
    let mut tree = match opened {
        Ok(tree) => tree,
        Err(error) if required => return Err(error),
        // A grant may name what is not there.
        Err(_) => return Ok(Vec::new()),
    };
    let real = text(tree.real_path())?;
    tree.set_gate(Arc::new(PolicyGate::new(policy.clone(), Some(real.clone()))));
    let tree: Arc<dyn Tree> = Arc::new(tree);
    let mut names = vec![real, text(path)?];
    names.dedup();
    let prefix = |name: String| if name == "/" { String::new() } else { name };
    Ok(names
        .into_iter()
        .map(|name| (prefix(name), tree.clone()))
        .collect())
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| {
        Error::new(
            ErrorCode::InvalidArgument,
            "the root's path is not UTF-8: choose a directory whose path is",
        )
    })?;
    Ok(if Platform::HOST == Platform::Win32 {
        text.replace('\\', "/")
    } else {
        text.to_owned()
    })
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json)
        .map_err(|error| Error::new(ErrorCode::InvalidArgument, format!("policy options: {error}")))
}

#[napi]
impl NativeTree {
    /// What may be touched in it and run beside it.
    #[napi]
    pub fn policy(&self) -> NativePolicy {
        NativePolicy {
            policy: self.policy.policy.clone(),
            tree: self.policy.tree.clone(),
        }
    }
}
