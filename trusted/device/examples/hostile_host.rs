// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host that does to the device whatever it can: `hostile_host [OPERATIONS] [SEED]`.
//!
//! It runs a search for each million operations, with the next seed each time. A search that failed
//! comes back by `hostile_host 1000000 SEED`.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

#[path = "../tests/hostile/mod.rs"]
mod hostile;

/// Operations of a search.
const SEARCH: u64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().map_or(usual, |it| it.parse().unwrap());
    let (mut left, mut seed): (u64, u64) = (number(10_000_000), number(1));
    while left > 0 {
        println!("seed {seed}");
        let operations = left.min(SEARCH);
        println!("{}", hostile::search(operations, seed));
        left -= operations;
        seed += 1;
    }
}
