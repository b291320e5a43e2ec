// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_nic::completion::Status;
use smt_nic::descriptor::ContextId;
use smt_nic::psp::{MasterKey, NotAllocated, PspVersion};

use super::host::{CONTEXT, PspHost, data, pair, payload};

/// Sends a packet, and returns the mark with which it arrives.
fn deliver(near: &mut PspHost, context: ContextId, far: &mut PspHost) -> Option<u32> {
    let (status, packets) = near.send(Some(context), &data(true, 90, 0), &payload(90), 0);
    assert_eq!(status, Status::Done);
    far.receive(&packets).first().and_then(|of| of.psp)
}

// SMT [15.3-4]
#[test]
fn an_association_outlives_one_rotation_and_not_two() {
    let (mut near, mut far, old) = pair();
    far.nic.rotate_psp_key(MasterKey::new([8; 32]));
    let new = far.allocate();
    near.add(ContextId(2), &new, 1);
    assert_eq!(deliver(&mut near, CONTEXT, &mut far), Some(old.spi));
    assert_eq!(deliver(&mut near, ContextId(2), &mut far), Some(new.spi));
    far.nic.rotate_psp_key(MasterKey::new([9; 32]));
    assert_eq!(deliver(&mut near, CONTEXT, &mut far), None);
    assert_eq!(deliver(&mut near, ContextId(2), &mut far), Some(new.spi));
    assert_eq!(far.nic.counters().psp_not_authentic, 1);
    assert_eq!(far.nic.psp_rotations(), 2);
}

#[test]
fn a_device_without_a_key_allocates_nothing() {
    let mut host = PspHost::sender(1);
    let refused = host.nic.allocate_psp(PspVersion::AesGcm256);
    assert_eq!(refused.map(|of| of.spi), Err(NotAllocated::NoDeviceKey));
    host.nic.rotate_psp_key(MasterKey::new([8; 32]));
    assert_eq!(host.nic.psp_rotations(), 0, "the first key replaces none");
    assert_eq!(host.allocate().spi, 1);
}

// SMT [15.3-2]
#[test]
fn a_reset_leaves_the_keys_of_the_device_and_gives_no_spi_again() {
    let (mut near, mut far, association) = pair();
    near.nic.reset();
    assert_eq!(near.nic.contexts(), 0);
    far.nic.reset();
    assert_ne!(far.allocate().spi, association.spi);
    let mut near = PspHost::sender(1);
    near.add(CONTEXT, &association, 1);
    let (_, packets) = near.send(Some(CONTEXT), &data(true, 90, 0), &payload(90), 0);
    let before = far.nic.counters().psp_opened;
    // The queues went with the reset: what is received has no place.
    assert!(far.receive(&packets).is_empty());
    assert_eq!(far.nic.counters().psp_opened, before);
}
