// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A hostile peer with the keys of its sessions makes a server allocate no more than its bound.
//! Alone in its file, since it counts the allocations of the whole process;
//! `examples/memory_search.rs` searches further.

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

#[test]
fn a_peer_with_keys_makes_a_server_hold_no_more_than_its_bound() {
    let mut most = 0;
    for seed in 1..=400 {
        let case = Case::new(seed);
        let verdict = play(&case, &Allocations);
        assert!(verdict.held <= verdict.bound, "seed {seed}: {verdict:?}, {case:?}");
        most = most.max(verdict.share);
    }
    // The peers of these seeds do fill servers: else nothing would have been tried.
    assert!(most > 300, "at most {most} thousandths of a bound were held");
}
