// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Allocations and system calls of an RPC in the steady state, client and server together.
//!
//! The figures are those of the table in docs/PERFORMANCE.md; `--nocapture` prints them. Alone
//! in its file, since it counts the allocations of the whole process.

use std::alloc::System;

use smt::Bytes;
use smt::pki::EphemeralCa;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_small_rpc_costs_no_allocations_and_one_system_call_per_direction() {
    let authority = EphemeralCa::new().unwrap();
    let identity = authority.server(&["localhost"]).unwrap();
    let server = smt::server(identity).bind_blocking("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let served = server.clone();
    std::thread::spawn(move || {
        while let Some(request) = served.accept_request() {
            let body = request.body().clone();
            let _ = request.reply(body);
        }
    });
    let client = smt::client(authority.trust().unwrap())
        .server_name("localhost")
        .connect_blocking(address)
        .unwrap();
    for (size, allocations_max) in [(64, 0.1), (1_024, 1.0), (8_192, 8.0)] {
        let body = Bytes::from(vec![7; size]);
        let call = || assert_eq!(client.call(body.clone()).wait().unwrap(), body);
        (0..200).for_each(|_| call());
        let sent = || {
            client.statistics().socket.unwrap().send_calls
                + server.statistics().socket.unwrap().send_calls
        };
        // The best of several rounds: on a busy host questions are asked that an idle one does not
        // need. Short rounds, so that some are without; and ten together for allocations, of which
        // some belong to fifty calls.
        let round = |_| {
            let before = sent();
            let region = Region::new(ALLOCATOR);
            (0..CALLS).for_each(|_| call());
            let change = region.change();
            let allocated = change.allocations + change.reallocations;
            (allocated, (sent() - before) as usize)
        };
        let rounds: Vec<(usize, usize)> = (0..ROUNDS).map(round).collect();
        let of_ten = |rounds: &[(usize, usize)]| rounds.iter().map(|round| round.0).sum();
        let allocations: usize = rounds.chunks(10).map(of_ten).min().unwrap();
        let allocations = allocations as f64 / (10 * CALLS) as f64;
        let sends = rounds.iter().map(|round| round.1).min().unwrap() as f64 / CALLS as f64;
        println!(
            "{size} B: {allocations:.2} allocations, {sends:.3} sending system calls per RPC, both sides"
        );
        assert!(allocations <= allocations_max, "{allocations} allocations per RPC of {size} B");
        assert!(sends < 2.2, "{sends} sending system calls per RPC of {size} B");
    }
}

const ROUNDS: usize = 200;
const CALLS: usize = 10;
