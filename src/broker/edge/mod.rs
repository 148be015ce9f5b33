//! The strict HTTP/1 edge: what hyper's parser lets pass and a proxy must not (two Hosts, bare LF, a fragment,
//! Content-Length beside Transfer-Encoding, unclean chunks) is refused here, before hyper sees a byte. `head` and `chunk`
//! are pure; `guard` applies them to a socket. Which host a request may reach is left to `route`.

pub mod chunk;
pub mod guard;
pub mod head;
pub mod wire;
