// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 1: the clear length is not authenticated, the inner one is.

use super::support::configs::ethernet;
use super::support::forge::{MESSAGE_LENGTH, PAYLOAD, set_u32};
use super::support::{Datagram, Verdict, World, body, ms};

/// Inner bytes up to the end of record 0, 1 and 2.
const BOUNDARIES: [u32; 3] = [1_142, 1_142 + 16_384, 1_142 + 2 * 16_384];

/// The datagram as it would be in a message that ends at `inner`; nothing if it lies behind.
fn cut(datagram: &Datagram, inner: u32) -> Vec<Vec<u8>> {
    let data = datagram.data().unwrap();
    let records = 1 + (inner - 1_142) / 16_384;
    let end = inner + records * 22;
    if data.header.offset >= end {
        return Vec::new();
    }
    let mut bytes = datagram.bytes.clone();
    bytes.truncate(PAYLOAD + (end - data.header.offset) as usize);
    set_u32(&mut bytes, MESSAGE_LENGTH, inner);
    vec![bytes]
}

// SMT [3.3-3], [5.2-2], [5.4-6]
#[test]
fn headers_that_claim_less_do_not_cut_a_message_short() {
    for inner in BOUNDARIES {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        world.rule = Box::new(move |datagram, _| match datagram.data() {
            Some(_) if datagram.from == 0 => Verdict::Replace(cut(datagram, inner)),
            _ => Verdict::Deliver,
        });
        let rpc = world.call(0, session, body(1, 55_000));
        world.run_for(ms(1_000));
        assert!(world.nodes[1].delivered.is_empty(), "cut at {inner}");
        // Packets that wait for a record 0, no more.
        assert!(world.nodes[1].endpoint.memory() <= 256 * 1024);
        world.rule = Box::new(|_, _| Verdict::Deliver);
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 55_000)));
    }
}

// SMT [5.4-13]
#[test]
fn lost_last_records_do_not_cut_a_message_short() {
    for inner in BOUNDARIES {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        world.rule = Box::new(move |datagram, _| match datagram.data() {
            Some(data) if datagram.from == 0 && data.header.offset >= inner => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        world.call(0, session, body(1, 55_000));
        world.run_for(ms(1_000));
        assert!(world.nodes[1].delivered.is_empty(), "lost from {inner} on");
    }
}

// SMT [5.4-13]
#[test]
fn a_reply_is_never_cut_short() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = super::support::node::replies_of_asked_length();
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(_) if datagram.from == 1 => Verdict::Replace(cut(datagram, BOUNDARIES[1])),
        _ => Verdict::Deliver,
    });
    let rpc = world.call(0, session, 55_000_u32.to_be_bytes().to_vec().into());
    world.run_for(ms(1_000));
    assert!(world.nodes[0].events.is_empty());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert_eq!(world.outcome(0, rpc), Ok(body(55_000, 55_000)));
}
