// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real sockets on loopback; ports are the system's choice.

use super::*;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Far above what loopback takes on a busy host.
const SOON: Wait = Wait::AtMost(Duration::from_secs(10));
/// Long enough that one wait of the socket's own kind is made, short enough to sit out.
const SHORT: Wait = Wait::AtMost(Duration::from_millis(4));

fn local_v4() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// The loopback addresses of the IP versions that this host speaks.
fn loopbacks() -> Vec<SocketAddr> {
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let mut addresses = vec![local_v4()];
    addresses.extend(UdpCarrier::bind(v6).is_ok().then_some(v6));
    addresses
}

fn transmit(path: Path, segment_size: usize) -> Transmit {
    Transmit {
        path,
        segment_size,
        priority: 0,
    }
}

/// `length` bytes of which no two segments are alike.
fn contents(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index / 7 % 251) as u8).collect()
}

/// Receives until `length` bytes are there; gives the datagrams and the number of batches.
fn collect(carrier: &UdpCarrier, length: usize) -> (Vec<Vec<u8>>, usize) {
    let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
    let (mut datagrams, mut batches, mut total) = (Vec::new(), 0, 0);
    while total < length {
        let received = carrier.receive(&mut buffer, SOON).unwrap();
        let received = received.expect("everything sent on loopback arrives");
        total += received.length;
        batches += 1;
        datagrams.extend(received.segments(&mut buffer).map(|bytes| bytes.to_vec()));
    }
    (datagrams, batches)
}

fn assert_datagrams(datagrams: &[Vec<u8>], bytes: &[u8], segment_size: usize) {
    let expected: Vec<&[u8]> = bytes.chunks(segment_size).collect();
    assert_eq!(datagrams, expected);
}

/// A client that is connected to a server's address, and the server.
fn connected(address: SocketAddr, options: &UdpOptions) -> (UdpCarrier, UdpCarrier) {
    let server = options.bind(address).unwrap();
    let client = options.connect(server.local_address()).unwrap();
    (client, server)
}

mod bind {
    use super::*;

    #[test]
    fn port_zero_becomes_a_real_one() {
        for address in loopbacks() {
            let carrier = UdpCarrier::bind(address).unwrap();
            assert_eq!(carrier.local_address().ip(), address.ip());
            assert_ne!(carrier.local_address().port(), 0);
        }
    }

    #[test]
    fn taken_address_is_named_in_the_error() {
        let address = UdpCarrier::bind(local_v4()).unwrap();
        let error = UdpCarrier::bind(address.local_address()).unwrap_err();
        let address = address.local_address();
        let expected =
            format!("environment: cannot bind a UDP socket to {address}: Address already");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }

    #[test]
    fn wildcard_of_ipv6_takes_ipv4_and_shows_it_as_such() {
        let [_, _v6] = loopbacks()[..] else { return };
        let server = UdpCarrier::bind((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = server.local_address().port();
        let client = UdpCarrier::connect((Ipv4Addr::LOCALHOST, port).into()).unwrap();
        let way = Path::to((Ipv4Addr::LOCALHOST, port).into());
        client.send(&transmit(way, 4), b"ping").unwrap();
        let received = server.receive(&mut [0; 64], SOON).unwrap().unwrap();
        assert_eq!(received.path.remote, client.local_address());
        assert_eq!(received.path.local, Some(Ipv4Addr::LOCALHOST.into()));
        server.send(&transmit(received.path, 4), b"pong").unwrap();
        assert!(client.receive(&mut [0; 64], SOON).unwrap().is_some());
    }

    #[test]
    fn mapped_address_opens_an_ipv4_socket() {
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        let carrier = UdpCarrier::bind((mapped, 0).into()).unwrap();
        assert!(carrier.local_address().is_ipv4());
    }

    #[test]
    fn buffers_are_what_was_asked_for_or_the_hosts_limit() {
        let modest = UdpOptions::new()
            .receive_buffer_bytes(65_536)
            .send_buffer_bytes(32_768)
            .bind(local_v4())
            .unwrap();
        assert_eq!(modest.receive_buffer_bytes(), 65_536);
        assert_eq!(modest.send_buffer_bytes(), 32_768);
        let limit = crate::probe().unwrap().receive_buffer_bytes_max;
        let greedy = UdpOptions::new().receive_buffer_bytes(64 << 20);
        let greedy = greedy.bind(local_v4()).unwrap();
        assert_eq!(greedy.receive_buffer_bytes(), limit);
    }
}

mod send {
    use super::*;

    #[test]
    fn burst_leaves_by_one_call_and_arrives_whole() {
        for address in loopbacks() {
            let (client, server) = connected(address, &UdpOptions::new());
            if !client.has_segmentation_offload() || !server.has_receive_offload() {
                return;
            }
            let bytes = contents(32 * 1_400 - 9);
            let way = Path::to(server.local_address());
            client.send(&transmit(way, 1_400), &bytes).unwrap();
            let (datagrams, batches) = collect(&server, bytes.len());
            assert_datagrams(&datagrams, &bytes, 1_400);
            assert_eq!((batches, client.statistics().send_calls), (1, 1));
            assert_eq!(client.statistics().datagrams_sent, 32);
            assert_eq!(server.statistics().datagrams_received, 32);
            assert_eq!(server.statistics().bytes_received, bytes.len() as u64);
        }
    }

    #[test]
    fn without_offload_the_same_datagrams_arrive() {
        let plain = UdpOptions::new().segmentation_offload(false);
        let plain = plain.receive_offload(false);
        for address in loopbacks() {
            let (client, server) = connected(address, &plain);
            assert_eq!(client.segments_max(), 1);
            let bytes = contents(5 * 1_400 + 3);
            let way = Path::to(server.local_address());
            client.send(&transmit(way, 1_400), &bytes).unwrap();
            let (datagrams, batches) = collect(&server, bytes.len());
            assert_datagrams(&datagrams, &bytes, 1_400);
            assert_eq!((batches, client.statistics().send_calls), (6, 6));
        }
    }

    #[test]
    fn more_than_one_call_takes_is_cut() {
        for address in loopbacks() {
            // By the count of segments, and by bytes: 45 segments of 1,452 fit 64 KiB.
            for (count, segment_size) in [(130, 100), (91, 1_452)] {
                let (client, server) = connected(address, &UdpOptions::new());
                let bytes = contents(count * segment_size);
                let way = Path::to(server.local_address());
                client.send(&transmit(way, segment_size), &bytes).unwrap();
                let (datagrams, _) = collect(&server, bytes.len());
                assert_datagrams(&datagrams, &bytes, segment_size);
                assert_eq!(client.statistics().segmentation_refused, 0);
                if client.has_segmentation_offload() {
                    assert_eq!(client.statistics().send_calls, 3);
                }
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn refused_segmentation_resends_singly_and_is_not_tried_again() {
        use super::super::socket_option::SocketOption;
        let (client, server) = connected(local_v4(), &UdpOptions::new());
        // A socket that sends no checksums is one that Linux refuses to segment for, with `EINVAL`.
        let no_checksum = SocketOption::new(libc::SOL_SOCKET, libc::SO_NO_CHECK);
        no_checksum.set(client.as_fd(), 1).unwrap();
        let (bytes, way) = (contents(3_000), Path::to(server.local_address()));
        client.send(&transmit(way, 1_000), &bytes).unwrap();
        assert_datagrams(&collect(&server, bytes.len()).0, &bytes, 1_000);
        assert!(!client.has_segmentation_offload());
        assert_eq!(client.segments_max(), 1);
        // The refused call, and three single ones.
        assert_eq!(client.statistics().send_calls, 4);
        client.send(&transmit(way, 1_000), &bytes).unwrap();
        assert_datagrams(&collect(&server, bytes.len()).0, &bytes, 1_000);
        assert_eq!(client.statistics().send_calls, 7);
        assert_eq!(client.statistics().segmentation_refused, 1);
    }

    #[test]
    fn datagram_past_the_hint_is_too_large() {
        let server = UdpCarrier::bind(local_v4()).unwrap();
        let remote = server.local_address();
        let client = UdpCarrier::connect(remote).unwrap();
        let largest = client.datagram_size_max(remote);
        let way = Path::to(remote);
        for carrier in [&client, &server] {
            let bytes = contents(largest + 1);
            let outcome = carrier.send(&transmit(way, bytes.len()), &bytes);
            assert_eq!(outcome, Err(SendError::TooLarge));
        }
        let bytes = contents(largest);
        client.send(&transmit(way, largest), &bytes).unwrap();
        let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
        let received = server.receive(&mut buffer, SOON).unwrap().unwrap();
        assert_eq!(received.length, largest);
        assert_eq!(client.statistics().unreachable_hints, 0);
    }

    #[test]
    fn wildcard_server_answers_from_the_address_it_was_called_on() {
        let mut wildcards = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))];
        if loopbacks().len() > 1 {
            wildcards.push((Ipv6Addr::UNSPECIFIED, 0).into());
        }
        for wildcard in wildcards {
            let server = UdpCarrier::bind(wildcard).unwrap();
            let called = SocketAddr::from(([127, 0, 0, 2], server.local_address().port()));
            let client = UdpCarrier::connect(called).unwrap();
            client
                .send(&transmit(Path::to(called), 4), b"ping")
                .unwrap();
            let received = server.receive(&mut [0; 64], SOON).unwrap().unwrap();
            assert_eq!(received.path.local, Some(called.ip()));

            // The connected client takes only what comes from the address it called. The first
            // answer, from the address that the routing table picks, must not reach it.
            let elsewhere = Path::between(received.path.remote, Ipv4Addr::LOCALHOST.into());
            server.send(&transmit(elsewhere, 5), b"wrong").unwrap();
            server.send(&transmit(received.path, 4), b"pong").unwrap();
            let mut buffer = [0; 64];
            let answer = client.receive(&mut buffer, SOON).unwrap().unwrap();
            assert_eq!(&buffer[..answer.length], b"pong");
            assert_eq!(answer.path.remote, called);
        }
    }

    #[test]
    fn foreign_source_address_is_refused_and_teaches_nothing() {
        let server = UdpCarrier::bind((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, server.local_address().port()));
        // An address for documentation (RFC 5737): no host's.
        let foreign = Path::between(remote, Ipv4Addr::new(203, 0, 113, 7).into());
        let batch = Transmit {
            priority: 7,
            ..transmit(foreign, 1_000)
        };
        server.send(&batch, &contents(3_000)).unwrap_err();
        let statistics = server.statistics();
        assert_eq!(statistics.segmentation_refused, 0);
        assert_eq!(statistics.traffic_class_refused, 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn priority_arrives_in_the_top_bits_of_the_traffic_class() {
        let mut wildcards = loopbacks();
        if wildcards.len() > 1 {
            wildcards.push((Ipv6Addr::UNSPECIFIED, 0).into());
        }
        for address in wildcards {
            let options = UdpOptions::new().plain_priority(5);
            let carrier = options.bind(address).unwrap();
            report_traffic_class(&carrier.socket, carrier.family).unwrap();
            let port = carrier.local_address().port();
            // The dual socket speaks to itself by both IP versions.
            for ip in [
                address.ip(),
                Ipv4Addr::LOCALHOST.into(),
                Ipv6Addr::LOCALHOST.into(),
            ] {
                let speaks = match carrier.family {
                    Family::Dual => !ip.is_unspecified(),
                    Family::V4 => ip.is_ipv4(),
                    Family::V6 => ip.is_ipv6(),
                };
                for priority in 0..8 {
                    if !speaks {
                        continue;
                    }
                    let transmit = Transmit {
                        priority,
                        ..transmit(Path::to((ip, port).into()), 4)
                    };
                    carrier.send(&transmit, b"ping").unwrap();
                    wait_readable([carrier.as_fd()], Duration::from_secs(10)).unwrap();
                    let arrival = receive(&carrier.socket, &mut [0; 64], Blocking::No).unwrap();
                    assert_eq!(arrival.traffic_class, Some(priority << 5), "{ip} {address}");
                }
            }
            assert_eq!(carrier.statistics().traffic_class_refused, 0);
        }
    }

    #[test]
    fn plain_priority_attaches_nothing() {
        let carrier = UdpOptions::new()
            .plain_priority(5)
            .bind(local_v4())
            .unwrap();
        assert_eq!(carrier.class_to_attach(5), None);
        assert_eq!(carrier.class_to_attach(0), Some(0));
        assert_eq!(carrier.class_to_attach(7), Some(0xe0));
    }

    #[test]
    fn connected_carrier_talks_to_nobody_else() {
        let (client, _server) = connected(local_v4(), &UdpOptions::new());
        let other = UdpCarrier::bind(local_v4()).unwrap();
        let outcome = client.send(&transmit(Path::to(other.local_address()), 4), b"ping");
        let code = libc::EISCONN;
        assert_eq!(outcome, Err(SendError::Other { code }));
    }

    #[test]
    fn nothing_is_sent_for_an_empty_batch() {
        let (client, server) = connected(local_v4(), &UdpOptions::new());
        let way = Path::to(server.local_address());
        client.send(&transmit(way, 4), b"").unwrap();
        assert_eq!(client.statistics().send_calls, 0);
    }
}

mod receive {
    use super::*;

    #[test]
    fn nothing_there_is_none() {
        let carrier = UdpCarrier::bind(local_v4()).unwrap();
        let waits = [
            Duration::ZERO,
            Duration::from_micros(50),
            Duration::from_millis(2),
        ];
        for wait in waits.map(Wait::AtMost).into_iter().chain([Wait::Never]) {
            assert_eq!(carrier.receive(&mut [0; 64], wait), Ok(None), "{wait:?}");
        }
    }

    #[test]
    fn waiting_is_one_system_call_in_the_steady_state() {
        let (client, server) = connected(local_v4(), &UdpOptions::new());
        let way = Path::to(server.local_address());
        for _ in 0..10 {
            client.send(&transmit(way, 4), b"ping").unwrap();
            let received = server.receive(&mut [0; 64], SOON).unwrap();
            assert_eq!(received.unwrap().length, 4);
        }
        let statistics = server.statistics();
        assert_eq!(
            (statistics.receive_calls, statistics.timeout_changes),
            (10, 1)
        );
        assert_eq!(server.receive(&mut [0; 64], SHORT), Ok(None));
        assert_eq!(server.receive(&mut [0; 64], SHORT), Ok(None));
        let statistics = server.statistics();
        assert_eq!(
            (statistics.receive_calls, statistics.timeout_changes),
            (12, 2)
        );
    }

    #[test]
    fn second_waiting_thread_keeps_its_own_time() {
        let carrier = UdpCarrier::bind(local_v4()).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| carrier.receive(&mut [0; 64], SOON).unwrap());
            while carrier.statistics().timeout_changes == 0 {
                std::thread::yield_now();
            }
            // Were it to wait by the socket's limit, this would take ten seconds, or end the first.
            assert_eq!(carrier.receive(&mut [0; 64], SHORT), Ok(None));
            assert_eq!(carrier.statistics().timeout_changes, 1);
            let way = Path::to(carrier.local_address());
            carrier.send(&transmit(way, 4), b"ping").unwrap();
            assert!(first.join().unwrap().is_some());
        });
    }

    #[test]
    fn cut_datagram_is_dropped_and_counted() {
        let (client, server) = connected(local_v4(), &UdpOptions::new());
        let way = Path::to(server.local_address());
        client.send(&transmit(way, 100), &contents(100)).unwrap();
        client.send(&transmit(way, 4), b"next").unwrap();
        let mut buffer = [0; 64];
        let received = server.receive(&mut buffer, SOON).unwrap().unwrap();
        assert_eq!(&buffer[..received.length], b"next");
        assert_eq!(server.statistics().datagrams_truncated, 1);
        assert_eq!(server.statistics().datagrams_received, 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn full_buffer_drops_and_counts() {
        let small = UdpOptions::new().receive_buffer_bytes(8_192);
        let server = small.bind(local_v4()).unwrap();
        let client = UdpCarrier::connect(server.local_address()).unwrap();
        let way = Path::to(server.local_address());
        for _ in 0..100 {
            client
                .send(&transmit(way, 1_000), &contents(1_000))
                .unwrap();
        }
        let mut taken = 0;
        while server
            .receive(&mut [0; 2_000], Wait::Never)
            .unwrap()
            .is_some()
        {
            taken += 1;
        }
        assert!(taken > 0, "the buffer holds some");
        assert_eq!(server.statistics().datagrams_dropped, 100 - taken);
    }

    #[test]
    fn closed_port_is_a_hint_and_nothing_more() {
        for address in loopbacks() {
            let remote = UdpCarrier::bind(address).unwrap().local_address();
            let client = UdpCarrier::connect(remote).unwrap();
            let (mut buffer, way) = ([0; 64], Path::to(remote));
            let hint = Err(ReceiveError::Unreachable {
                remote: Some(remote),
            });
            client.send(&transmit(way, 4), b"ping").unwrap();
            assert_eq!(client.receive(&mut buffer, SOON), hint);
            // The second send call comes across the report of the first, and passes it on.
            client.send(&transmit(way, 4), b"ping").unwrap();
            wait_readable([client.as_fd()], Duration::from_secs(10)).unwrap();
            client.send(&transmit(way, 4), b"ping").unwrap();
            assert_eq!(client.receive(&mut buffer, Wait::Never), hint);
            assert!(client.statistics().unreachable_hints >= 2);

            // Somebody moves in there, and all is well.
            let server = UdpCarrier::bind(remote).unwrap();
            while client.receive(&mut buffer, Wait::Never) == hint {}
            client.send(&transmit(way, 4), b"ping").unwrap();
            assert!(server.receive(&mut buffer, SOON).unwrap().is_some());
        }
    }
}

mod datagram_size_max {
    use super::*;

    #[test]
    fn connected_and_unconnected_agree() {
        for address in loopbacks() {
            let (client, server) = connected(address, &UdpOptions::new());
            let remote = server.local_address();
            let size = client.datagram_size_max(remote);
            assert_eq!(server.datagram_size_max(remote), size);
            assert!(size >= DATAGRAM_BYTES_FLOOR);
        }
    }

    #[test]
    fn no_way_to_the_peer_is_the_floor() {
        let carrier = UdpCarrier::bind(local_v4()).unwrap();
        // The broadcast address: a socket that has not asked for it may not connect there.
        let nowhere = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
        assert_eq!(carrier.datagram_size_max(nowhere), DATAGRAM_BYTES_FLOOR);
    }
}

/// The code for other systems, on this one.
#[cfg(target_os = "linux")]
mod portable_imp {
    use super::super::portable;
    use super::*;

    fn sockets() -> (Socket, Socket) {
        let preparation = Preparation {
            family: Family::V4,
            report_local: true,
            segmentation_offload: true,
            receive_offload: true,
        };
        let [source, target] = [(); 2].map(|()| {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
            let offloads = portable::prepare(&socket, preparation).unwrap();
            assert!(!offloads.segmentation && !offloads.receive);
            socket.bind(&SockAddr::from(local_v4())).unwrap();
            socket
        });
        (source, target)
    }

    fn outgoing(to: Option<SocketAddr>, bytes: &[u8]) -> Outgoing<'_> {
        Outgoing {
            to,
            ipv4: true,
            source: None,
            traffic_class: None,
            segment_size: None,
            bytes,
        }
    }

    #[test]
    fn datagram_arrives_connected_or_not() {
        let (source, target) = sockets();
        let name = target.local_addr().unwrap();
        let to = name.as_socket();
        portable::send(&source, &outgoing(to, b"ping")).unwrap();
        source.connect(&name).unwrap();
        portable::send(&source, &outgoing(None, b"pong")).unwrap();
        for expected in [b"ping", b"pong"] {
            let mut buffer = [0; 64];
            portable::wait_readable([target.as_fd()], Duration::from_secs(10)).unwrap();
            let arrival = portable::receive(&target, &mut buffer, Blocking::No).unwrap();
            assert_eq!(&buffer[..arrival.length], expected);
            assert_eq!(Some(arrival.from), source.local_addr().unwrap().as_socket());
            assert!(!arrival.truncated);
        }
        let error = portable::receive(&target, &mut [0; 64], Blocking::No).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn datagram_that_fills_the_buffer_counts_as_cut() {
        let (source, target) = sockets();
        let to = target.local_addr().unwrap().as_socket();
        portable::send(&source, &outgoing(to, &contents(64))).unwrap();
        portable::wait_readable([target.as_fd()], Duration::from_secs(10)).unwrap();
        let arrival = portable::receive(&target, &mut [0; 64], Blocking::No).unwrap();
        assert!(arrival.truncated);
    }

    #[test]
    fn wait_ends_after_its_time() {
        let (_source, target) = sockets();
        portable::wait_readable([target.as_fd()], Duration::from_micros(10)).unwrap();
    }

    #[test]
    fn buffers_are_resized() {
        let (source, _target) = sockets();
        let before = source.recv_buffer_size().unwrap();
        let wanted = BufferBytes {
            receive: 16_384,
            send: 16_384,
        };
        let granted = portable::size_buffers(&source, wanted).unwrap();
        assert!(granted.receive >= 16_384 && granted.receive != before);
        assert!(granted.send >= 16_384);
    }

    #[test]
    fn what_the_system_lacks_is_said() {
        let (source, _target) = sockets();
        assert!(portable::report_traffic_class(&source, Family::V4).is_err());
        assert!(portable::path_mtu(&source, true).is_err());
        assert!(portable::attach_selector(&source, 2).is_err());
        assert!(!portable::may_force_buffers(&source));
        assert_eq!(portable::dropped(&source), 0);
    }
}
