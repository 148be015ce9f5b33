//! The native end of an AbortSignal. napi's own `AbortSignal` type overwrites `onabort` and misses a signal that
//! is already aborted, so ts/call.ts keeps one listener per signal and calls `cancel` here.

use napi_derive::napi;
use tokio_util::sync::CancellationToken;

#[napi]
#[derive(Default)]
pub struct CancelHandle {
    token: CancellationToken,
}

#[napi]
impl CancelHandle {
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Idempotent; work that checks the token ends soon after.
    #[napi]
    pub fn cancel(&self) {
        self.token.cancel();
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }
}
