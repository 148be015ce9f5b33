//! The broker's defaults and ceilings, with their units.

use crate::broker::edge::head::HeadLimits;

#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A request head, from its first byte.
    pub header_ms: u64,
    /// Name, TCP and TLS together, for one upstream connection.
    pub connect_ms: u64,
    /// A header function.
    pub function_ms: u64,
    /// From the request's last byte to the answer's head. Models think for minutes.
    pub response_ms: u64,
    /// No byte moves in either direction, of a body or a tunnel.
    pub idle_ms: u64,
    /// Between two requests of one client connection.
    pub keep_alive_ms: u64,
    /// One direction of a tunnel is closed and the other idles.
    pub half_close_ms: u64,
    /// An unused upstream connection.
    pub pool_idle_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            header_ms: 10_000,
            connect_ms: 10_000,
            function_ms: 10_000,
            response_ms: 300_000,
            idle_ms: 300_000,
            keep_alive_ms: 60_000,
            half_close_ms: 60_000,
            pool_idle_ms: 60_000,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_head_bytes: usize,
    pub max_target_bytes: usize,
    pub max_headers: usize,
    /// Of one listener; local tools all come from one peer, so the limit per peer is as high unless lowered.
    pub max_connections: usize,
    pub max_connections_per_peer: usize,
    /// Idle upstream connections kept per host.
    pub max_idle_per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_head_bytes: 64 * 1024,
            max_target_bytes: 16 * 1024,
            max_headers: 100,
            max_connections: 8192,
            max_connections_per_peer: 8192,
            max_idle_per_host: 64,
        }
    }
}

impl Limits {
    pub fn head(&self) -> HeadLimits {
        HeadLimits {
            max_head_bytes: self.max_head_bytes,
            max_target_bytes: self.max_target_bytes,
            max_headers: self.max_headers,
        }
    }
}

/// Addresses tried for one name.
pub const MAX_ADDRESSES_TRIED: usize = 8;
/// Longest injected value.
pub const MAX_HEADER_VALUE_BYTES: usize = 16 * 1024;
/// A ClientHello held back while its server name is read.
pub const MAX_CLIENT_HELLO_BYTES: usize = 64 * 1024;
/// How long an upload waits for the upstream's `100 Continue` (RFC 9110 10.1.1 forbids waiting for ever).
pub const EXPECT_WAIT_MS: u64 = 1_000;
