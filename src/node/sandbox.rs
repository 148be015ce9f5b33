//! Commands in containers, for JavaScript.

use super::CancelHandle;
use super::attended::{NativeAttended, NativeExit, OnExit, attend};
use super::broker::NativeBroker;
use super::convert::whole;
use super::process::{LIVE_PIECES, NativeExecResult, OnOutput, deliver, end_with_environment};
use crate::error::{Error, ErrorCode, Result};
use crate::process::env::inheritable;
use crate::process::output::{CaptureOptions, Keep};
use crate::sandbox::docker::options::{
    EgressMode, Network, Options, Reuse, Transport, User, check_hosts, parse_memory,
};
use crate::sandbox::docker::run::{RunCall, RunResult};
use crate::sandbox::docker::{Sandbox, inside};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi_derive::napi;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[napi]
pub struct NativeSandbox {
    sandbox: Arc<Sandbox>,
}

#[napi(object, object_to_js = false)]
pub struct NativeSandboxOptions {
    pub image: String,
    /// `none`, `default` or `allow`.
    pub network: String,
    pub allow: Vec<String>,
    #[napi(ts_type = "'socket' | 'network'")]
    pub egress: Option<String>,
    pub network_name: Option<String>,
    pub socket_path: Option<String>,
    /// `host` for the caller's own.
    pub user: Option<String>,
    pub memory: Option<String>,
    pub cpus: Option<f64>,
    pub pids_limit: f64,
    pub read_only_root: bool,
    pub tmpfs: HashMap<String, String>,
    pub labels: HashMap<String, String>,
    #[napi(ts_type = "'command' | 'pool' | 'session'")]
    pub reuse: String,
    #[napi(ts_type = "'socket' | 'attach'")]
    pub transport: Option<String>,
    /// `process.env` as JSON: where the engine is.
    pub host_env: String,
}

#[napi(object, object_to_js = false)]
pub struct NativeRunRequest {
    pub command: Vec<String>,
    pub root: String,
    pub cwd: String,
    pub env: HashMap<String, String>,
    pub input: Option<Either<String, Uint8Array>>,
    /// None for what runs on.
    pub timeout_ms: Option<f64>,
    pub max_output_bytes: f64,
}

#[napi(object, object_from_js = false)]
pub struct NativeRunResult {
    pub exec: NativeExecResult,
    pub oom_killed: bool,
    pub hint: Option<String>,
}

/// The hosts of an allow list as they are compared, or an error for what is none.
#[napi]
pub fn check_allow_list(hosts: Vec<String>) -> napi::Result<Vec<String>> {
    Ok(check_hosts(&hosts)?)
}

/// Refuses a name or value that no environment can hold.
#[napi]
pub fn check_variables(env: HashMap<String, String>) -> napi::Result<()> {
    let env: Vec<(String, String)> = env.into_iter().collect();
    Ok(crate::process::env::validate(&env, "env")?)
}

/// Whether a list of names to inherit may carry this variable.
#[napi]
pub fn is_inheritable(name: String) -> bool {
    inheritable(&name)
}

#[napi]
impl NativeSandbox {
    #[napi(constructor)]
    pub fn new(env: Env, options: NativeSandboxOptions, broker: Option<&NativeBroker>) -> napi::Result<Self> {
        let host_env = serde_json::from_str(&options.host_env).map_err(|error| {
            Error::new(
                ErrorCode::Internal,
                format!("process.env did not arrive: {error}"),
            )
        })?;
        let sandbox = Sandbox::new(checked(options)?, broker.map(NativeBroker::shared), host_env);
        let sandbox = Arc::new(sandbox);
        let weak = Arc::downgrade(&sandbox);
        end_with_environment(env, weak)?;
        Ok(Self { sandbox })
    }

    #[napi]
    pub fn run<'env>(
        &self,
        env: &'env Env,
        request: NativeRunRequest,
        cancel: Option<&CancelHandle>,
        on_output: Option<OnOutput>,
    ) -> napi::Result<PromiseRaw<'env, NativeRunResult>> {
        inside(&request.root, &request.cwd)?;
        let root = request.root.clone();
        let call = run_call(request)?;
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        let sandbox = self.sandbox.clone();
        env.spawn_future(async move {
            let result = match on_output {
                None => sandbox.run(&root, call, None, &token).await,
                Some(listener) => {
                    let (sender, receiver) = mpsc::channel(LIVE_PIECES);
                    let run = sandbox.run(&root, call, Some(sender), &token);
                    tokio::join!(run, deliver(receiver, listener)).0
                }
            };
            Ok(result?.into())
        })
    }

    /// As `run`; answers once the command runs. Output and end are told.
    #[napi]
    pub fn spawn<'env>(
        &self,
        env: &'env Env,
        request: NativeRunRequest,
        cancel: Option<&CancelHandle>,
        on_output: OnOutput,
        on_exit: OnExit,
    ) -> napi::Result<PromiseRaw<'env, NativeAttended>> {
        inside(&request.root, &request.cwd)?;
        let root = request.root.clone();
        let mut call = run_call(request)?;
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        let sandbox = self.sandbox.clone();
        env.spawn_future(async move {
            let work = |live, started, kill: CancellationToken| async move {
                call.started = Some(started);
                let result = sandbox.run(&root, call, Some(live), &kill).await?;
                Ok(NativeExit {
                    exit_code: result.exec.exit_code,
                    signal: result.exec.signal,
                    oom_killed: result.oom_killed,
                    hint: result.hint,
                })
            };
            Ok(attend(work, on_output, on_exit, token).await?)
        })
    }

    #[napi]
    pub async fn close(&self) {
        self.sandbox.close().await;
    }
}

fn checked(options: NativeSandboxOptions) -> Result<Options> {
    let hosts = check_hosts(&options.allow)?;
    let pids_limit = whole("pidsLimit", options.pids_limit, 1)?;
    Ok(Options {
        image: options.image,
        network: match options.network.as_str() {
            "default" => Network::Default,
            "allow" => Network::Allow(hosts),
            _ => Network::None,
        },
        egress: options.egress.map(|mode| match mode.as_str() {
            "network" => EgressMode::Network,
            _ => EgressMode::Socket,
        }),
        network_name: options.network_name,
        socket_path: options.socket_path.map(Into::into),
        user: match options.user {
            None => User::Image,
            Some(user) if user == "host" => User::Caller,
            Some(user) => User::Named(user),
        },
        memory: options.memory.as_deref().map(parse_memory).transpose()?,
        cpus: options.cpus,
        pids_limit: u32::try_from(pids_limit).unwrap_or(u32::MAX),
        read_only_root: options.read_only_root,
        tmpfs: options.tmpfs.into_iter().collect(),
        labels: options.labels.into_iter().collect(),
        reuse: match options.reuse.as_str() {
            "pool" => Reuse::Pool,
            "session" => Reuse::Session,
            _ => Reuse::Command,
        },
        transport: options.transport.map(|transport| match transport.as_str() {
            "attach" => Transport::Attach,
            _ => Transport::Socket,
        }),
    })
}

fn run_call(request: NativeRunRequest) -> Result<RunCall> {
    Ok(RunCall {
        command: request.command,
        cwd: request.cwd,
        env: request.env.into_iter().collect(),
        input: request.input.map(|input| match input {
            Either::A(text) => text.into_bytes(),
            Either::B(bytes) => bytes.to_vec(),
        }),
        timeout: match request.timeout_ms {
            Some(milliseconds) => Some(Duration::from_millis(whole("timeoutMs", milliseconds, 1)?)),
            None => None,
        },
        capture: CaptureOptions {
            max_bytes: whole("maxOutputBytes", request.max_output_bytes, 0)? as usize,
            shared: false,
            keep: Keep::HeadTail,
        },
        started: None,
    })
}

impl From<RunResult> for NativeRunResult {
    fn from(result: RunResult) -> Self {
        Self {
            exec: result.exec.into(),
            oom_killed: result.oom_killed,
            hint: result.hint,
        }
    }
}
