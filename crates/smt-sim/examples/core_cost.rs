// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures the cost of an RPC in the protocol core: two endpoints in memory, one thread, no
//! sockets, no clock, no loss.
//!
//!     cargo run --release -p smt-sim --example core_cost -- \
//!         BYTES [AT_ONCE [RPCS [DATAGRAM [aes|null [SESSIONS]]]]]
//!
//! Requests and replies have BYTES bytes each, and calls take the sessions in turn. A run under
//! `valgrind --tool=callgrind` counts instructions repeatably.

use std::env::args;
use std::time::Instant;

use bytes::Bytes;
use smt_testkit::EndpointPair;

fn main() {
    let number = |place, default| args().nth(place).map_or(default, |text| parsed(&text));
    let (bytes, at_once, rpcs) = (number(1, 64), number(2, 100), number(3, 200_000));
    let is_null = args().nth(5).is_some_and(|cipher| cipher == "null");
    let mut pair = EndpointPair::new(number(4, 65_507) as u16, is_null);
    pair.connect(number(6, 1));
    let request = Bytes::from(vec![7; bytes]);
    pair.run(rpcs / 10, at_once, &request);
    let began = Instant::now();
    let datagrams = pair.datagrams;
    pair.run(rpcs, at_once, &request);
    let each = |count: f64| count / rpcs as f64;
    println!(
        "{bytes} B, {at_once} at once, {rpcs} RPCs: {:.3} us an RPC (both sides), {:.3} datagrams",
        each(began.elapsed().as_secs_f64() * 1e6),
        each((pair.datagrams - datagrams) as f64),
    );
}

fn parsed(text: &str) -> usize {
    text.parse().expect("a number")
}
