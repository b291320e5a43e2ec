// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Thousands of RPCs over keys that last for a few records each.

use smt::{KeyLimits, Suite};

use crate::support::payload::{is_payload, payload};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, echo, serve};

fn run(records: u64, calls: u64, largest: usize) {
    let (seed, credentials) = (seed(), Credentials::new());
    let limits = KeyLimits::new(records, records * 3 / 4, 1 << 20).unwrap();
    let server = credentials.server().key_limits(limits).bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    let client = credentials
        .client()
        .key_limits(limits)
        .suites([Suite::Aes256Gcm])
        .connect_blocking(server.local_address())
        .unwrap();
    let session = client.connect().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for number in (thread..calls).step_by(4) {
                    let size = 8 + Random::new(seed ^ (number << 20)).size(largest);
                    let reply = client.call(payload(number, size)).wait().unwrap();
                    assert!(is_payload(&reply, number, size), "{number}");
                }
            });
        }
    });
    // The first session, still.
    let facts = session.facts().unwrap();
    let (ours, theirs) = (facts.seal_epoch, facts.open_epoch);
    println!("{records} records per key: epochs {ours} and {theirs} after {calls} calls");
    let least = (calls / records / 4) as u32;
    assert!(ours >= least && theirs >= least, "{ours} {theirs}");
    assert_eq!(client.statistics().protocol.sessions_begun, 1);
}

#[test]
fn keys_are_renewed_after_1024_records() {
    run(1_024, 6_000, 300_000);
}

#[test]
fn keys_are_renewed_in_the_midst_of_one_message() {
    run(1_024, 6, 60_000_000);
}
