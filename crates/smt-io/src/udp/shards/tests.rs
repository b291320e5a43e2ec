// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real sockets on loopback that share an address; ports are the system's choice.

use crate::testing::Described as _;
use crate::{UdpCarrier, UdpOptions};
use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use smt_carrier::{Arrival, Carrier, Path, Transmit, Wait};
use smt_wire::Shard;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Far above what loopback takes on a busy host.
const SOON: Wait = Wait::AtMost(Duration::from_secs(10));

fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Shards of an address, and a client of it.
struct Shards {
    carriers: Vec<UdpCarrier>,
    client: UdpCarrier,
    buffer: Vec<u8>,
}

impl Shards {
    fn new(count: u16, options: &UdpOptions) -> Self {
        Self::at(local(), count, options)
    }

    fn at(address: SocketAddr, count: u16, options: &UdpOptions) -> Self {
        let carriers = options.bind_shards(address, count).unwrap();
        let mut server = carriers[0].local_address();
        if server.ip().is_unspecified() {
            server.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Self {
            carriers,
            client: options.connect(server).unwrap(),
            buffer: vec![0; RECEIVE_BUFFER_BYTES],
        }
    }

    fn count(&self) -> u16 {
        self.carriers.len() as u16
    }

    fn send(&self, bytes: &[u8], segment_size: usize) {
        let server = self.client.connected.unwrap();
        let transmit = Transmit::new(Path::to(server), segment_size);
        self.client.send_bytes(&transmit, bytes).unwrap();
    }

    /// The next datagrams that a shard receives and that are its own.
    fn next(&mut self, number: u16, wait: Wait) -> Option<Vec<Vec<u8>>> {
        let carrier = &self.carriers[usize::from(number)];
        while let Some(received) = carrier.receive_into(&mut self.buffer, wait).unwrap() {
            if received.length > 0 {
                let datagrams = received.arrival(&self.buffer).segments();
                return Some(datagrams.map(|bytes| bytes.to_vec()).collect());
            }
        }
        None
    }

    /// Sends a datagram, which must come out at its shard.
    fn assert_arrives(&mut self, datagram: &[u8]) {
        self.send(datagram, datagram.len());
        let number = Shard::of_datagram(datagram, self.count());
        let arrived = self.next(number, SOON);
        assert_eq!(arrived, Some(vec![datagram.to_vec()]), "at shard {number}");
    }

    fn strays(&self) -> u64 {
        let carriers = self.carriers.iter();
        carriers.map(|carrier| carrier.statistics().datagrams_strayed).sum()
    }
}

/// A datagram for a shard, by the index of a DATA packet.
fn data(number: u16, tail: u8) -> [u8; 40] {
    let mut bytes = [tail; 40];
    bytes[..2].copy_from_slice(&[1, 1]);
    bytes[12..20].copy_from_slice(&u64::from(number).to_be_bytes());
    bytes
}

/// One or more packets of every type.
fn vectors() -> Vec<Vec<u8>> {
    let file = include_str!("../../../../../vectors/packets.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let packets = file["packets"].as_array().unwrap().iter();
    packets
        .map(|packet| {
            let hex = packet["hex"].as_str().unwrap().as_bytes().chunks(2);
            hex.map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
                .collect()
        })
        .collect()
}

/// The vectors, with indices for all shards in them.
fn packets_for_all(count: u16) -> impl Iterator<Item = Vec<u8>> {
    vectors().into_iter().flat_map(move |packet| {
        (0..count).map(move |number| {
            let mut packet = packet.clone();
            for serial in [16..20, 24..28] {
                if let Some(place) = packet.get_mut(serial)
                    && place != [0; 4]
                {
                    place.copy_from_slice(&u32::from(count + number).to_be_bytes());
                }
            }
            packet
        })
    })
}

#[cfg(target_os = "linux")]
mod selector {
    use super::*;

    fn selected(address: SocketAddr, count: u16) -> Shards {
        let shards = Shards::at(address, count, &UdpOptions::new());
        assert!(shards.carriers.iter().all(UdpCarrier::has_shard_selector));
        shards
    }

    #[test]
    fn every_packet_arrives_at_its_shard_by_itself() {
        let mut addresses = vec![local()];
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        if UdpCarrier::bind(v6).is_ok() {
            addresses.extend([v6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))]);
        }
        for address in addresses {
            let mut shards = selected(address, 4);
            packets_for_all(4).for_each(|packet| shards.assert_arrives(&packet));
            assert_eq!(shards.strays(), 0, "{address}");
        }
    }

    /// The program and the rule are the same, for any bytes.
    #[test]
    fn whatever_comes_arrives_where_the_rule_says() {
        let mut shards = selected(local(), 8);
        let mut state: u32 = 1;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for length in (1..64).cycle().take(2_000) {
            let mut bytes: Vec<u8> = (0..length).map(|_| random()).collect();
            // Half of them with a type that has an index, and an eighth without a destination.
            if let Some(kind) = bytes.get_mut(1)
                && *kind < 128
            {
                *kind = [0x01, 0x10, 0x1F, 0x20][usize::from(*kind) % 4];
            }
            if random() < 32
                && let Some(serial) = bytes.get_mut(16..20)
            {
                serial.fill(0);
            }
            shards.assert_arrives(&bytes);
        }
        assert_eq!(shards.strays(), 0);
    }

    /// The kernel looks at the first datagram of a batch alone.
    #[test]
    fn what_shares_a_batch_with_another_shards_is_handed_over() {
        let mut shards = selected(local(), 2);
        let sent = [data(0, 1), data(1, 2), data(1, 3), data(0, 4), data(1, 5)];
        shards.send(&sent.concat(), 40);
        let (mut at_first, mut at_second) = (Vec::new(), Vec::new());
        while at_first.len() < 2 {
            at_first.extend(shards.next(0, SOON).unwrap());
        }
        while at_second.len() < 3 {
            at_second.extend(shards.next(1, SOON).unwrap());
        }
        assert_eq!(at_first, [sent[0], sent[3]]);
        assert_eq!(at_second, [sent[1], sent[2], sent[4]]);
    }

    #[test]
    fn a_shard_that_closes_leaves_the_others_their_numbers() {
        let mut shards = selected(local(), 4);
        drop(shards.carriers.remove(1));
        for (place, number) in [(0, 0), (1, 2), (2, 3)] {
            let datagram = data(number, 9);
            shards.send(&datagram, datagram.len());
            assert_eq!(shards.next(place, SOON), Some(vec![datagram.to_vec()]));
        }
        assert_eq!(shards.strays(), 0);
    }
}

mod bind_shards {
    use super::*;

    #[test]
    fn an_address_that_is_taken_is_refused_whoever_has_it() {
        for options in [UdpOptions::new(), UdpOptions::new().shard_selector(false)] {
            let shards = Shards::new(2, &options);
            let address = shards.carriers[0].local_address();
            assert!(options.bind_shards(address, 2).is_err());
            assert!(options.bind(address).is_err());
            drop(shards.carriers);
            assert!(options.bind_shards(address, 2).is_ok());
        }
    }

    #[test]
    fn one_shard_is_a_plain_carrier() {
        let carriers = UdpOptions::new().bind_shards(local(), 1).unwrap();
        assert_eq!(carriers.len(), 1);
        assert!(carriers[0].inbox_fd().is_none());
    }

    #[test]
    #[should_panic(expected = "power of two")]
    fn three_shards_are_refused() {
        let _ = UdpOptions::new().bind_shards(local(), 3);
    }
}

mod without_selector {
    use super::*;
    use crate::udp::wait_readable;

    fn unselected(count: u16) -> Shards {
        let shards = Shards::new(count, &UdpOptions::new().shard_selector(false));
        assert!(!shards.carriers[0].has_shard_selector());
        shards
    }

    #[test]
    fn every_packet_arrives_at_its_shard() {
        let mut shards = unselected(4);
        packets_for_all(4).for_each(|packet| shards.assert_arrives(&packet));
        assert_eq!(shards.strays(), 0, "each has read its own");
    }

    #[test]
    fn one_shard_reads_for_the_others_and_wakes_them() {
        let mut shards = unselected(4);
        for number in [3, 1, 3] {
            shards.send(&data(number, 7), 40);
        }
        assert_eq!(shards.next(0, Wait::Never), None);
        assert_eq!(shards.strays(), 3);
        for (number, datagrams) in [(1, 1), (2, 0), (3, 2)] {
            let carrier = &shards.carriers[usize::from(number)];
            let wakeup = carrier.inbox_fd().unwrap();
            let is_raised = wait_readable([wakeup], Duration::ZERO).unwrap();
            assert_eq!(is_raised, datagrams > 0);
            for _ in 0..datagrams {
                let arrived = shards.next(number, Wait::Never);
                assert_eq!(arrived, Some(vec![data(number, 7).to_vec()]));
            }
            assert_eq!(shards.next(number, Wait::Never), None);
        }
    }

    #[test]
    fn a_waiting_shard_is_woken_for_what_another_has_received() {
        let shards = unselected(2);
        let (carriers, datagram) = (&shards.carriers, data(1, 7));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                let mut buffer = vec![0; RECEIVE_BUFFER_BYTES];
                let received = carriers[1].receive_into(&mut buffer, SOON).unwrap();
                received.map(|received| buffer[..received.length].to_vec())
            });
            // Into the inbox directly: a datagram in the socket would wake it by itself.
            carriers[1]
                .shard_socket
                .as_ref()
                .unwrap()
                .inbox()
                .put(Arrival::datagram(Path::to(shards.client.local_address()), &datagram));
            assert_eq!(waiting.join().unwrap(), Some(datagram.to_vec()));
        });
    }

    #[test]
    fn a_shard_that_nobody_serves_costs_the_others_nothing_but_a_bounded_inbox() {
        let mut shards = unselected(2);
        let batch: Vec<u8> = (0..60).flat_map(|tail| data(1, tail)).collect();
        for _ in 0..3_000 {
            shards.send(&batch, 40);
            assert_eq!(shards.next(0, Wait::Never), None);
        }
        shards.assert_arrives(&data(0, 1));
        let unserved = shards.carriers[1].statistics();
        assert!(unserved.datagrams_dropped > 0, "{unserved:?}");
    }

    #[test]
    fn shards_divide_the_sockets_buffer() {
        let shards = unselected(4);
        let whole = UdpCarrier::bind(local()).unwrap().receive_buffer_bytes();
        assert_eq!(shards.carriers[3].receive_buffer_bytes(), whole / 4);
    }
}
