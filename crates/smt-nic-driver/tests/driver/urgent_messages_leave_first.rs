// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classes of priorities: what is urgent overtakes what waits, and nothing is sealed otherwise.

use smt_nic_driver::{DriverConfig, NativePacket};

use crate::rig::{DeviceOptions, Message, Rig, SessionKey};

fn rig(priority_classes: u8) -> Rig {
    let config = DriverConfig { queues: 2, priority_classes, ..DriverConfig::default() };
    Rig::new(config, DeviceOptions::default())
}

/// The message and the traffic class of each packet, in the order in which they left.
fn order(rig: &Rig) -> Vec<(u64, u8)> {
    let packets = rig.packets.iter().map(|packet| {
        let mut packet = packet.clone();
        let read = NativePacket::parse(&mut packet, 253).unwrap();
        let id = packet[read.datagram.start + 20..][..8].try_into().unwrap();
        (u64::from_be_bytes(id), read.traffic_class)
    });
    let mut order: Vec<_> = packets.collect();
    order.dedup();
    order
}

/// Posts messages of these ids and priorities, and lets them leave.
fn send(rig: &mut Rig, messages: &[(u64, u8)]) -> Vec<(u64, u8)> {
    let session = SessionKey::new(rig, 1);
    let messages = messages.iter();
    let posted: Vec<_> = messages
        .map(|(id, priority)| {
            let message = Message::new(&session, *id, 4, 2_000);
            rig.post_with_priority(&message, *priority);
            (*id, message)
        })
        .collect();
    rig.run();
    for (id, message) in &posted {
        assert!(rig.has_received(*id, message), "message {id}");
    }
    order(rig)
}

#[test]
fn a_message_of_a_higher_class_leaves_before_those_that_were_posted_earlier() {
    let order = send(&mut rig(8), &[(4, 0), (8, 3), (12, 7)]);
    assert_eq!(order, [(12, 7 << 5), (8, 3 << 5), (4, 0)]);
}

#[test]
fn priorities_of_one_class_leave_in_turn_and_a_device_without_classes_keeps_the_order() {
    let two = send(&mut rig(2), &[(4, 0), (8, 3), (12, 7), (16, 4)]);
    assert_eq!(two, [(12, 7 << 5), (16, 4 << 5), (4, 0), (8, 3 << 5)]);
    let one = send(&mut rig(1), &[(4, 0), (8, 3), (12, 7)]);
    assert_eq!(one, [(4, 0), (8, 3 << 5), (12, 7 << 5)]);
}

#[test]
fn a_message_whose_priority_changes_is_sealed_as_software_would() {
    let mut rig = rig(8);
    let session = SessionKey::new(&rig, 1);
    let message = Message::new(&session, 4, 6, 2_000);
    let parts = message.parts();
    rig.post_with_priority(&parts[0], 1);
    rig.post_with_priority(&parts[1], 6);
    rig.run();
    assert!(rig.has_received(4, &message));
    assert_eq!(order(&rig), [(4, 6 << 5), (4, 1 << 5)]);
    // Each class has a context of its own.
    assert_eq!(rig.driver.statistics().contexts_created, 2);
}

#[test]
fn more_queues_than_numbers_are_as_many_as_there_may_be() {
    let config = DriverConfig {
        queues: u16::MAX,
        priority_classes: 8,
        ring_entries: 8,
        ..DriverConfig::default()
    };
    let mut rig = Rig::new(config, DeviceOptions::default());
    assert_eq!(rig.driver.queues(), 8 * 4_096);
    let order = send(&mut rig, &[(4, 0), (2 * 65_534, 7)]);
    assert_eq!(order, [(2 * 65_534, 7 << 5), (4, 0)]);
}
