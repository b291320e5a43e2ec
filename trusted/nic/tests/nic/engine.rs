// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that leave through the engine, and reach the other host.

use smt_attestation::{ATTESTATION_LEN, StreamId};
use smt_device_client::Device;
use smt_nic::completion::Status;
use smt_nic::descriptor::{ContextId, Work};
use smt_trusted_nic::{Received, context_block};

use crate::machine::{FLOW, Machine, STREAM, attestation_of, data_header};

/// Two machines of a group, the first with a context of its stream.
pub(crate) fn machines() -> (Machine, Machine) {
    let (mut one, two) = (Machine::new(1), Machine::new(2));
    assert_eq!(one.create(FLOW, &context_block(STREAM)), Status::Done);
    (one, two)
}

#[test]
fn a_message_leaves_with_its_attestation_and_reaches_the_other_host_whole() {
    let (mut one, mut two) = machines();
    for length in [0, 1, 64, 1000, 1001, 20_000, 60_000] {
        let message = vec![length as u8; length];
        let packets = one.send(&message, 1000);
        assert_eq!(packets.len(), (length + ATTESTATION_LEN).div_ceil(1000));
        let (last, others) = packets.split_last().unwrap();
        for packet in others {
            assert_eq!(two.receive(packet).unwrap(), Received::Incomplete);
        }
        assert_eq!(two.receive(last).unwrap(), Received::Taken(1));
        let arrived = two.arrived.pop().unwrap();
        assert_eq!(&arrived[..length], message);
        let attestation = attestation_of(&arrived);
        let header = two.device.borrow().check(STREAM, &attestation, &message).unwrap();
        assert_eq!((header.device.0, header.length as usize), (1, length));
    }
}

#[test]
fn a_packet_that_was_changed_anywhere_in_its_payload_brings_nothing_to_the_host() {
    let (mut one, mut two) = machines();
    let packets = one.send(b"ten bytes.", 0);
    let [packet] = packets.as_slice() else { panic!("one packet") };
    for place in data_header(0).len()..packet.len() {
        let mut changed = packet.clone();
        changed[place] ^= 1;
        assert!(two.receive(&changed).is_err(), "byte {place}");
    }
    assert!(two.arrived.is_empty());
    assert_eq!(two.receive(packet).unwrap(), Received::Taken(1));
}

#[test]
fn messages_that_arrive_out_of_order_reach_the_host_in_order() {
    let (mut one, mut two) = machines();
    let sent: Vec<_> = (0..4_u8).map(|number| one.send(&[number; 10], 0).remove(0)).collect();
    assert_eq!(two.receive(&sent[2]).unwrap(), Received::Waits);
    assert_eq!(two.receive(&sent[1]).unwrap(), Received::Waits);
    assert!(two.arrived.is_empty());
    assert_eq!(two.receive(&sent[0]).unwrap(), Received::Taken(3));
    assert_eq!(two.receive(&sent[3]).unwrap(), Received::Taken(1));
    let numbers: Vec<u8> = two.arrived.iter().map(|message| message[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    // A copy is told as one, and its counter says so to the host.
    for packet in &sent {
        assert_eq!(two.receive(packet).unwrap(), Received::Again);
    }
    assert_eq!(two.arrived[..4], two.arrived[4..]);
}

#[test]
fn no_host_sets_a_counter_by_its_descriptors() {
    let (mut one, mut two) = machines();
    let first = one.send(b"first", 0).remove(0);
    let resync = Work::Resync { context: FLOW, number: 0 };
    assert_eq!(one.execute(resync).1, Status::Done);
    let destroy = Work::Destroy { context: FLOW };
    assert_eq!(one.execute(destroy).1, Status::Done);
    assert_eq!(one.create(FLOW, &context_block(STREAM)), Status::Done);
    let second = one.send(b"second", 0).remove(0);
    assert_eq!(two.receive(&first).unwrap(), Received::Taken(1));
    assert_eq!(two.receive(&second).unwrap(), Received::Taken(1));
    assert_eq!(attestation_of(&two.arrived[1]).claim().unwrap().counter, 2);
}

#[test]
fn a_message_whose_packets_were_lost_is_sent_again_with_the_same_attestation() {
    let (mut one, mut two) = machines();
    let lost = one.send(&[7; 3000], 1000);
    assert_eq!(two.receive(&lost[0]).unwrap(), Received::Incomplete);
    assert_eq!(two.receive(&lost[1]).unwrap(), Received::Incomplete);
    let again = one.device.borrow().reissue(STREAM, 1).unwrap();
    let payload = [&[7; 3000][..], &again.0].concat();
    let packets = one.send_plain(&payload, 1000);
    assert_eq!(packets, lost);
    let received: Vec<_> = packets.iter().map(|it| two.receive(it).unwrap()).collect();
    assert_eq!(received.last(), Some(&Received::Taken(1)));
}

#[test]
fn a_context_names_a_stream_that_is_open() {
    let mut one = Machine::new(1);
    let mut other_bytes = context_block(STREAM);
    other_bytes[20] = 1;
    for block in [context_block(StreamId(9)), other_bytes, [0; 64]] {
        assert_eq!(one.create(ContextId(5), &block), Status::BadContextBlock);
    }
}

#[test]
fn a_payload_without_room_is_not_sent_and_gets_no_counter() {
    let (mut one, _) = machines();
    let (packets, status) = one.post(Some(FLOW), &[0; ATTESTATION_LEN - 1], 0);
    assert_eq!((packets.len(), status), (0, Status::BadPayload));
    assert_eq!(one.device.borrow().sent(STREAM).unwrap(), Some(0));
}

#[test]
fn flows_of_tls_go_through_the_same_device_unattested() {
    let (mut one, mut two) = machines();
    let mut block = [0; 64];
    block[0] = smt_nic::tls::ENGINE;
    block[2..4].copy_from_slice(&0x1301_u16.to_be_bytes());
    assert_eq!(one.create(ContextId(8), &block), Status::Done);
    let mut record = vec![0x17, 3, 3, 0, 27];
    record.extend([1; 27]);
    let (packets, status) = one.post(Some(ContextId(8)), &record, 0);
    assert_eq!((packets.len(), status), (1, Status::Done));
    assert_eq!(one.device.borrow().sent(STREAM).unwrap(), Some(0));
    // It has no attestation, so the other host does not get it by a flow of messages.
    assert!(two.receive(&packets[0]).is_err());
}
