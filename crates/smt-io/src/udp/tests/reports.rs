// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every ICMP report that Linux tells a connected socket of, from a network that the test plays
//! itself: that takes a raw socket (`CAP_NET_RAW`). Tests that need no raw socket are in
//! `receive.rs`, `icmp_report.rs` and `errno_class.rs`.

use super::*;

/// Type and code: protocol unreachable, port unreachable, host isolated, parameter problem.
const REPORTS_V4: [(u8, u8); 4] = [(3, 2), (3, 3), (3, 8), (12, 0)];
/// Prohibited by an administrator, port unreachable, source address against policy, route rejected,
/// parameter problem.
const REPORTS_V6: [(u8, u8); 5] = [(1, 1), (1, 4), (1, 5), (1, 6), (4, 0)];

/// A network that reports what it likes about one client's datagrams, and the server they were for.
struct Scene {
    client: UdpCarrier,
    server: UdpCarrier,
    network: Socket,
}

impl Scene {
    /// `None`, with the reason printed, if this process may not play the network.
    fn new(address: SocketAddr) -> Option<Self> {
        let protocol = match address {
            SocketAddr::V4(_) => Protocol::ICMPV4,
            SocketAddr::V6(_) => Protocol::ICMPV6,
        };
        let domain = Domain::for_address(address);
        let network = Socket::new(domain, Type::from(libc::SOCK_RAW), Some(protocol));
        let network =
            network.inspect_err(|error| eprintln!("skipped: no raw socket ({error})")).ok()?;
        let (client, server) = connected(address, &UdpOptions::new());
        Some(Self { client, server, network })
    }

    /// A scene for each report, with its name.
    fn of_each_report() -> impl Iterator<Item = (Self, (u8, u8))> {
        let reports = |address: SocketAddr| match address {
            SocketAddr::V4(_) => REPORTS_V4.to_vec(),
            SocketAddr::V6(_) => REPORTS_V6.to_vec(),
        };
        let each = move |address| reports(address).into_iter().map(move |of| (address, of));
        let each = loopbacks().into_iter().flat_map(each);
        each.map_while(|(address, of)| Some((Self::new(address)?, of)))
    }

    /// A batch of three datagrams at a priority of its own.
    fn batch(&self) -> Transmit {
        let path = Path::to(self.server.local_address());
        Transmit { priority: 5, ..transmit(path, 1_000) }
    }

    /// Has the client's socket hold the report of this type and code.
    fn report(&self, (kind, code): (u8, u8)) {
        let mut packet = vec![kind, code, 0, 0, 0, 0, 0, 0];
        packet.extend(self.head_of_lost_datagram());
        if self.client.local_address().is_ipv4() {
            // The system does this for IPv6 alone.
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let to = SocketAddr::new(self.client.local_address().ip(), 0);
        self.network.send_to(&packet, &SockAddr::from(to)).unwrap();
        let is_there = wait_readable([self.client.as_fd()], Duration::from_secs(10));
        assert!(is_there.unwrap(), "the report {kind}/{code} arrives");
    }

    /// The headers of a datagram from the client to the server, of which no more is quoted.
    fn head_of_lost_datagram(&self) -> Vec<u8> {
        const UDP: u8 = libc::IPPROTO_UDP as u8;
        let (source, target) = (self.client.local_address(), self.server.local_address());
        let mut head = match source {
            SocketAddr::V4(_) => vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, UDP, 0, 0],
            SocketAddr::V6(_) => vec![0x60, 0, 0, 0, 0, 8, UDP, 64],
        };
        for address in [source, target] {
            match address.ip() {
                IpAddr::V4(ip) => head.extend(ip.octets()),
                IpAddr::V6(ip) => head.extend(ip.octets()),
            }
        }
        for half_word in [source.port(), target.port(), 8, 0] {
            head.extend(half_word.to_be_bytes());
        }
        head
    }
}

/// The internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    // A one's complement sum is one modulo 65,535; no such packet is all zeroes.
    !((words.sum::<u64>() % 65_535) as u16)
}

#[test]
fn batch_after_a_report_leaves_whole_and_nothing_is_given_up() {
    for (scene, of) in Scene::of_each_report() {
        let offload = scene.client.has_segmentation_offload();
        let bytes = contents(3_000);
        for length in [3_000, 1_000] {
            scene.report(of);
            let outcome = scene.client.send_bytes(&scene.batch(), &bytes[..length]);
            assert_eq!(outcome, Ok(()), "{of:?}");
            let (datagrams, _) = collect(&scene.server, length);
            assert_datagrams(&datagrams, &bytes[..length], 1_000);
        }
        let statistics = scene.client.statistics();
        assert_eq!(scene.client.has_segmentation_offload(), offload, "{of:?}");
        assert_eq!(statistics.segmentation_refused, 0, "{of:?}");
        assert_eq!(statistics.traffic_class_refused, 0, "{of:?}");
        assert_eq!(statistics.unreachable_hints, 2, "{of:?}");
    }
}

#[test]
fn report_is_told_as_an_unreachable_peer_by_whichever_call_it_came() {
    for (scene, of) in Scene::of_each_report() {
        let hint = Err(ReceiveError::Unreachable { remote: Some(scene.server.local_address()) });
        let receive = || scene.client.receive_into(&mut [0; 64], Wait::Never);
        scene.report(of);
        assert_eq!(receive(), hint, "{of:?}");
        assert_eq!(receive(), Ok(None), "{of:?}");
        scene.report(of);
        let _ = scene.client.send_bytes(&scene.batch(), &contents(3_000));
        assert_eq!(receive(), hint, "{of:?}");
        assert_eq!(receive(), Ok(None), "{of:?}");
    }
}

#[test]
fn datagram_behind_a_report_is_received() {
    for (scene, of) in Scene::of_each_report() {
        let way = Path::to(scene.client.local_address());
        scene.report(of);
        scene.server.send_bytes(&transmit(way, 4), b"pong").unwrap();
        scene.client.receive_into(&mut [0; 64], Wait::Never).unwrap_err();
        let received = scene.client.receive_into(&mut [0; 64], SOON).unwrap();
        assert_eq!(received.unwrap().length, 4, "{of:?}");
    }
}
