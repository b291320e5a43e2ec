// SPDX-License-Identifier: Apache-2.0 OR MIT
//! More associations than a device has room for: the others stay with software, and nothing is
//! lost.

use smt_nic::completion::Status;
use smt_nic::descriptor::Work;
use smt_nic::esp::{EspSuite, EspTableError};

use super::host::EspHost;
use super::software::{Agreed, Opener, Sealer, header, payload};

const ASSOCIATIONS: u32 = 7;
const ROOM: usize = 3;
const ROUNDS: u32 = 5;
const SEGMENT: usize = 4_500;

fn agreed(number: u32) -> Agreed {
    Agreed { spi: 0x3000 + number, ..Agreed::new(EspSuite::ALL[number as usize % 4]) }
}

/// The sender's half of an association: in its device, or in software for want of room.
fn begin_sending(host: &mut EspHost, of: &Agreed) -> Option<Sealer> {
    match host.add_outbound(of) {
        Status::Done => None,
        Status::NoRoom => Some(of.sealer()),
        status => panic!("{status:?}"),
    }
}

/// The receiver's half.
fn begin_receiving(host: &mut EspHost, of: &Agreed) -> Option<Opener> {
    match host.add_inbound(of) {
        Ok(()) => None,
        Err(EspTableError::NoRoom) => Some(of.opener()),
        Err(error) => panic!("{error}"),
    }
}

/// Sends a segment of a stream: sealed by the device, or cut by it and sealed in software.
fn send(
    host: &mut EspHost,
    of: &Agreed,
    software: Option<&mut Sealer>,
    round: u32,
) -> Vec<Vec<u8>> {
    let header = header(true, true, of.spi as u16, round * SEGMENT as u32);
    let payload = payload(SEGMENT);
    let context = software.is_none().then(|| of.context());
    let (status, packets) = host.send(context, &header, &payload, 1_000);
    assert_eq!(status, Status::Done);
    let Some(software) = software else {
        return packets;
    };
    let sealed = packets.iter().map(|packet| software.seal(packet));
    // The device sends them as they are.
    let sent = sealed.map(|packet| host.send(None, &packet[..28], &packet[28..], 0).1);
    sent.flatten().collect()
}

#[test]
fn associations_that_find_no_room_are_served_by_software_without_loss() {
    // The ends have room for different ones: the second counts from behind.
    let (mut sender, mut receiver) = (EspHost::with(ROOM, 4), EspHost::with(ROOM, 4));
    let all: Vec<Agreed> = (0..ASSOCIATIONS).map(agreed).collect();
    let mut sealers: Vec<_> = all.iter().map(|of| begin_sending(&mut sender, of)).collect();
    let mut openers: Vec<_> =
        all.iter().rev().map(|of| begin_receiving(&mut receiver, of)).collect();
    openers.reverse();
    let without_room = u64::from(ASSOCIATIONS) - ROOM as u64;
    assert_eq!(sender.nic.counters().contexts_refused, without_room);
    assert_eq!(receiver.nic.counters().contexts_refused, without_room);
    for round in 0..ROUNDS {
        let sent = all.iter().zip(&mut sealers);
        let wire: Vec<Vec<u8>> = sent
            .flat_map(|(of, software)| send(&mut sender, of, software.as_mut(), round))
            .collect();
        let mut bytes = vec![0; all.len()];
        for arrival in receiver.receive(&wire) {
            let clear = if arrival.spi == 0 {
                let spi = u32::from_be_bytes(arrival.packet[20..24].try_into().unwrap());
                let software = openers[(spi - 0x3000) as usize].as_mut().unwrap();
                software.open(&arrival.packet).unwrap()
            } else {
                arrival.packet
            };
            let port = u16::from_be_bytes([clear[20], clear[21]]);
            bytes[usize::from(port - 0x3000)] += clear.len() - 40;
        }
        assert_eq!(bytes, vec![SEGMENT; all.len()], "round {round}");
    }
    let in_software = without_room * u64::from(ROUNDS) * 5;
    let counters = receiver.nic.counters();
    assert_eq!(counters.esp_unknown, in_software);
    assert_eq!(counters.esp_opened, ROOM as u64 * u64::from(ROUNDS) * 5);
    assert!(counters.packets_merged > 0, "what was opened is merged");
}

#[test]
fn a_place_that_an_association_leaves_is_the_next_ones() {
    let mut host = EspHost::with(1, 1);
    let (first, second) = (agreed(0), agreed(1));
    assert!(begin_sending(&mut host, &first).is_none());
    assert!(begin_receiving(&mut host, &first).is_none());
    assert!(begin_sending(&mut host, &second).is_some());
    assert!(begin_receiving(&mut host, &second).is_some());
    let context = first.context();
    assert_eq!(host.work(Work::Destroy { context }).0, Status::Done);
    assert!(host.nic.remove_association(first.spi).is_some());
    assert!(begin_sending(&mut host, &second).is_none());
    assert!(begin_receiving(&mut host, &second).is_none());
}
