// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The native carrier on loopback, where the process may open raw sockets.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Batch, Carrier, Path, SendError, Wait};
use smt_io::{NativeCarrier, NativeError, NativeOptions};

/// A protocol number of these tests' own, so that nothing else of the host sends to it.
const PROTOCOL: u8 = 254;

fn open(ip: IpAddr) -> Option<NativeCarrier> {
    let options = NativeOptions::default().protocol(PROTOCOL);
    match NativeCarrier::bind(SocketAddr::new(ip, 0), &options) {
        Ok(carrier) => Some(carrier),
        Err(error @ NativeError::NotPermitted { .. }) => {
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Loopback addresses that this host has; none where raw sockets are not permitted.
fn addresses() -> Vec<IpAddr> {
    let all: [IpAddr; 2] = ["127.0.0.1", "::1"].map(|ip| ip.parse().unwrap());
    all.into_iter().filter(|ip| std::net::UdpSocket::bind((*ip, 0)).is_ok()).collect()
}

/// The datagrams that come until nothing comes for a while, and whence.
fn received(carrier: &NativeCarrier, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut datagrams = Vec::new();
    let wait = Wait::AtMost(Duration::from_secs(5));
    while datagrams.len() < count {
        let mut sink = |arrival: smt_carrier::Arrival<'_>| {
            datagrams.push((arrival.path.remote, arrival.bytes.to_vec()));
        };
        assert!(carrier.receive(&mut sink, wait).unwrap() > 0, "nothing came");
    }
    datagrams
}

// SMT [6.6-3] [6.6-5]
#[test]
fn each_shard_gets_the_packets_that_name_it() {
    let options = NativeOptions::default().protocol(PROTOCOL);
    for ip in addresses() {
        let Some(sender) = open(ip) else { return };
        for count in [1, 2, 8] {
            let shards = options.bind_shards(SocketAddr::new(ip, 0), count).unwrap();
            let address = shards[0].local_address();
            let mut expected = vec![Vec::new(); usize::from(count)];
            for number in 0..64_u8 {
                // DATA, control, flight 1, a later flight, and a type that tells of no shard.
                let kind = [1, 0x21, 0x10, 0x10, 0x15][usize::from(number % 5)];
                let mut datagram = vec![0; if number == 63 { 9 } else { 60 }];
                if number == 63 {
                    // Too short to tell of any.
                    datagram[1] = 1;
                    sender.send(&Batch::datagrams(Path::to(address), 9, &datagram)).unwrap();
                    expected[0].push(datagram);
                    continue;
                }
                datagram[1] = kind;
                datagram[15] = number / 5;
                if kind != 0x10 || number % 2 == 0 {
                    datagram[19] = number;
                }
                datagram[23] = number / 3;
                datagram[27] = number + 1;
                let shard = smt_wire::Shard::of_datagram(&datagram, count);
                let batch = Batch::datagrams(Path::to(address), datagram.len(), &datagram);
                sender.send(&batch).unwrap();
                expected[usize::from(shard)].push(datagram);
            }
            assert!(expected.iter().all(|datagrams| !datagrams.is_empty()));
            for (shard, expected) in shards.iter().zip(expected) {
                let datagrams = received(shard, expected.len());
                let bytes: Vec<_> = datagrams.into_iter().map(|(_, bytes)| bytes).collect();
                assert!(bytes == expected, "of {count} shards at {ip}");
                let nothing = shard.receive(&mut |_| unreachable!(), Wait::Never);
                assert_eq!(nothing, Ok(0));
            }
        }
    }
}

#[test]
fn a_carrier_for_both_versions_of_ip_has_one_port_for_them() {
    let [_, v6] = addresses()[..] else { return };
    let any: SocketAddr = "[::]:0".parse().unwrap();
    let Some(both) = open(any.ip()) else { return };
    let port = both.local_address().port();
    for ip in ["127.0.0.1".parse().unwrap(), v6] {
        let sender = open(ip).unwrap();
        let to = SocketAddr::new(ip, port);
        let batch = Batch::datagrams(Path::to(to), 5, b"hello");
        sender.send(&batch).unwrap();
        let datagrams = received(&both, 1);
        assert_eq!(datagrams, [(sender.local_address(), b"hello".to_vec())]);
        let options = NativeOptions::default().protocol(PROTOCOL);
        assert!(NativeCarrier::bind(to, &options).is_err());
    }
}

// SMT [15.2-2]
#[test]
fn each_carrier_gets_the_datagrams_of_its_own_port_alone() {
    for ip in addresses() {
        let Some(sender) = open(ip) else { return };
        let receivers = [open(ip).unwrap(), open(ip).unwrap()];
        for (number, receiver) in receivers.iter().enumerate() {
            let bytes = vec![number as u8; 3_000];
            let batch = Batch::datagrams(Path::to(receiver.local_address()), 1_200, &bytes);
            sender.send(&batch).unwrap();
        }
        for (number, receiver) in receivers.iter().enumerate() {
            let datagrams = received(receiver, 3);
            let lengths: Vec<usize> = datagrams.iter().map(|(_, bytes)| bytes.len()).collect();
            assert_eq!(lengths, [1_200, 1_200, 600]);
            for (remote, bytes) in datagrams {
                assert_eq!(remote, sender.local_address());
                assert!(bytes.iter().all(|byte| usize::from(*byte) == number));
            }
            let nothing = receiver.receive(&mut |_| unreachable!(), Wait::Never);
            assert_eq!(nothing, Ok(0));
        }
    }
}

#[test]
fn the_longest_datagram_arrives_and_a_longer_one_is_refused() {
    for ip in addresses() {
        let Some(sender) = open(ip) else { return };
        let receiver = open(ip).unwrap();
        let path = Path::to(receiver.local_address());
        // The interface may carry less than IP: loopback's MTU is 65,536.
        let longest = sender.capabilities().datagram_max;
        let bytes = vec![7; longest];
        sender.send(&Batch::datagrams(path, longest, &bytes)).unwrap();
        assert!(received(&receiver, 1)[0].1 == bytes);
        let longer = vec![7; longest + 1_000];
        let refused = sender.send(&Batch::datagrams(path, longer.len(), &longer));
        assert_eq!(refused, Err(SendError::TooLarge));
    }
}

#[test]
fn a_port_that_another_carrier_has_is_refused_with_both_names() {
    for ip in addresses() {
        let Some(first) = open(ip) else { return };
        let options = NativeOptions::default().protocol(PROTOCOL);
        let refused = NativeCarrier::bind(first.local_address(), &options).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&first.local_address().to_string()), "{text}");
    }
}

#[test]
fn packets_that_are_no_datagrams_of_anybody_do_no_harm() {
    let ip: IpAddr = "127.0.0.1".parse().unwrap();
    let Some(receiver) = open(ip) else { return };
    let sender = open(ip).unwrap();
    let raw = socket2::Socket::new(
        socket2::Domain::IPV4,
        socket2::Type::RAW,
        Some(socket2::Protocol::from(i32::from(PROTOCOL))),
    )
    .unwrap();
    let to = socket2::SockAddr::from(SocketAddr::new(ip, 0));
    for bytes in [&[][..], &[1], &[0; 7], &[0xFF; 40]] {
        raw.send_to(bytes, &to).unwrap();
    }
    let batch = Batch::datagrams(Path::to(receiver.local_address()), 4, b"good");
    sender.send(&batch).unwrap();
    let datagrams = received(&receiver, 1);
    assert_eq!(datagrams[0].1, b"good");
}

#[test]
fn an_endpoint_serves_natively_as_it_does_by_udp() {
    for ip in addresses() {
        let Some(at_server) = open(ip) else { return };
        let at_client = open(ip).unwrap();
        let ca = smt::pki::EphemeralCa::new().unwrap();
        let address = at_server.local_address();
        let server = smt::server(ca.server(&["server"]).unwrap())
            .bind_over_blocking(Arc::new(at_server))
            .unwrap();
        let client = smt::client(ca.trust().unwrap())
            .server_name("server")
            .connect_over_blocking(Arc::new(at_client), address)
            .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    let request = server.accept_request().unwrap();
                    let body = request.body().clone();
                    request.reply(body).unwrap();
                }
            });
            for length in [0, 1_000, 1_000_000] {
                let body = vec![9; length];
                let reply = client.call(body.clone()).wait().unwrap();
                assert!(reply == body);
            }
        });
    }
}

/// Sends IP packets as they are, headers and all.
struct IpPackets(socket2::Socket);

impl Carrier for IpPackets {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let to = SocketAddr::new(batch.path.remote.ip(), 0);
        let sent = self.0.send_to(batch.bytes, &to.into());
        sent.map_err(|error| SendError::Other { code: error.raw_os_error().unwrap_or(0) })?;
        Ok(())
    }

    fn receive(
        &self,
        _: &mut dyn FnMut(smt_carrier::Arrival<'_>),
        _: Wait,
    ) -> Result<usize, smt_carrier::ReceiveError> {
        Ok(0)
    }

    fn local_address(&self) -> SocketAddr {
        "127.0.0.1:7".parse().unwrap()
    }

    fn capabilities(&self) -> smt_carrier::Capabilities {
        smt_carrier::Capabilities::new(1_500)
    }
}

// SMT [15.2-6]
#[test]
fn packets_that_a_nic_has_cut_from_one_segment_arrive_with_offsets_of_their_own() {
    let Some(receiver) = open("127.0.0.1".parse().unwrap()) else {
        return;
    };
    let raw = socket2::Socket::new(
        socket2::Domain::IPV4,
        socket2::Type::RAW,
        Some(libc::IPPROTO_RAW.into()),
    );
    let config = smt_nic_driver::DriverConfig { protocol: PROTOCOL, ..Default::default() };
    let device = smt_nic::NicConfig {
        smt_protocol: PROTOCOL,
        counts_smt_sequence: true,
        ..Default::default()
    };
    let nic = smt_nic_driver::NicCarrier::new(
        IpPackets(raw.unwrap()),
        "127.0.0.1:7".parse().unwrap(),
        config,
        smt_nic_driver::NicKeys::new(1),
        smt_nic::Nic::new(device, smt_nic::tls::TlsEngine),
    );
    let mut header = [0; 36];
    header[1] = 1;
    header[4] = 0xB0;
    header[32..].copy_from_slice(&500_u32.to_be_bytes());
    let stream: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
    let batch = Batch {
        layout: smt_carrier::Layout::Segmented { header: &header, payload_max: 1_400 },
        ..Batch::datagrams(Path::to(receiver.local_address()), 1, &stream)
    };
    nic.send(&batch).unwrap();
    for (number, (_, datagram)) in (0..).zip(received(&receiver, 8)) {
        let mut expected = header;
        expected[32..].copy_from_slice(&(500 + 1_400 * number as u32).to_be_bytes());
        let part = stream.chunks(1_400).nth(number).unwrap();
        // A device may write TCP's checksum, which SMT reserves.
        assert_eq!(datagram[..8], expected[..8]);
        assert_eq!(datagram[10..], [&expected[10..], part].concat());
    }
}
