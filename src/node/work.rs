//! Where a call runs: on the spot when it cannot wait, else with one hop to libuv's pool and back.
//! (A tokio `spawn_blocking` inside an async fn would be two hops, six times the cost of one.)

use crate::error::{Error, ErrorCode, Result};
use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName};
use napi::{Env, Task, sys};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Job<T> = Box<dyn FnOnce() -> Result<T> + Send>;

/// A job for libuv's pool.
pub struct Work<T>(Option<Job<T>>);

impl<T: ToNapiValue + TypeName + Send + 'static> Task for Work<T> {
    type Output = T;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<T> {
        match self.0.take() {
            Some(job) => Ok(guard(job)?),
            None => Err(napi::Error::from_reason("job started twice")),
        }
    }

    fn resolve(&mut self, _env: Env, output: T) -> napi::Result<T> {
        Ok(output)
    }
}

/// A panic must not cross into C: it would end the Node process.
pub(super) fn guard<T>(job: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| {
        Err(Error::new(
            ErrorCode::Internal,
            "croft failed unexpectedly; please report this with the call you made",
        ))
    })
}

/// A value now, or a promise of one: `await` in TypeScript takes both.
pub enum Answer<T: ToNapiValue + TypeName + Send + 'static> {
    Now(T),
    Later(AsyncTask<Work<T>>),
}

impl<T: ToNapiValue + TypeName + Send + 'static> Answer<T> {
    /// Runs `job` here if `instant`, else on the pool.
    pub fn run(instant: bool, job: impl FnOnce() -> Result<T> + Send + 'static) -> napi::Result<Self> {
        if instant {
            Ok(Answer::Now(guard(job)?))
        } else {
            Ok(Answer::Later(off_thread(job)))
        }
    }

    /// Takes the answer that needed no waiting, else runs `job` on the pool.
    pub fn or_later(
        now: Option<Result<T>>,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> napi::Result<Self> {
        match now {
            Some(answer) => Ok(Answer::Now(answer?)),
            None => Ok(Answer::Later(off_thread(job))),
        }
    }
}

pub fn off_thread<T>(job: impl FnOnce() -> Result<T> + Send + 'static) -> AsyncTask<Work<T>>
where
    T: ToNapiValue + TypeName + Send + 'static,
{
    AsyncTask::new(Work(Some(Box::new(job))))
}

impl<T: ToNapiValue + TypeName + Send + 'static> ToNapiValue for Answer<T> {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller upholds the contract of `to_napi_value`, which is passed on unchanged.
        unsafe {
            match value {
                Answer::Now(value) => T::to_napi_value(env, value),
                Answer::Later(task) => ToNapiValue::to_napi_value(env, task),
            }
        }
    }
}
