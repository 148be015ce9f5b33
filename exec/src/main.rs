//! Supervises one command.
fn main() {}
