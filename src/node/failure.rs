//! How an error crosses to JavaScript: as the reason of a plain error, in JSON, so that it takes the same route
//! from sync functions, async tasks and futures alike. ts/call.ts turns it into the class with a useful stack,
//! which natively built rejections do not have.

use crate::error::Error;

const PREFIX: &str = "croft:";

impl From<Error> for napi::Error {
    fn from(error: Error) -> Self {
        let wire =
            serde_json::json!({ "code": error.code.as_str(), "message": error.message, "path": error.path });
        napi::Error::from_reason(format!("{PREFIX}{wire}"))
    }
}
