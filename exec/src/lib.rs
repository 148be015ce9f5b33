//! The messages between the addon and `croft-exec`. Sending and obeying them is left to each side.
