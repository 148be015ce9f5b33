//! What the addon and `croft-exec` share: the messages, the channel they travel on, and the search for a
//! command's descendants. Supervising a command is left to the binary, starting it to the addon.

#[cfg(unix)]
pub mod channel;
#[cfg(unix)]
pub mod container;
#[cfg(unix)]
pub mod descendants;
#[cfg(unix)]
pub mod wire;
