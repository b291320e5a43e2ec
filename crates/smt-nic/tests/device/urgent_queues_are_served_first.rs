// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classes of queues: strict priority between them, and turns within one.

use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig, Step};

use crate::support::Host;

/// Queues of these classes, with rings of so many entries.
fn device(classes: &[u8], entries: u32) -> (Nic<TlsEngine>, Host) {
    let (mut nic, mut host) = (Nic::new(NicConfig::default(), TlsEngine), Host::default());
    for class in classes {
        host.add_queue_of_class(&mut nic, *class, entries);
    }
    (nic, host)
}

/// Posts a packet whose payload is one byte.
fn post(nic: &mut Nic<TlsEngine>, host: &mut Host, queue: u16, byte: u8) {
    let segment = host.segment(None, &[byte], 0);
    host.post(nic, queue, segment);
}

/// Takes steps of the queue whose turn it is, so many at most. The bytes of the packets that leave.
fn serve(nic: &mut Nic<TlsEngine>, host: &mut Host, steps: usize) -> Vec<u8> {
    let mut left = Vec::new();
    for _ in 0..steps {
        let Some(queue) = nic.next_queue() else {
            break;
        };
        let mut wire = |packet: &[u8]| left.push(*packet.last().unwrap());
        let step = nic.step(queue, host, &mut wire).unwrap();
        assert!(!matches!(step, Step::Idle | Step::Blocked), "{step:?}");
    }
    left
}

#[test]
fn a_packet_of_a_higher_class_leaves_before_those_that_were_posted_earlier() {
    let (mut nic, mut host) = device(&[0, 7, 3], 8);
    for (queue, byte) in [(0, 1), (0, 2), (2, 3), (1, 4), (1, 5)] {
        post(&mut nic, &mut host, queue, byte);
    }
    assert_eq!(serve(&mut nic, &mut host, 100), [4, 5, 3, 1, 2]);
}

#[test]
fn a_packet_of_a_higher_class_overtakes_a_descriptor_that_was_fetched() {
    let (mut nic, mut host) = device(&[0, 1], 8);
    post(&mut nic, &mut host, 0, 1);
    assert!(serve(&mut nic, &mut host, 1).is_empty());
    post(&mut nic, &mut host, 1, 2);
    assert_eq!(serve(&mut nic, &mut host, 100), [2, 1]);
}

#[test]
fn queues_of_one_class_take_turns() {
    let (mut nic, mut host) = device(&[2, 2, 2], 8);
    for byte in 0..3 {
        for queue in [0, 1, 2] {
            post(&mut nic, &mut host, queue, 10 * byte + queue as u8);
        }
    }
    let left = serve(&mut nic, &mut host, 100);
    for round in left.chunks(3) {
        let mut queues: Vec<_> = round.iter().map(|byte| byte % 10).collect();
        queues.sort_unstable();
        assert_eq!(queues, [0, 1, 2], "{left:?}");
    }
}

#[test]
fn queues_take_turns_whatever_other_classes_send_between() {
    let (mut nic, mut host) = device(&[0, 0, 1], 16);
    for byte in 0..4 {
        post(&mut nic, &mut host, 0, byte);
        post(&mut nic, &mut host, 1, 10 + byte);
    }
    let mut left = Vec::new();
    // Two steps of class 0 let one packet of it leave; one of class 1 comes after each step.
    while nic.has_work(0) || nic.has_work(1) {
        left.extend(serve(&mut nic, &mut host, 1));
        post(&mut nic, &mut host, 2, URGENT);
        while nic.has_work(2) {
            left.extend(serve(&mut nic, &mut host, 1));
        }
        host.completion(&mut nic, 2).unwrap();
    }
    left.retain(|byte| *byte != URGENT);
    assert_eq!(left, [0, 10, 1, 11, 2, 12, 3, 13]);
}

#[test]
fn a_device_that_was_reset_begins_with_the_first_queue() {
    let (mut nic, mut host) = device(&[0, 0], 8);
    post(&mut nic, &mut host, 0, 1);
    assert_eq!(serve(&mut nic, &mut host, 2), [1]);
    nic.reset();
    let mut host = Host::default();
    for _ in 0..2 {
        host.add_queue_of_class(&mut nic, 0, 8);
    }
    post(&mut nic, &mut host, 1, 3);
    post(&mut nic, &mut host, 0, 2);
    assert_eq!(serve(&mut nic, &mut host, 100), [2, 3]);
}

#[test]
fn a_class_whose_completions_are_not_read_holds_up_no_other() {
    let (mut nic, mut host) = device(&[1, 0], 2);
    for byte in [1, 2] {
        post(&mut nic, &mut host, 0, byte);
    }
    assert_eq!(serve(&mut nic, &mut host, 100), [1, 2]);
    // The ring of completions is full, and nobody reads it.
    post(&mut nic, &mut host, 0, 3);
    post(&mut nic, &mut host, 1, 4);
    assert_eq!(serve(&mut nic, &mut host, 100), [4]);
    assert!(nic.has_work(0), "the packet of the higher class waits");
    host.completion(&mut nic, 0).unwrap();
    assert_eq!(serve(&mut nic, &mut host, 100), [3]);
}

/// The byte of packets of the higher class.
const URGENT: u8 = 0xFF;
