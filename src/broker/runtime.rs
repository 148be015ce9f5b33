//! The broker's own threads: traffic must go on while Node's event loop is blocked and while other work of the addon
//! fills the shared runtime.

use crate::error::{Error, ErrorCode, Result};
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// Two carry some 60,000 requests a second; more would take cores from the commands that make them. On a single core a
/// second one only adds wake-ups.
const MAX_WORKERS: usize = 2;
/// getaddrinfo blocks a thread per lookup.
const MAX_LOOKUP_THREADS: usize = 32;

static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();

/// Started at first use and kept: starting and stopping a broker starts and stops no thread.
pub fn runtime() -> Result<&'static Runtime> {
    let build = || {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(cores.min(MAX_WORKERS))
            .max_blocking_threads(MAX_LOOKUP_THREADS)
            .thread_name("croft-broker");
        builder.enable_all().build().ok()
    };
    RUNTIME.get_or_init(build).as_ref().ok_or_else(|| {
        Error::new(
            ErrorCode::BrokerFailed,
            "the broker's threads could not be started",
        )
    })
}
