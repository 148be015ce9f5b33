//! Live output on its way to a listener that may be slow.

use super::LiveOutput;
use crate::process::output::Stream;
use std::collections::VecDeque;

/// Most text that waits for a slow listener; then the command's output waits too.
const MAX_BACKLOG_BYTES: usize = 1024 * 1024;

/// Hands text on without ever holding the reading up after the command has ended.
pub(super) struct Live {
    sender: LiveOutput,
    backlog: VecDeque<(Stream, String)>,
    backlog_bytes: usize,
}

impl Live {
    pub(super) fn new(sender: LiveOutput) -> Self {
        Live {
            sender,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
        }
    }

    pub(super) fn push(&mut self, stream: Stream, text: String) {
        if text.is_empty() {
            return;
        }
        self.backlog_bytes += text.len();
        self.backlog.push_back((stream, text));
        while let Ok(permit) = self.sender.try_reserve() {
            let Some((stream, text)) = self.backlog.pop_front() else {
                return;
            };
            self.backlog_bytes -= text.len();
            permit.send((stream, text));
        }
    }

    pub(super) async fn flush_one(&mut self) {
        match self.sender.clone().reserve_owned().await {
            Ok(permit) => {
                if let Some((stream, text)) = self.backlog.pop_front() {
                    self.backlog_bytes -= text.len();
                    permit.send((stream, text));
                }
            }
            // Nobody listens any more.
            Err(_) => {
                self.backlog.clear();
                self.backlog_bytes = 0;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.backlog_bytes > MAX_BACKLOG_BYTES
    }
}

/// Never returns when nothing waits.
pub(super) async fn flush(live: &mut Option<Live>) {
    match live {
        Some(live) if !live.is_empty() => live.flush_one().await,
        _ => std::future::pending().await,
    }
}
