//! One container with our init: started, greeted, removed. What it runs is left to `run`.

use super::channel::Channel;
use super::egress::Opening;
use super::engine::{Engine, refusal, unavailable};
use super::mounts::Root;
use super::options::Options;
use super::owner;
use super::plan::{self, Entry, Plan};
use crate::error::{Error, ErrorCode, Result};
use crate::process;
use bollard::Docker;
use bollard::errors::Error as ApiError;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// How long a started container's init may take to connect.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);
/// How long a removal is pursued; an engine that restarts is back by then.
const REMOVE_PATIENCE: Duration = Duration::from_secs(60);

/// What every container of a sandbox is started with.
pub struct Yard {
    pub engine: Arc<Engine>,
    pub options: Arc<Options>,
    /// Removals under way; `close` waits for them.
    pub removals: TaskTracker,
}

/// A container that waits for commands. Dropping it ends everything in it and removes it.
pub struct Container {
    pub channel: Mutex<Channel>,
    pub egress: Option<Opening>,
    leaving: Leaving,
}

/// Removes a container when dropped, however far its start has come.
pub struct Leaving {
    /// Or its id: the engine takes either.
    pub name: String,
    api: Docker,
    removals: TaskTracker,
    done: bool,
}

impl Yard {
    /// Not to be cancelled half-way by dropping: run it as a task.
    pub async fn start(&self, root: &Root, egress: &super::egress::Egress) -> Result<Container> {
        let socket = Socket::bind()?;
        let network = egress.network(&self.engine).await?;
        let entry = Entry::Init {
            helper: process::helper_path()?,
            socket: &socket.path,
            listen: egress.wants_listener(),
        };
        let body = plan::body(&Plan {
            options: &self.options,
            root,
            entry,
            network: &network,
            labels: owner::labels("command", &self.options.labels),
            caller: caller(),
        });
        let leaving = self.create(body).await?;
        let started = self
            .engine
            .api
            .start_container(&leaving.name, None::<StartContainerOptions>)
            .await;
        started.map_err(|error| self.explain_start(&error))?;
        let greeted = tokio::time::timeout(CONNECT_PATIENCE, socket.greet()).await;
        let (channel, listener) = match greeted {
            Ok(Ok(greeted)) => greeted,
            Ok(Err(error)) => {
                return Err(unavailable(format!(
                    "the container started, but its init did not connect ({error}): set transport: 'attach' for an \
                     engine that does not share this machine's kernel"
                )));
            }
            Err(_) => {
                return Err(unavailable(format!(
                    "the container started, but its init did not connect within {} s: the engine may run on another \
                     machine or be overloaded",
                    CONNECT_PATIENCE.as_secs()
                )));
            }
        };
        let egress = egress.open(listener).await?;
        Ok(Container {
            channel: Mutex::new(channel),
            egress,
            leaving,
        })
    }

    async fn create(&self, body: bollard::models::ContainerCreateBody) -> Result<Leaving> {
        let name = format!("croft-{}", random_name()?);
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let leaving = self.leaving(name);
        match self.engine.api.create_container(Some(options), body).await {
            Ok(_) => Ok(leaving),
            Err(error) => {
                let refused = refusal(&error).is_some();
                let explained = explain_create(&error, &self.options.image);
                if refused {
                    // The engine said no: there is nothing to remove.
                    leaving.forget();
                }
                Err(explained)
            }
        }
    }

    /// Sees to it that this container is removed.
    pub fn leaving(&self, name: String) -> Leaving {
        Leaving {
            name,
            api: self.engine.api.clone(),
            removals: self.removals.clone(),
            done: false,
        }
    }

    pub fn explain_start(&self, error: &ApiError) -> Error {
        match refusal(error) {
            Some((_, message)) if message.contains("exec format error") => unavailable(format!(
                "the image \"{}\" is for another processor than this machine's: pull it for this platform",
                self.options.image
            )),
            Some((_, message)) => unavailable(format!(
                "the container could not be started: {}",
                first_line(message)
            )),
            None => unavailable(format!(
                "the Docker engine went away while a container was starting: {error}"
            )),
        }
    }
}

pub fn explain_create(error: &ApiError, image: &str) -> Error {
    match refusal(error) {
        Some((404, _)) => unavailable(format!(
            "the image \"{image}\" is not on this machine, and a sandbox pulls none by itself: run docker pull {image}"
        )),
        Some((400, message)) if message.contains("bind source path does not exist") => unavailable(
            "the Docker engine does not see this machine's files, so it cannot mount cwd: is this process itself in a \
             container, or with a private /tmp? Use a directory that both share",
        ),
        Some((_, message)) => unavailable(format!(
            "the Docker engine refused the container: {}",
            first_line(message)
        )),
        None => unavailable(format!("the Docker engine does not answer: {error}")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

pub fn caller() -> (u32, u32) {
    (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    )
}

pub fn random_name() -> Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorCode::Io, format!("no random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Container {
    /// Ends everything in it now. The handle is done when the container is gone.
    pub fn remove(mut self) -> JoinHandle<()> {
        self.egress = None;
        self.leaving.start()
        // The channel closes here, with `self`: the init exits, and the kernel ends the rest.
    }

    /// Ends everything in it now, also what others run in it. It is removed when the last of them lets go.
    pub async fn end(&self) {
        self.channel.lock().await.hang_up();
    }

    pub async fn is_gone(&self) -> bool {
        self.channel.lock().await.is_closed()
    }
}

impl Leaving {
    /// The handle is done when it is gone.
    pub fn remove(mut self) -> JoinHandle<()> {
        self.start()
    }

    fn forget(mut self) {
        self.done = true;
    }

    fn start(&mut self) -> JoinHandle<()> {
        self.done = true;
        let work = remove(self.api.clone(), self.name.clone());
        self.removals.spawn(work)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the lifeline does the rest.
        if !self.done && tokio::runtime::Handle::try_current().is_ok() {
            drop(self.start());
        }
    }
}

/// Until it is gone. 404 and 409 are no failures: somebody, perhaps the engine itself, was faster.
pub async fn remove(api: Docker, name: String) {
    let pursue = async {
        let mut pause = Duration::from_millis(20);
        loop {
            let options = RemoveContainerOptionsBuilder::default()
                .force(true)
                .v(true)
                .build();
            match api.remove_container(&name, Some(options)).await {
                Ok(()) => return,
                Err(error) => match refusal(&error) {
                    Some((404, _)) => return,
                    // Being removed: seen to its end, so that "gone" means gone.
                    Some((409, _)) if is_missing(&api, &name).await => return,
                    _ => {}
                },
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    };
    let _ = tokio::time::timeout(REMOVE_PATIENCE, pursue).await;
}

async fn is_missing(api: &Docker, name: &str) -> bool {
    let inspected = api.inspect_container(name, None::<InspectContainerOptions>).await;
    matches!(inspected, Err(error) if refusal(&error).is_some_and(|(status, _)| status == 404))
}

/// The socket that a container is given: in a directory that only this user enters, gone once connected.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
    folder: PathBuf,
}

impl Socket {
    fn bind() -> Result<Socket> {
        let failed = |error: std::io::Error| {
            Error::new(
                ErrorCode::Io,
                format!("no socket for a container could be made: {error}"),
            )
        };
        let folder = std::env::temp_dir().join(format!("{}{}", owner::file_prefix(), random_name()?));
        make_private(&folder).map_err(failed)?;
        let path = folder.join("socket");
        let bound = UnixListener::bind(&path).and_then(|listener| {
            // The container's user is any number; who may get here at all is decided by the directory.
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
            Ok(listener)
        });
        match bound {
            Ok(listener) => Ok(Socket {
                listener,
                path,
                folder,
            }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&folder);
                Err(failed(error))
            }
        }
    }

    /// The first to connect is the init, before any command can run; nobody is let in after it.
    async fn greet(self) -> std::io::Result<(Channel, Option<std::net::TcpListener>)> {
        let (stream, _) = self.listener.accept().await?;
        drop(self);
        Channel::greet(stream).await
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.folder);
    }
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(folder)
}
