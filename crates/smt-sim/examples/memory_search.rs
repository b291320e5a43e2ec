// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Searches for a way to make a server hold more than it may: a hostile peer with keys, its moves
//! drawn from seeds, and every allocation of the server counted.
//!
//!     cargo run --release -p smt-sim --example memory_search -- COUNT [FIRST_SEED]
//!
//! One thread, since the allocator counts for the whole process: start one process a core. Exit
//! code 1 and the seeds if more was held than the bound; the last line tells the largest share of
//! it that any seed has reached.

use std::env::args;
use std::process::ExitCode;

use peak_alloc::PeakAlloc;
use smt_sim::swarm::hostile::{Case, Meter, play};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

struct Allocations;

impl Meter for Allocations {
    fn current(&self) -> usize {
        ALLOCATOR.current_usage()
    }

    fn most(&self) -> usize {
        ALLOCATOR.peak_usage()
    }

    fn restart(&self) {
        ALLOCATOR.reset_peak_usage();
    }
}

fn main() -> ExitCode {
    let number = |place| args().nth(place).map(|text| text.parse::<u64>());
    let (Some(Ok(count)), first) = (number(1), number(2).unwrap_or(Ok(1))) else {
        eprintln!("usage: memory_search COUNT [FIRST_SEED]");
        return ExitCode::from(2);
    };
    let Ok(first) = first else {
        eprintln!("FIRST_SEED is a number");
        return ExitCode::from(2);
    };
    let (mut failed, mut most) = (0, (0, 0));
    for seed in first..first + count {
        let case = Case::new(seed);
        let verdict = play(&case, &Allocations);
        most = most.max((verdict.share, seed));
        if verdict.held > verdict.bound {
            failed += 1;
            println!(
                "seed {seed}: {} bytes held, {} permitted with {} sessions; {:?}; {:?}",
                verdict.held, verdict.bound, verdict.sessions, case.moves, case.habits
            );
        }
    }
    let (share, seed) = most;
    println!(
        "{count} seeds, {failed} failed; seed {seed} reached most: {share} thousandths of its bound"
    );
    ExitCode::from(u8::from(failed > 0))
}
