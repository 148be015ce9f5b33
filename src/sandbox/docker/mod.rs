//! Commands in Docker containers: a hardened container per command, one started ahead of need, or one per session.
//!
//! The story of a command: `discover` and `engine` find the engine, `mounts` judges the directory, `plan` says what
//! the container may, `container` starts it with our init over a `channel`, `supply` decides which one a command
//! gets, `run` runs it there under the same supervisor as on the host (`attach` where no init of ours can be),
//! `egress` is its only way out, `owner` and
//! `sweep` see to it that nothing is left behind.

mod attach;
mod channel;
mod container;
mod discover;
mod egress;
mod engine;
mod mounts;
pub mod options;
mod owner;
mod plan;
pub mod run;
mod supply;
mod sweep;

use crate::broker::Broker;
use crate::error::{Error, ErrorCode, Result};
use crate::process::exec::LiveOutput;
use container::Yard;
use discover::Machine;
use egress::Egress;
use engine::{Engine, Kind};
use options::{Options, Reuse, Transport};
use run::{RunCall, RunResult};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use supply::Supply;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long `close` waits for containers to be gone.
const CLOSE_PATIENCE: Duration = Duration::from_secs(30);

pub struct Sandbox {
    options: Arc<Options>,
    broker: Option<Arc<Broker>>,
    /// The host's variables when the sandbox was made: where its engine is.
    host_env: HashMap<String, String>,
    open: OnceCell<Open>,
    closing: CancellationToken,
    calls: TaskTracker,
}

/// What exists once an engine was found.
struct Open {
    engine: Arc<Engine>,
    yard: Arc<Yard>,
    egress: Arc<Egress>,
    supply: Supply,
    transport: Transport,
    sweep: TaskTracker,
}

impl Sandbox {
    pub fn new(options: Options, broker: Option<Arc<Broker>>, host_env: HashMap<String, String>) -> Self {
        Sandbox {
            options: Arc::new(options),
            broker,
            host_env,
            open: OnceCell::new(),
            closing: CancellationToken::new(),
            calls: TaskTracker::new(),
        }
    }

    /// Runs to the end, or until `cancel` or `close`. `root` is mounted; `call.cwd` lies in it.
    pub async fn run(
        &self,
        root: &str,
        call: RunCall,
        live: Option<LiveOutput>,
        cancel: &CancellationToken,
    ) -> Result<RunResult> {
        self.check_open()?;
        self.calls
            .track_future(self.run_tracked(root, call, live, cancel))
            .await
    }

    async fn run_tracked(
        &self,
        root: &str,
        call: RunCall,
        live: Option<LiveOutput>,
        cancel: &CancellationToken,
    ) -> Result<RunResult> {
        if cancel.is_cancelled() {
            return Ok(run::aborted());
        }
        // Either of the two ends the command, and `run` sees it to its end.
        let stop = self.closing.child_token();
        let watch = async {
            cancel.cancelled().await;
            stop.cancel();
            std::future::pending::<()>().await
        };
        let work = async {
            let open = tokio::select! {
                open = self.open() => open?,
                () = stop.cancelled() => return Ok(run::aborted()),
            };
            let root = mounts::check(root, self.home(), &open.engine.socket)?;
            match open.transport {
                Transport::Socket => run::run(&open.supply, &self.options, &root, call, live, &stop).await,
                // Without our init nobody would end it after this process is killed, and it has no timeout.
                Transport::Attach if call.started.is_some() => {
                    Err(attach::unsupported("a background process"))
                }
                Transport::Attach => attach::run(&open.yard, &open.egress, &root, call, live, &stop).await,
            }
        };
        tokio::select! {
            result = work => result,
            () = watch => Err(closed()),
        }
    }

    /// Finds the engine at the first command; a failure is found again by the next one.
    async fn open(&self) -> Result<&Open> {
        self.open.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Open> {
        let places = self.places()?;
        let engine = Arc::new(engine::connect(places).await?);
        let transport = self.options.transport.unwrap_or(match engine.kind {
            Kind::Native | Kind::Rootless => Transport::Socket,
            Kind::Machine(_) => Transport::Attach,
        });
        if transport == Transport::Attach && self.options.reuse == Reuse::Session {
            return Err(attach::unsupported("reuse: 'session'"));
        }
        let egress = egress::decide(&self.options, self.broker.as_ref(), &engine, transport)?;
        let egress = Arc::new(egress);
        let yard = Arc::new(Yard {
            engine: engine.clone(),
            options: self.options.clone(),
            removals: TaskTracker::new(),
        });
        let sweep = TaskTracker::new();
        sweep.spawn(sweep::sweep(engine.api.clone()));
        Ok(Open {
            supply: Supply::new(yard.clone(), egress.clone()),
            engine,
            yard,
            egress,
            transport,
            sweep,
        })
    }

    fn places(&self) -> Result<Vec<discover::Place>> {
        let machine = Machine {
            env: &self.host_env,
            read: &|path| std::fs::read_to_string(path).ok(),
        };
        discover::places(self.options.socket_path.as_deref(), &machine)
    }

    fn home(&self) -> Option<&Path> {
        self.host_env.get("HOME").map(Path::new)
    }

    /// Ends every command, and returns when no container and no network of this sandbox is left. Idempotent.
    pub async fn close(&self) {
        self.closing.cancel();
        self.calls.close();
        self.calls.wait().await;
        let Some(open) = self.open.get() else { return };
        let gone = async {
            open.supply.close().await;
            open.yard.removals.close();
            open.yard.removals.wait().await;
            open.egress.close(&open.engine.api).await;
            open.sweep.close();
            open.sweep.wait().await;
        };
        let _ = tokio::time::timeout(CLOSE_PATIENCE, gone).await;
    }

    /// As `close`, for when nobody can wait any more.
    pub fn abandon(&self) {
        self.closing.cancel();
    }

    fn check_open(&self) -> Result<()> {
        if self.closing.is_cancelled() {
            Err(closed())
        } else {
            Ok(())
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the sandbox is closed: create a new one")
}

/// A path below `root`, or the reason why not.
pub fn inside(root: &str, cwd: &str) -> Result<PathBuf> {
    let path = PathBuf::from(cwd);
    if path.starts_with(root) {
        return Ok(path);
    }
    let message = format!("cwd \"{cwd}\" is not in \"{root}\", which is all that the container sees");
    Err(Error::new(ErrorCode::OutsideWorkspace, message).at(cwd))
}
