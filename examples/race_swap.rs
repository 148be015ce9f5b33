//! The attacker of the race tests: swaps pairs of names with `renameat2(RENAME_EXCHANGE)` in a tight loop until
//! its standard input is closed. `race_swap DIR A B [C D ...]`
#![allow(clippy::unwrap_used)]

use rustix::fs::{RenameFlags, renameat_with};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the swapping should go on.
pub static GO_ON: AtomicBool = AtomicBool::new(true);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    swap_until_eof(&arguments);
}

pub fn swap_until_eof(arguments: &[String]) {
    let dir = std::fs::File::open(&arguments[0]).unwrap();
    std::thread::spawn(|| {
        let mut sink = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut sink);
        GO_ON.store(false, Ordering::Relaxed);
    });
    while GO_ON.load(Ordering::Relaxed) {
        for pair in arguments[1..].chunks(2) {
            // A pair may miss a side for a moment, when the victim replaces it.
            let _ = renameat_with(&dir, &pair[0], &dir, &pair[1], RenameFlags::EXCHANGE);
        }
    }
}
