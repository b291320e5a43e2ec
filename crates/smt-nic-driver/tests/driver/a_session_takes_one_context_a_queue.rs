// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contexts, resyncs and evictions, by the counts of driver and device.

use smt_carrier::KeyStore;
use smt_nic_driver::DriverConfig;

use crate::rig::{DeviceOptions, Message, Rig, SessionKey};

fn rig(contexts_per_flow: usize, contexts_per_queue: usize) -> Rig {
    let config = DriverConfig {
        queues: 2,
        contexts_per_flow,
        contexts_per_queue,
        ..DriverConfig::default()
    };
    Rig::new(config, DeviceOptions::default())
}

/// Posts messages with these ids, each of two records, and lets them leave.
fn send(rig: &mut Rig, session: &SessionKey, ids: impl IntoIterator<Item = u64>) {
    for id in ids {
        rig.post(&Message::new(session, id, 2, 1_000));
        rig.run();
    }
}

#[test]
fn messages_of_a_session_reuse_its_context_by_a_resync() {
    let mut rig = rig(1, 64);
    let session = SessionKey::new(&rig, 1);
    // Ids 2 and 4 differ in their queue.
    send(&mut rig, &session, (1..=8).map(|number| 4 * number));
    let statistics = rig.driver.statistics();
    assert_eq!((statistics.contexts_created, statistics.resyncs), (1, 7));
    send(&mut rig, &session, (1..=8).map(|number| 4 * number + 2));
    let statistics = rig.driver.statistics();
    assert_eq!((statistics.contexts_created, statistics.resyncs), (2, 14));
    assert_eq!(rig.nic.counters().records_sealed, 32);
}

#[test]
fn short_messages_are_sealed_in_software() {
    let mut rig = rig(1, 64);
    let session = SessionKey::new(&rig, 1);
    rig.post(&Message::new(&session, 1, 1, 900));
    rig.run();
    let statistics = rig.driver.statistics();
    assert_eq!(statistics.records_in_software, 1);
    assert_eq!(rig.nic.contexts(), 0);
}

#[test]
fn sessions_beyond_the_bound_are_sealed_in_software_until_another_rests() {
    let mut rig = rig(1, 1);
    let [first, second] = [1, 2].map(|of| SessionKey::new(&rig, of));
    send(&mut rig, &first, [4]);
    send(&mut rig, &second, [8]);
    assert_eq!(rig.driver.statistics().records_in_software, 2);
    send(&mut rig, &second, [12]);
    let statistics = rig.driver.statistics();
    assert_eq!(statistics.records_in_software, 2);
    assert_eq!(statistics.contexts_evicted, 1);
    assert_eq!(rig.nic.contexts(), 1);
}

#[test]
fn the_contexts_of_a_removed_key_are_destroyed() {
    let mut rig = rig(1, 64);
    let [first, second] = [1, 2].map(|of| SessionKey::new(&rig, of));
    send(&mut rig, &first, [4, 6]);
    send(&mut rig, &second, [8]);
    assert_eq!(rig.nic.contexts(), 3);
    rig.keys.remove(first.handle);
    rig.driver.reap(&mut rig.nic);
    rig.run();
    assert_eq!(rig.nic.contexts(), 1);
}

#[test]
fn a_device_without_room_leaves_the_sealing_to_software() {
    let options = DeviceOptions { contexts_max: 0, ..DeviceOptions::default() };
    let mut rig = Rig::new(DriverConfig::default(), options);
    let session = SessionKey::new(&rig, 1);
    send(&mut rig, &session, [2, 6, 10]);
    let statistics = rig.driver.statistics();
    assert_eq!(statistics.records_in_software, 6);
    assert_eq!(statistics.contexts_created, 1, "the device is not asked again at once");
}
