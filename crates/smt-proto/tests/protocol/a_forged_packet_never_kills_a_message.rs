// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 3: whatever is injected, the genuine message arrives.

use std::cell::Cell;
use std::rc::Rc;

use super::support::configs::ethernet;
use super::support::forge::{
    EPOCH, ID, MESSAGE_LENGTH, OFFSET, PAYLOAD, flipped, set_u32, set_u64,
};
use super::support::node::replies_of_asked_length;
use super::support::{Datagram, Verdict, World, body, ms, us};

type Forge = fn(&Datagram) -> Vec<u8>;

/// Every way to damage one DATA packet.
const FORGERIES: [(&str, Forge); 11] = [
    ("first payload byte", |d| flipped(&d.bytes, PAYLOAD)),
    ("last payload byte", |d| flipped(&d.bytes, d.bytes.len() - 1)),
    ("a byte in the middle", |d| flipped(&d.bytes, (PAYLOAD + d.bytes.len()) / 2)),
    ("shorter message", |d| with_length(d, |length| length / 2)),
    ("longer message", |d| with_length(d, |length| length + 1)),
    ("endless message", |d| with_length(d, |_| u32::MAX)),
    ("empty message", |d| with_length(d, |_| 0)),
    ("next epoch", |d| with_epoch(d, 1)),
    ("another epoch", |d| with_epoch(d, 77)),
    ("payload cut", |d| d.bytes[..PAYLOAD + 1].to_vec()),
    ("another id", |d| {
        let mut bytes = d.bytes.clone();
        set_u64(&mut bytes, ID, d.data().unwrap().header.id.0 + 2);
        bytes
    }),
];

fn with_length(datagram: &Datagram, change: fn(u32) -> u32) -> Vec<u8> {
    let mut bytes = datagram.bytes.clone();
    let length = datagram.data().unwrap().header.message_length;
    set_u32(&mut bytes, MESSAGE_LENGTH, change(length));
    bytes
}

fn moved(datagram: &Datagram) -> Vec<u8> {
    let mut bytes = datagram.bytes.clone();
    set_u32(&mut bytes, OFFSET, datagram.data().unwrap().header.offset + 1);
    bytes
}

fn with_epoch(datagram: &Datagram, epoch: u8) -> Vec<u8> {
    let mut bytes = datagram.bytes.clone();
    bytes[EPOCH] = epoch;
    bytes
}

/// A request and its reply of this size, while a rule treats each DATA packet; then once more
/// without.
fn survives(
    name: &str,
    size: usize,
    treat: impl Fn(&Datagram, Vec<u8>) -> Verdict + 'static,
    forge: Forge,
) {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(_) => treat(datagram, forge(datagram)),
        None => Verdict::Deliver,
    });
    let request = body(7, size);
    let rpc = world.call(0, session, request.clone());
    assert!(world.outcome(0, rpc) == Ok(request), "{name}, {size} bytes");
    assert_eq!(world.nodes[1].delivered.len(), 1, "{name}");
    let rpc = world.call(0, session, body(8, 10));
    world.outcome(0, rpc).unwrap();
}

const SIZES: [usize; 4] = [10, 1_500, 30_000, 300_000];

// SMT [5.4-9], [5.4-10]
#[test]
fn a_forged_packet_before_each_genuine_one_kills_no_message() {
    for (name, forge) in FORGERIES {
        for size in SIZES {
            let treat =
                |genuine: &Datagram, forged| Verdict::Replace(vec![forged, genuine.bytes.clone()]);
            survives(name, size, treat, forge);
        }
    }
}

#[test]
fn a_forged_packet_after_each_genuine_one_kills_no_message() {
    for (name, forge) in FORGERIES {
        for size in SIZES {
            let treat =
                |genuine: &Datagram, forged| Verdict::Replace(vec![genuine.bytes.clone(), forged]);
            survives(name, size, treat, forge);
        }
    }
}

#[test]
fn a_forged_packet_instead_of_each_first_transmission_kills_no_message() {
    for (name, forge) in FORGERIES {
        for size in SIZES {
            let treat = |genuine: &Datagram, forged| {
                if genuine.data().unwrap().header.retransmit {
                    Verdict::Deliver
                } else {
                    Verdict::Replace(vec![forged])
                }
            };
            survives(name, size, treat, forge);
        }
    }
}

/// A packet across two genuine ones spoils both. An attacker that sends such packets for ever
/// denies service, as one that drops everything does. But when it stops, the message arrives.
#[test]
fn a_forged_packet_across_two_genuine_ones_kills_no_message() {
    for size in SIZES {
        let treat = |genuine: &Datagram, forged| {
            if genuine.data().unwrap().header.retransmit {
                Verdict::Deliver
            } else {
                Verdict::Replace(vec![genuine.bytes.clone(), forged])
            }
        };
        survives("moved", size, treat, moved);
    }
}

/// Parts of each record come under a wrong epoch, the rest not at all: all of the record must be
/// asked for.
#[test]
fn a_packet_that_claims_most_of_a_record_for_another_epoch_kills_no_message() {
    let treat = |genuine: &Datagram, forged| {
        let header = genuine.data().unwrap().header;
        if header.retransmit || header.offset == 0 {
            Verdict::Deliver
        } else if (header.offset / 1_400).is_multiple_of(4) {
            Verdict::Drop
        } else {
            Verdict::Replace(vec![forged])
        }
    };
    for size in SIZES {
        survives("epoch", size, treat, |d| with_epoch(d, 1));
    }
}

/// A part that claims another epoch is of another record, even if its bytes are genuine: one of the
/// two is forged.
// SMT [5.4-8]
#[test]
fn a_part_that_claims_another_epoch_is_not_put_together_with_the_rest_of_its_record() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.retransmit => Verdict::Drop,
        // Record 1 comes in three parts: this is the second.
        Some(data) if (1..2_000).contains(&data.header.offset) => {
            Verdict::Replace(vec![with_epoch(datagram, 1)])
        }
        _ => Verdict::Deliver,
    });
    let request = body(7, 3_500);
    let rpc = world.call(0, session, request.clone());
    world.run_for(ms(100));
    assert!(world.nodes[1].delivered.is_empty());
    let counted = world.nodes[1].endpoint.statistics();
    assert_eq!((counted.records_failed, counted.packets_contradicting), (0, 0));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert!(world.outcome(0, rpc) == Ok(request));
}

/// Without record 0 nothing is known; what is claimed before must not outlive it.
// SMT [5.4-5]
#[test]
fn a_forged_packet_long_before_record_0_kills_no_message() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.rule = Box::new(|datagram, injected| {
        if let Some(data) = datagram.data().filter(|data| data.header.offset == 0) {
            for offset in [1_164, 2_000, 17_570, 30_000] {
                let mut bytes = datagram.bytes.clone();
                set_u32(&mut bytes, OFFSET, offset);
                set_u32(&mut bytes, MESSAGE_LENGTH, data.header.message_length + offset % 2);
                injected.push(Datagram { bytes, ..datagram.clone() });
            }
        }
        Verdict::Deliver
    });
    let request = body(7, 50_000);
    let rpc = world.call(0, session, request.clone());
    assert_eq!(world.outcome(0, rpc), Ok(request));
}

/// After record 0 has opened, a header that claims another length is only a bad packet: its bytes
/// do not count.
// SMT [5.4-6]
#[test]
fn a_packet_that_contradicts_record_0_kills_no_message() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 0 && datagram.from == 0 => {
            Verdict::Replace(vec![with_length(datagram, |length| length + 1)])
        }
        _ => Verdict::Deliver,
    });
    world.call(0, session, body(7, 30_000));
    world.run_for(ms(1_000));
    assert!(world.nodes[1].delivered.is_empty());
    assert!(world.nodes[1].endpoint.statistics().packets_contradicting > 20);
}

/// An attacker that spoils everything makes a session repeat no more than SPEC §9.3 permits; when
/// it stops, all messages arrive.
// SMT [9.3-24]
#[test]
fn forged_packets_make_a_session_repeat_no_more_than_the_bound() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let sent = Rc::new(Cell::new([0u64; 2]));
    let (count, began) = (Rc::clone(&sent), world.now);
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(data) if datagram.from == 0 => {
            let mut bytes = count.get();
            bytes[usize::from(data.header.retransmit)] += datagram.bytes.len() as u64;
            count.set(bytes);
            let is_spoilt = data.header.offset > 0 && datagram.at.since(began) < ms(2_000);
            match is_spoilt {
                true => Verdict::Replace(vec![flipped(&datagram.bytes, PAYLOAD)]),
                false => Verdict::Deliver,
            }
        }
        _ => Verdict::Deliver,
    });
    let calls: Vec<_> = (0..600).map(|call| world.call(0, session, body(call, 60_000))).collect();
    world.run_for(ms(2_000));
    let [once, again] = sent.get();
    // The rate, for a first second and these two, and for the time that the session has stood idle.
    let rate = 16_000_000;
    assert!(again > 3 * rate, "too little was spoilt to show anything: {again}");
    assert!(again <= once + 4 * rate, "{once} bytes sent, {again} again");
    for (call, rpc) in calls.into_iter().enumerate() {
        assert!(world.outcome(0, rpc) == Ok(body(call as u64, 60_000)), "{call}");
    }
}

/// Only the deadline ends an RPC: whoever still asks about a call is not forgotten, however long
/// damage lasts.
#[test]
fn a_request_that_is_damaged_for_half_a_minute_arrives() {
    for size in [20_000, 200_000] {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        let is_over = Rc::new(Cell::new(false));
        let ends = Rc::clone(&is_over);
        world.rule = Box::new(move |datagram, _| match datagram.data() {
            Some(data) if data.header.offset > 0 && !ends.get() => {
                Verdict::Replace(vec![flipped(&datagram.bytes, PAYLOAD)])
            }
            _ => Verdict::Deliver,
        });
        let request = body(7, size);
        let rpc = world.call(0, session, request.clone());
        world.run_for(ms(30_000));
        is_over.set(true);
        assert!(world.outcome(0, rpc) == Ok(request), "{size} bytes");
    }
}

/// Bytes alone are no progress: anybody may have sent them.
// SMT [3.3-2]
#[test]
fn a_forged_packet_is_no_sign_of_life_of_a_dead_peer() {
    for dead in [0, 1] {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        world.nodes[1].application = replies_of_asked_length();
        world.is_recording = true;
        let request = match dead {
            0 => body(1, 5_000_000),
            _ => 5_000_000_u32.to_be_bytes().to_vec().into(),
        };
        world.call(0, session, request);
        world.run_for(us(60));
        let other = &world.nodes[1 - dead].endpoint;
        assert!(other.memory() > 0);
        world.rule = Box::new(move |datagram, _| match datagram.from == dead {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        });
        world.run_for(ms(1));
        let mut sent = world.sent.iter().rev().filter(|sent| sent.from == dead);
        let last = sent.find(|sent| sent.data().is_some()).unwrap();
        let forged = Datagram { bytes: flipped(&last.bytes, PAYLOAD), ..last.clone() };
        for _ in 0..26 {
            world.hand_in(&forged);
            world.run_for(ms(100));
        }
        assert_eq!(world.nodes[1 - dead].endpoint.sessions_len(), 0, "{dead}");
    }
}
