// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a network that lies, members that lie, and a device that fails for a while.

use smt_attestation::Refusal;
use smt_trusted_nic::{AGAIN_MAX, HELD_OF_SENDER_MAX, NotTaken, Received, context_block};

use crate::engine::machines;
use crate::machine::{FLOW, Machine, STREAM, attestation_of, control, data_header};

/// Places in a packet over IPv4: of DATA's own length, its session, id, message length and offset
/// (SPEC §3.3, §15.2).
const LENGTH: usize = 28 + 6;
const SESSION: usize = 28 + 12;
const ID: usize = 28 + 20;
const MESSAGE_LENGTH: usize = 28 + 28;
const OFFSET: usize = 28 + 32;

/// A packet with other bytes in its datagram, and the length that IP then tells.
fn with_datagram(packet: &[u8], datagram: &[u8]) -> Vec<u8> {
    let mut packet = [&packet[..28], datagram].concat();
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet
}

fn is_malformed(result: &Result<Received, NotTaken>) -> bool {
    matches!(result, Err(NotTaken::Malformed))
}

#[test]
fn packets_that_carry_no_message_pass_as_they_are() {
    let (_, mut two) = machines();
    assert_eq!(two.receive(&control(0x21)).unwrap(), Received::Passed);
    assert_eq!(two.arrived.len(), 1);
}

#[test]
fn data_behind_another_packet_does_not_reach_the_host() {
    let (mut one, mut two) = machines();
    let genuine = one.send(b"genuine", 0).remove(0);
    for ty in [0x21, 0x77] {
        let before = control(ty);
        let hidden = with_datagram(&genuine, &[&before[28..], &genuine[28..]].concat());
        assert!(is_malformed(&two.receive(&hidden)), "type {ty:#x}");
        // Forged DATA, which has no attestation at all.
        let forged = [&before[28..], &data_header(5)[28..], b"forged"].concat();
        assert!(is_malformed(&two.receive(&with_datagram(&genuine, &forged))));
    }
    assert!(two.arrived.is_empty());
    assert_eq!(two.receive(&genuine).unwrap(), Received::Taken(1));
}

#[test]
fn data_before_another_packet_stays_incomplete() {
    let (mut one, mut two) = machines();
    let mut packet = one.send(b"with its length", 0).remove(0);
    let datagram = packet.len() as u16 - 28;
    // A part of the message's own bytes would be read as the next packet.
    packet[LENGTH..LENGTH + 2].copy_from_slice(&(datagram - 70).to_be_bytes());
    assert_eq!(two.receive(&packet).unwrap(), Received::Incomplete);
    assert!(two.arrived.is_empty());
    packet[LENGTH..LENGTH + 2].copy_from_slice(&datagram.to_be_bytes());
    assert_eq!(two.receive(&packet).unwrap(), Received::Taken(1));
}

#[test]
fn data_that_is_not_merged_does_not_reach_the_host() {
    let (mut one, mut two) = machines();
    let genuine = one.send(&[7; 3000], 1000);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = genuine[0].clone();
        change(&mut packet);
        packet
    };
    let packets = [
        ("a fragment", changed(&|it| it[6] |= 0x20)),
        ("a later fragment", changed(&|it| it[7] = 100)),
        ("identification 0", changed(&|it| it[4..6].fill(0))),
        ("a length of IP that is too long", changed(&|it| it[2] = 0xFF)),
        ("a length of IP that is too short", changed(&|it| it[2..4].fill(0))),
        ("other header words", changed(&|it| it[32] = 0x50)),
        ("no payload", with_datagram(&genuine[0], &genuine[0][28..64])),
        (
            "an offset beyond all",
            changed(&|it| {
                it[4..6].fill(0xFF);
                it[OFFSET..OFFSET + 4].fill(0xFF);
            }),
        ),
    ];
    for (name, packet) in packets {
        assert!(is_malformed(&two.receive(&packet)), "{name}");
    }
    assert!(two.arrived.is_empty());
}

#[test]
fn a_message_that_does_not_begin_at_0_or_has_another_length_is_not_taken() {
    let (mut one, mut two) = machines();
    let genuine = one.send(b"genuine", 0).remove(0);
    for place in [OFFSET, OFFSET + 3, MESSAGE_LENGTH, MESSAGE_LENGTH + 3] {
        let mut packet = genuine.clone();
        packet[place] ^= 1;
        assert_eq!(two.receive(&packet).unwrap(), Received::Incomplete, "byte {place}");
    }
    assert!(two.arrived.is_empty());
    assert_eq!(two.receive(&genuine).unwrap(), Received::Taken(1));
}

#[test]
fn a_copy_under_another_session_or_id_does_not_keep_the_genuine_message_away() {
    let (mut one, mut two) = machines();
    for place in [SESSION, ID] {
        let genuine = one.send(b"genuine", 0).remove(0);
        let mut copy = genuine.clone();
        copy[place] ^= 1;
        assert_eq!(two.receive(&copy).unwrap(), Received::Taken(1));
        assert_eq!(two.receive(&genuine).unwrap(), Received::Again);
        let [first, second] = &two.arrived[..] else { panic!("two copies") };
        // The host sees by the counter that they are one message.
        assert_eq!(first, second);
        two.arrived.clear();
        // A changed message is no copy.
        let mut forged = genuine;
        forged[64] ^= 1;
        let refused = two.receive(&forged);
        assert!(matches!(refused, Err(NotTaken::Refused(Refusal::Mac))), "{refused:?}");
        assert!(two.arrived.is_empty());
    }
}

#[test]
fn a_message_comes_again_while_it_is_one_of_the_last() {
    let (mut one, mut two) = machines();
    let sent: Vec<_> =
        (0..=AGAIN_MAX).map(|number| one.send(&number.to_be_bytes(), 0).remove(0)).collect();
    for packet in &sent {
        assert_eq!(two.receive(packet).unwrap(), Received::Taken(1));
    }
    assert_eq!(two.receive(&sent[1]).unwrap(), Received::Again);
    let refused = two.receive(&sent[0]);
    assert!(matches!(refused, Err(NotTaken::Refused(Refusal::Duplicate))), "{refused:?}");
}

#[test]
fn a_sender_that_fills_its_places_leaves_those_of_others() {
    let (mut one, mut two) = machines();
    let mut three = Machine::new(3);
    three.create(FLOW, &context_block(STREAM));
    let [first, of_three] = [&mut one, &mut three].map(|it| it.send(b"first", 0).remove(0));
    let waiting: Vec<_> = (0..HELD_OF_SENDER_MAX)
        .map(|number| one.send(&number.to_be_bytes(), 0).remove(0))
        .collect();
    for packet in &waiting {
        assert_eq!(two.receive(packet).unwrap(), Received::Waits);
    }
    let beyond = one.send(b"beyond", 0).remove(0);
    assert!(matches!(two.receive(&beyond), Err(NotTaken::NoRoom)));
    // One that waits takes no second place.
    assert_eq!(two.receive(&waiting[3]).unwrap(), Received::Waits);
    let early = three.send(b"early", 0).remove(0);
    assert_eq!(two.receive(&early).unwrap(), Received::Waits);
    assert_eq!(two.receiver.waiting(), HELD_OF_SENDER_MAX + 1);
    assert_eq!(two.receive(&of_three).unwrap(), Received::Taken(2));
    assert_eq!(two.receive(&first).unwrap(), Received::Taken(HELD_OF_SENDER_MAX as u32 + 1));
    assert_eq!(two.receiver.waiting(), 0);
    assert_eq!(two.receive(&beyond).unwrap(), Received::Taken(1));
}

#[test]
fn a_message_waits_on_while_the_device_does_not_answer() {
    let (mut one, mut two) = machines();
    let sent: Vec<_> = (1..=4_u8).map(|number| one.send(&[number], 0).remove(0)).collect();
    assert_eq!(two.receive(&sent[1]).unwrap(), Received::Waits);
    two.device.borrow_mut().fails_after = Some(1);
    assert_eq!(two.receive(&sent[0]).unwrap(), Received::Taken(1));
    assert_eq!(two.receiver.waiting(), 1);
    // It goes out with the next one that arrives, and before it.
    assert_eq!(two.receive(&sent[2]).unwrap(), Received::Taken(2));
    let numbers: Vec<u8> = two.arrived.iter().map(|message| message[0]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(attestation_of(&two.arrived[2]).claim().unwrap().counter, 3);
    assert_eq!(two.receiver.waiting(), 0);
    assert_eq!(two.receive(&sent[3]).unwrap(), Received::Taken(1));
}

#[test]
fn a_message_that_waits_is_taken_from_its_place_when_it_comes_in_its_turn() {
    let (mut one, mut two) = machines();
    let sent: Vec<_> = (1..=3_u8).map(|number| one.send(&[number], 0).remove(0)).collect();
    assert_eq!(two.receive(&sent[1]).unwrap(), Received::Waits);
    two.device.borrow_mut().fails_after = Some(1);
    assert_eq!(two.receive(&sent[0]).unwrap(), Received::Taken(1));
    assert_eq!(two.receive(&sent[1]).unwrap(), Received::Taken(1));
    assert_eq!(two.receiver.waiting(), 0);
    assert_eq!(two.receive(&sent[2]).unwrap(), Received::Taken(1));
}
