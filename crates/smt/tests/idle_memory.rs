// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of sessions that nobody uses.
//!
//! The figure is that of the entries in docs/lab; `--nocapture` prints it. Alone in its file, since
//! it counts the allocations of the whole process.

use std::alloc::System;
use std::time::{Duration, Instant};

use smt::pki::EphemeralCa;
use smt::polled::{Endpoint, Event};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_session_that_rests_takes_little() {
    let authority = EphemeralCa::new().unwrap();
    let identity = authority.server(&["localhost"]).unwrap();
    let mut server = smt::server(identity).bind_polled("127.0.0.1:0").unwrap();
    let mut client = smt::client(authority.trust().unwrap()).open_polled("127.0.0.1:0").unwrap();
    connect(&mut client, &mut server, FEW);
    let region = Region::new(ALLOCATOR);
    connect(&mut client, &mut server, MANY);
    let held = || {
        let change = region.change();
        let held = change.bytes_allocated as isize - change.bytes_deallocated as isize;
        held / (2 * MANY as isize)
    };
    let fresh = held();
    let began = Instant::now();
    let is_over = |elapsed| elapsed > RESTS_AFTER && held() <= RESTS_MAX || elapsed > TIME_MAX;
    while !is_over(began.elapsed()) {
        turn(&mut client);
        turn(&mut server);
        std::thread::yield_now();
    }
    let rests = held();
    println!("a session, mean of both sides: {fresh} B when new, {rests} B when it rests");
    assert!(rests <= RESTS_MAX, "{rests} B");
}

fn turn(endpoint: &mut Endpoint) -> usize {
    endpoint.process().expect("its timer can be set");
    let mut connected = 0;
    while let Some(event) = endpoint.next_event() {
        connected += usize::from(matches!(event, Event::Connected { .. }));
    }
    connected
}

fn connect(client: &mut Endpoint, server: &mut Endpoint, sessions: usize) {
    let address = server.local_address();
    for _ in 0..sessions {
        client.connect(address, "localhost", Duration::from_secs(5)).expect("there may be so many");
        while turn(client) == 0 {
            turn(server);
        }
    }
}

/// Bytes of a session that rests, its places in the endpoint's tables included.
const RESTS_MAX: isize = 2_170;
/// It rests after a second in which nothing has moved.
const RESTS_AFTER: Duration = Duration::from_millis(1_200);
const TIME_MAX: Duration = Duration::from_secs(20);
/// Sessions before the measurement: memory that an endpoint takes once is there then.
const FEW: usize = 10;
const MANY: usize = 256;
