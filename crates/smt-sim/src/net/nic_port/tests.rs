// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::net::packet::{HostId, Protocol};
use smt_testkit::{CipherWatch, KeyWatch};

struct Unwatched;

impl CipherWatch for Unwatched {
    fn key(&self, _key: &[u8], _iv: &[u8; 12]) -> Box<dyn KeyWatch> {
        unreachable!("nothing is sealed")
    }
}

const INTERRUPT: Duration = Duration::from_micros(20);

fn port(receive_buffers: u32) -> NicPort {
    port_of(DriverConfig { receive_queues: 1, receive_buffers, ..DriverConfig::default() })
}

fn port_of(driver: DriverConfig) -> NicPort {
    let choices = NicChoices {
        driver,
        device: NicConfig::default(),
        reset_chance: 0,
        batches_max: 4,
        interrupt_delay: INTERRUPT,
    };
    let engine = WatchedEngine::new(Box::new(Unwatched));
    let address = HostId(1).address();
    NicPort::new(choices, address, NicKeys::new(1), engine, Random::new(1))
}

/// A DATA packet of a message, with a payload of 1,000 bytes from this offset on.
fn data(offset: u32, is_marked: bool) -> Packet {
    let mut bytes = vec![0; 36 + 1_000];
    bytes[1] = 0x01;
    bytes[4] = 0xB0;
    bytes[27] = 2;
    bytes[28..32].copy_from_slice(&1_000_000_u32.to_be_bytes());
    bytes[32..36].copy_from_slice(&offset.to_be_bytes());
    Packet {
        from: HostId(0),
        to: HostId(1),
        bytes: bytes.into(),
        priority: 3,
        is_marked,
        is_trimmed: false,
        entropy: 0,
        protocol: Protocol::Smt,
    }
}

/// Lengths and marks of what arrives.
fn arrivals(port: &mut NicPort) -> Vec<(usize, Ecn)> {
    let mut arrivals = Vec::new();
    port.interrupt(&mut |arrival| {
        let local = HostId(1).address().ip();
        assert_eq!(arrival.path, Path::between(HostId(0).address(), local));
        arrivals.push((arrival.bytes.len(), arrival.marks.ecn));
    });
    arrivals
}

#[test]
fn packets_of_one_message_wait_for_the_interrupt_and_arrive_as_one() {
    let (mut port, now) = (port(8), Time::from_nanos(1_000));
    port.receive(now, &data(0, false));
    port.receive(now + Duration::from_micros(5), &data(1_000, false));
    port.receive(now + Duration::from_micros(5), &data(2_000, true));
    assert_eq!(port.next_interrupt(), Some(now + INTERRUPT));
    let marked = (36 + 1_000, Ecn::Ce);
    assert_eq!(arrivals(&mut port), [(36 + 2_000, Ecn::NotEct), marked]);
    assert_eq!(port.next_interrupt(), None);
    assert_eq!(port.counters().packets_merged, 1);
}

#[test]
fn the_interrupt_comes_at_once_when_a_queue_runs_out_of_buffers() {
    let (mut port, now) = (port(2), Time::from_nanos(1_000));
    port.receive(now, &data(0, false));
    assert_eq!(port.next_interrupt(), Some(now + INTERRUPT));
    port.receive(now, &data(5_000, false));
    assert_eq!(port.next_interrupt(), Some(now));
    assert_eq!(arrivals(&mut port).len(), 2);
    assert_eq!(port.counters().packets_dropped, 0);
}
#[test]
fn a_reset_takes_the_packets_that_wait_and_their_interrupt() {
    let (mut port, now) = (port(2), Time::from_nanos(1_000));
    port.receive(now, &data(0, false));
    port.reset_now();
    assert_eq!(port.next_interrupt(), None);
    // The ring is empty again: the interrupt is no earlier than after any first packet.
    port.receive(now, &data(1_000, false));
    assert_eq!(port.next_interrupt(), Some(now + INTERRUPT));
    assert_eq!(arrivals(&mut port), [(36 + 1_000, Ecn::NotEct)]);
}

#[test]
fn batches_that_wait_together_leave_by_class_or_in_any_order() {
    let mut orders = Vec::new();
    let mut port = port_of(DriverConfig { priority_classes: 8, ..DriverConfig::default() });
    for _ in 0..50 {
        for priority in [0, 7, 3] {
            let datagram = data(0, false).bytes;
            let path = Path::to(HostId(0).address());
            let batch = Batch { priority, ..Batch::datagrams(path, datagram.len(), &datagram) };
            port.post(&batch);
            assert!(port.next_datagrams().is_none(), "it has left alone");
        }
        port.leave();
        let left = std::iter::from_fn(|| port.next_datagrams());
        orders.push(left.map(|left| left.priority).collect::<Vec<_>>());
    }
    let by_class = orders.iter().filter(|order| **order == [7, 3, 0]).count();
    assert!((10..40).contains(&by_class), "{orders:?}");
}
