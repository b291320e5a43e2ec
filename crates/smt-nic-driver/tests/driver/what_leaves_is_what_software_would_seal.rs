// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets that leave are the same whichever way their records were sealed, and no number meets
//! two plaintexts: in any order of the queues' steps, with resets, errors and without room.

use proptest::prelude::*;
use smt_carrier::KeyStore;
use smt_nic_driver::DriverConfig;

use crate::rig::{DeviceOptions, Message, Rig, SessionKey};

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A message of this session, with so many records of so many bytes, is posted.
    Post(u8, u64, usize),
    Step(u16),
    Reap,
    Reset,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0_u8..4, 1_u64..4, 1_usize..5_000).prop_map(|(of, records, bytes)| {
            Act::Post(of, records, bytes)
        }),
        12 => (0_u16..3).prop_map(Act::Step),
        3 => Just(Act::Reap),
        1 => Just(Act::Reset),
    ]
}

fn config() -> impl Strategy<Value = DriverConfig> {
    (1_usize..3, 1_usize..5, 8_u32..20).prop_map(|(per_flow, per_queue, entries)| DriverConfig {
        queues: 3,
        ring_entries: entries,
        contexts_per_flow: per_flow,
        contexts_per_queue: per_queue,
        offload_bytes_min: 500,
        waiting_max: 1_000,
        ..DriverConfig::default()
    })
}

proptest! {
    #[test]
    fn every_message_arrives_as_software_seals_it(
        config in config(),
        contexts_max in 0_usize..8,
        fails_each in 0_u64..6,
        is_ipv6: bool,
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let options = DeviceOptions { contexts_max, fails_each, is_ipv6 };
        let mut rig = Rig::new(config, options);
        let sessions: Vec<SessionKey> = (0..4).map(|of| SessionKey::new(&rig, of)).collect();
        let mut messages = Vec::new();
        let has_reset = acts.iter().any(|act| matches!(act, Act::Reset));
        for act in acts {
            match act {
                Act::Post(of, records, bytes) => {
                    // A segment is two packets over IPv6.
                    let (records, bytes) = if is_ipv6 { (1, bytes.min(2_700)) } else { (records, bytes) };
                    let id = messages.len() as u64 + 1;
                    let message = Message::new(&sessions[usize::from(of)], id, records, bytes);
                    rig.post_in_parts(&message);
                    messages.push((id, message));
                }
                Act::Step(queue) => _ = rig.step(queue),
                Act::Reap => rig.driver.reap(&mut rig.nic),
                Act::Reset => rig.driver.reset(&mut rig.nic),
            }
        }
        rig.run();
        // A reset loses all that is under way, and nothing else.
        let is_lossy = rig.driver.statistics().lost > 0;
        prop_assert!(!is_lossy || has_reset);
        for (id, message) in messages {
            let (received, sealed) = (rig.received(id), message.sealed());
            prop_assert!(is_lossy || received.len() == sealed.len(), "message {} is whole", id);
            for (at, byte) in received {
                prop_assert_eq!(byte, sealed[at], "message {}", id);
            }
        }
    }
}

// SMT [15.2-7]
#[test]
fn a_segment_over_ipv6_is_a_pair() {
    let options = DeviceOptions { is_ipv6: true, ..DeviceOptions::default() };
    let mut rig = Rig::new(DriverConfig::default(), options);
    let session = SessionKey::new(&rig, 1);
    let message = Message::new(&session, 1, 1, 2_700);
    rig.post(&message);
    rig.run();
    assert_eq!(rig.packets.len(), 2);
    assert!(rig.has_received(1, &message));
    assert_eq!(rig.driver.statistics().segments_offloaded, 1);
}

#[test]
fn a_payload_that_an_engine_refuses_leaves_sealed_by_software() {
    let options = DeviceOptions { fails_each: 1, ..DeviceOptions::default() };
    let mut rig = Rig::new(DriverConfig::default(), options);
    let session = SessionKey::new(&rig, 1);
    let message = Message::new(&session, 1, 3, 2_000);
    rig.post(&message);
    rig.run();
    assert!(rig.has_received(1, &message));
    let statistics = rig.driver.statistics();
    assert_eq!((statistics.repeated, statistics.records_in_software), (1, 3));
}

#[test]
fn a_segment_behind_a_refused_one_is_not_sealed_under_its_numbers() {
    let options = DeviceOptions { fails_each: 3, ..DeviceOptions::default() };
    let mut rig = Rig::new(DriverConfig::default(), options);
    let session = SessionKey::new(&rig, 1);
    // The second part of a message goes on where the first ends, and is posted before the driver
    // hears that the first was refused.
    let message = |id| Message::new(&session, id, 3, 2_000);
    let ids = [4, 8, 12];
    ids.iter().for_each(|id| rig.post_in_parts(&message(*id)));
    rig.run();
    for id in ids {
        assert!(rig.has_received(id, &message(id)));
    }
    assert!(rig.driver.statistics().repeated >= 2);
}

#[test]
fn a_message_whose_key_was_removed_is_lost_and_others_are_not() {
    let mut rig = Rig::new(DriverConfig::default(), DeviceOptions::default());
    let [gone, kept] = [1, 2].map(|of| SessionKey::new(&rig, of));
    rig.keys.remove(gone.handle);
    rig.post(&Message::new(&gone, 1, 2, 2_000));
    let message = Message::new(&kept, 2, 2, 2_000);
    rig.post(&message);
    rig.run();
    assert!(rig.received(1).is_empty());
    assert!(rig.has_received(2, &message));
    assert_eq!(rig.driver.statistics().lost, 1);
}
