// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The suite for measurements, of the feature `unstable-clear`.
#![cfg(feature = "unstable-clear")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod packets;

use packets::{V4, open, plain_database, seal, udp};
use smt_esp::{Mode, Suite};

#[test]
fn a_packet_of_the_suite_clear_is_readable_on_its_way_and_opens() {
    let payload = b"anybody on the way reads this";
    let packet = udp(V4, payload);
    let mut database = plain_database(Suite::Clear, Mode::Transport);
    let (_, bytes) = seal(&mut database, &packet).unwrap();
    assert!(bytes.windows(payload.len()).any(|window| window == payload));
    let (_, opened) = open(&mut database, &bytes).unwrap();
    assert_eq!(opened, packet);
}

#[test]
fn the_list_of_suites_has_none_that_protects_nothing() {
    assert!(!Suite::ALL.contains(&Suite::Clear));
}
