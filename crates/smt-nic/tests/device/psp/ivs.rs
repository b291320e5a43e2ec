// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IVs: no two packets of an association have the same, whatever the host asks for.

use std::collections::BTreeSet;

use proptest::prelude::*;
use smt_nic::completion::Status;
use smt_nic::descriptor::{ContextId, Work};

use super::host::{CONTEXT, PspHost, data, pair, payload};

/// The IV of a packet over IPv4.
fn iv(packet: &[u8]) -> u64 {
    u64::from_be_bytes(packet[20 + 8 + 8..20 + 8 + 16].try_into().unwrap())
}

fn send(near: &mut PspHost, bytes: usize) -> (Status, Vec<u64>) {
    let header = data(true, bytes as u32, 100);
    let (status, packets) = near.send(Some(CONTEXT), &header, &payload(bytes), 100);
    (status, packets.iter().map(|packet| iv(packet)).collect())
}

// SMT [15.3-7], [15.3-8]
#[test]
fn ivs_count_up_from_the_first_by_one_a_packet_also_of_one_that_is_repeated() {
    let (mut near, _, _) = pair();
    assert_eq!(send(&mut near, 300), (Status::Done, vec![1, 2, 3]));
    assert_eq!(send(&mut near, 300), (Status::Done, vec![4, 5, 6]));
}

#[test]
fn a_segment_that_needs_more_ivs_than_are_left_is_refused_whole() {
    let (mut near, mut far) = (PspHost::sender(1), PspHost::receiver());
    let association = far.allocate();
    near.add(CONTEXT, &association, u64::MAX - 1);
    assert_eq!(send(&mut near, 300), (Status::NumbersUsedUp, vec![]));
    let last = vec![u64::MAX - 1, u64::MAX];
    assert_eq!(send(&mut near, 200), (Status::Done, last));
    for _ in 0..2 {
        assert_eq!(send(&mut near, 100), (Status::NumbersUsedUp, vec![]));
    }
    let number = 5;
    near.work(Work::Resync { context: CONTEXT, number });
    assert_eq!(send(&mut near, 100), (Status::NumbersUsedUp, vec![]));
}

#[test]
fn a_resync_takes_the_iv_forward_and_never_back() {
    let (mut near, _, _) = pair();
    let context = CONTEXT;
    for (number, next) in [(0, 1), (50, 50), (49, 50), (1, 50), (u64::MAX, u64::MAX)] {
        assert_eq!(near.work(Work::Resync { context, number }).0, Status::Done);
        assert_eq!(near.nic.context(context).unwrap().next_iv(), Some(next));
    }
}

#[test]
fn a_context_that_is_created_anew_goes_on_behind_the_ivs_that_its_host_has_counted() {
    let (mut near, mut far, association) = pair();
    assert_eq!(send(&mut near, 300).1, [1, 2, 3]);
    assert_eq!(near.work(Work::Destroy { context: CONTEXT }).0, Status::Done);
    assert_eq!(near.add(CONTEXT, &association, 4), Status::Done);
    let (_, packets) = near.send(Some(CONTEXT), &data(true, 100, 0), &payload(100), 0);
    assert_eq!(iv(&packets[0]), 4);
    assert_eq!(far.receive(&packets)[0].psp, Some(association.spi));
}

#[test]
fn a_context_that_left_the_cache_goes_on_where_it_was() {
    let (mut near, mut far, _) = pair();
    let other = far.allocate();
    assert_eq!(send(&mut near, 200).1, [1, 2]);
    near.add(ContextId(2), &other, 1);
    assert_eq!(send(&mut near, 200).1, [3, 4]);
    assert!(near.nic.counters().context_misses > 0);
}

/// A word of the host to its device.
#[derive(Clone, Copy, Debug)]
enum Told {
    Send {
        bytes: usize,
        stride: u16,
        identification: u8,
    },
    Resync(u64),
    /// Destroys the context, and creates it behind all IVs that packets may have had.
    Anew,
}

fn told() -> impl Strategy<Value = Told> {
    let send = (0_usize..700, 0_u16..200, 0_u8..3);
    prop_oneof![
        6 => send.prop_map(|(bytes, stride, identification)| Told::Send { bytes, stride, identification }),
        2 => (0_u64..60).prop_map(Told::Resync),
        1 => Just(Told::Anew),
    ]
}

proptest! {
    #[test]
    fn no_iv_leaves_twice_under_any_descriptors(all in prop::collection::vec(told(), 0..40)) {
        let (mut near, mut far, association) = pair();
        let (mut seen, mut left) = (BTreeSet::new(), 0);
        // The IVs that may have been used, as a host counts them.
        let mut bound = 1_u64;
        for told in all {
            match told {
                Told::Send { bytes, stride, identification } => {
                    let mut header = data(true, bytes as u32, stride);
                    header[5] = identification;
                    bound += bytes.div_ceil(usize::from(stride).max(1)).max(1) as u64;
                    let (_, packets) = near.send(Some(CONTEXT), &header, &payload(bytes), stride);
                    left += packets.len();
                    seen.extend(packets.iter().map(|packet| iv(packet)));
                    // No more at once than the host has buffers.
                    let arrived = packets.chunks(32).flat_map(|some| far.receive(some));
                    let opened: usize = arrived.map(|of| usize::from(of.packets)).sum();
                    prop_assert_eq!(opened, packets.len());
                }
                Told::Resync(number) => {
                    bound = bound.max(number);
                    near.work(Work::Resync { context: CONTEXT, number });
                }
                Told::Anew => {
                    near.work(Work::Destroy { context: CONTEXT });
                    near.add(CONTEXT, &association, bound);
                }
            }
        }
        prop_assert_eq!(seen.len(), left);
    }
}
