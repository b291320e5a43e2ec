// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory as the allocator sees it: an attacker on the path makes hosts hold no more than their
//! configuration permits. Alone in its file, since it counts the allocations of the whole process.

use peak_alloc::PeakAlloc;
use smt_sim::swarm::{Case, run};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most that was allocated while a case was played.
fn peak(case: &Case) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let verdict = run(case);
    assert!(verdict.failures.is_empty(), "seed {}: {:?}", case.seed, verdict.failures);
    ALLOCATOR.peak_usage() - before
}

#[test]
fn an_attacker_who_claims_megabytes_makes_no_host_allocate_them() {
    // An attacker decides how long the many long messages for a host with little memory wait here.
    let cases = SEEDS.map(Case::new).filter(|case| !case.has_small_memory);
    for case in cases {
        let seed = case.seed;
        let hosts = case.hosts() as usize;
        let alone = peak(&case);
        let attacked = peak(&case.attacked());
        assert!(
            attacked <= alone + hosts * MOST_MORE,
            "seed {seed}: {attacked} B at most, and {alone} B without the attacker"
        );
    }
}

const SEEDS: std::ops::Range<u64> = 0..40;
/// For early packets, failed records and repeated questions, and for what the attacker itself
/// remembers. One claim of a huge message that was believed would be more.
const MOST_MORE: usize = 1 << 20;
