// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parsed packets, emitted again: the same bytes, but for those that a receiver ignores.
//!
//! A list is emitted twice, as the bytes it came as and from its entries, since a sender has
//! entries.

use smt_wire::{
    Ack, Body, Control, Data, DataHeader, Entry, Handshake, List, Packet, RECORD_OVERHEAD, Reset,
    Unavailable,
};

/// Compares a packet with the bytes it was parsed from.
pub(super) fn check(version: u8, packet: &Packet<'_>, bytes: &[u8]) {
    let mut out = vec![0xEE; bytes.len() + RECORD_OVERHEAD];
    let (written, ignored) = match packet {
        Packet::Data(data) => (data_packet(version, data, bytes, &mut out), SET_BY_ALL),
        Packet::Control(control) => return check_control(version, control, bytes),
        Packet::Handshake(handshake) => {
            let written = handshake.emit(version, bytes.len(), &mut out);
            let zeros = Handshake::HEADER_LEN + handshake.cookie.len() + handshake.fragment.len();
            assert!(zeros <= written && handshake.packet_len() == zeros);
            // The bytes behind the fragment are padding, whatever they are.
            let mut expected = bytes.to_vec();
            expected[zeros..].fill(0);
            return assert_same(&out[..written], &expected, EPOCH_TOO);
        }
        Packet::Cookie(cookie) => (cookie.emit(version, &mut out), EPOCH_TOO),
        Packet::VersionAnswer(answer) => (answer.emit(&mut out), EPOCH_TOO),
        Packet::Reset(reset) => {
            let mut whole = [0xEE; Reset::LEN];
            reset.emit(version, &mut whole);
            return assert_same(&whole, bytes, EPOCH_TOO);
        }
        Packet::Unavailable(unavailable) => {
            let mut whole = [0xEE; Unavailable::LEN];
            unavailable.emit(version, &mut whole);
            return assert_same(&whole, bytes, EPOCH_TOO);
        }
    };
    assert_same(&out[..written], bytes, ignored);
}

fn data_packet(version: u8, data: &Data<'_>, bytes: &[u8], out: &mut [u8]) -> usize {
    let header: &mut [u8; DataHeader::LEN] =
        (&mut out[..DataHeader::LEN]).try_into().expect("36 bytes");
    if bytes[6..8] == [0, 0] {
        data.header.emit(version, header);
    } else {
        data.header.emit_sized(version, data.payload.len(), header);
    }
    // All bits of the flags but the lowest are reserved.
    header[3] |= bytes[3] & !1;
    out[DataHeader::LEN..bytes.len()].copy_from_slice(data.payload);
    bytes.len()
}

fn check_control(version: u8, control: &Control<'_>, bytes: &[u8]) {
    assert_eq!([control.aad, control.sealed].concat(), bytes);
    assert_eq!(control.sealed.len(), control.body.sealed_len());
    let mut out = vec![0xEE; bytes.len()];
    let written = control.header.emit(version, &control.body, &mut out);
    assert_eq!(written, control.aad.len());
    let mut expected = control.aad.to_vec();
    match control.body {
        Body::Close { .. } => expected[30..].fill(0),
        Body::Abort(_) => expected[38..].fill(0),
        Body::Probe { .. } => expected[28..].fill(0),
        Body::Association(_) => expected[37..].fill(0),
        _ => {}
    }
    assert_same(&out[..written], &expected, FLAGS_TOO);
    if matches!(control.body, Body::Grant(_)) {
        // The last 7 bytes of each entry are reserved; a list of bytes keeps them.
        let entries = expected[28..].chunks_mut(24);
        entries.for_each(|entry| entry[17..].fill(0));
    }
    let again = |body: &Body<'_>| {
        assert_eq!(*body, control.body);
        let mut out = vec![0xEE; expected.len()];
        let written = control.header.emit(version, body, &mut out);
        assert_same(&out[..written], &expected, FLAGS_TOO);
    };
    match control.body {
        Body::Grant(list) => again(&Body::Grant(entries(list).as_slice().into())),
        Body::Resend(list) => again(&Body::Resend(entries(list).as_slice().into())),
        Body::Ack(list) => {
            list.iter().for_each(check_ids);
            again(&Body::Ack(entries(list).as_slice().into()));
        }
        Body::Busy(ids) => again(&Body::Busy(entries(ids).as_slice().into())),
        Body::NeedAck(ids) => again(&Body::NeedAck(entries(ids).as_slice().into())),
        Body::Cancel(ids) => again(&Body::Cancel(entries(ids).as_slice().into())),
        Body::Voided(ids) => again(&Body::Voided(entries(ids).as_slice().into())),
        Body::Seen(ids) => again(&Body::Seen(entries(ids).as_slice().into())),
        Body::NeverSeen(ids) => again(&Body::NeverSeen(entries(ids).as_slice().into())),
        Body::SeenAndGone(ids) => again(&Body::SeenAndGone(entries(ids).as_slice().into())),
        Body::PartWindow(list) => again(&Body::PartWindow(entries(list).as_slice().into())),
        Body::PartWindowRequest(ids) => {
            again(&Body::PartWindowRequest(entries(ids).as_slice().into()));
        }
        _ => {}
    }
}

/// A list as a sender has it.
fn entries<T: Entry>(list: List<'_, T>) -> Vec<T> {
    let entries: Vec<T> = list.iter().collect();
    assert_eq!(entries.len(), list.len());
    entries
}

/// The ids of an acknowledgement ascend in steps of the stripe's ids, and only for bits that are
/// set.
fn check_ids(ack: Ack) {
    for stripes_log2 in 0..=8 {
        let mut last = None;
        for id in ack.ids(stripes_log2) {
            let distance = id.0.checked_sub(ack.base.0).expect("ids ascend from the base");
            let bit = distance >> (stripes_log2 + 1);
            assert_eq!(bit << (stripes_log2 + 1), distance, "an id of another stripe");
            assert!(bit < 64 && ack.bits >> bit & 1 == 1, "an id whose bit is not set");
            assert!(last < Some(id), "ids ascend");
            last = Some(id);
        }
    }
}

/// Compares all but the places that are not emitted as they came.
fn assert_same(emitted: &[u8], parsed: &[u8], ignored: &[usize]) {
    assert_eq!(emitted.len(), parsed.len());
    let differ = |at: &usize| emitted[*at] != parsed[*at] && !ignored.contains(at);
    let place = (0..parsed.len()).find(differ);
    assert_eq!(place, None, "{emitted:02x?} was {parsed:02x?}");
    let zeros = ignored.iter().filter(|at| **at != FLAGS || ignored != SET_BY_ALL);
    zeros.for_each(|at| assert_eq!(emitted[*at], 0, "byte {at} is reserved"));
}

const FLAGS: usize = 3;
/// Reserved in all packets: offset 5 and 8 to 11 (SPEC §3.1).
const SET_BY_ALL: &[usize] = &[5, 8, 9, 10, 11];
/// Flags mean nothing but in DATA.
const FLAGS_TOO: &[usize] = &[FLAGS, 5, 8, 9, 10, 11];
/// Nor does the epoch in packets without a key.
const EPOCH_TOO: &[usize] = &[2, FLAGS, 5, 8, 9, 10, 11];
