// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that leave, and the number of calls that send them.

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
        client.send_bytes(&transmit(way, 1_400), &bytes).unwrap();
        let (datagrams, batches) = collect(&server, bytes.len());
        assert_datagrams(&datagrams, &bytes, 1_400);
        assert_eq!((batches, client.statistics().send_calls), (1, 1));
        assert_eq!(client.statistics().datagrams_sent, 32);
        assert_eq!(server.statistics().datagrams_received, 32);
        assert_eq!(server.statistics().bytes_received, bytes.len() as u64);
    }
}

#[test]
fn the_same_datagrams_arrive_without_offload() {
    let plain = UdpOptions::new().segmentation_offload(false);
    let plain = plain.receive_offload(false);
    for address in loopbacks() {
        let (client, server) = connected(address, &plain);
        assert!(!client.has_segmentation_offload());
        let bytes = contents(5 * 1_400 + 3);
        let way = Path::to(server.local_address());
        client.send_bytes(&transmit(way, 1_400), &bytes).unwrap();
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
            client.send_bytes(&transmit(way, segment_size), &bytes).unwrap();
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
    client.send_bytes(&transmit(way, 1_000), &bytes).unwrap();
    assert_datagrams(&collect(&server, bytes.len()).0, &bytes, 1_000);
    assert!(!client.has_segmentation_offload());
    // The refused call, the same again in case it was a report, and three single ones.
    assert_eq!(client.statistics().send_calls, 5);
    client.send_bytes(&transmit(way, 1_000), &bytes).unwrap();
    assert_datagrams(&collect(&server, bytes.len()).0, &bytes, 1_000);
    assert_eq!(client.statistics().send_calls, 8);
    assert_eq!(client.statistics().segmentation_refused, 1);
}

#[test]
fn a_datagram_past_the_carriers_largest_is_too_large() {
    let server = UdpCarrier::bind(local_v4()).unwrap();
    let remote = server.local_address();
    let client = UdpCarrier::connect(remote).unwrap();
    let largest = client.capabilities().datagram_max;
    let way = Path::to(remote);
    for carrier in [&client, &server] {
        let bytes = contents(largest + 1);
        let outcome = carrier.send_bytes(&transmit(way, bytes.len()), &bytes);
        assert_eq!(outcome, Err(SendError::TooLarge));
    }
    let bytes = contents(largest);
    client.send_bytes(&transmit(way, largest), &bytes).unwrap();
    let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
    let received = server.receive_into(&mut buffer, SOON).unwrap().unwrap();
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
        client.send_bytes(&transmit(Path::to(called), 4), b"ping").unwrap();
        let received = server.receive_into(&mut [0; 64], SOON).unwrap().unwrap();
        assert_eq!(received.path.local, Some(called.ip()));

        // The connected client takes only what comes from the address it called. The first
        // answer, from the address that the routing table picks, must not reach it.
        let elsewhere = Path::between(received.path.remote, Ipv4Addr::LOCALHOST.into());
        server.send_bytes(&transmit(elsewhere, 5), b"wrong").unwrap();
        server.send_bytes(&transmit(received.path, 4), b"pong").unwrap();
        let mut buffer = [0; 64];
        let answer = client.receive_into(&mut buffer, SOON).unwrap().unwrap();
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
    let batch = Transmit { priority: 7, ..transmit(foreign, 1_000) };
    server.send_bytes(&batch, &contents(3_000)).unwrap_err();
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
        for ip in [address.ip(), Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let speaks = match carrier.family {
                Family::Dual => !ip.is_unspecified(),
                Family::V4 => ip.is_ipv4(),
                Family::V6 => ip.is_ipv6(),
            };
            for priority in 0..8 {
                if !speaks {
                    continue;
                }
                let transmit = Transmit { priority, ..transmit(Path::to((ip, port).into()), 4) };
                carrier.send_bytes(&transmit, b"ping").unwrap();
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
    let carrier = UdpOptions::new().plain_priority(5).bind(local_v4()).unwrap();
    assert_eq!(carrier.class_to_attach(5), None);
    assert_eq!(carrier.class_to_attach(0), Some(0));
    assert_eq!(carrier.class_to_attach(7), Some(0xe0));
}

#[test]
fn connected_carrier_talks_to_nobody_else() {
    let (client, _server) = connected(local_v4(), &UdpOptions::new());
    let other = UdpCarrier::bind(local_v4()).unwrap();
    let outcome = client.send_bytes(&transmit(Path::to(other.local_address()), 4), b"ping");
    let code = libc::EISCONN;
    assert_eq!(outcome, Err(SendError::Other { code }));
}

#[test]
fn nothing_is_sent_for_an_empty_batch() {
    let (client, server) = connected(local_v4(), &UdpOptions::new());
    let way = Path::to(server.local_address());
    client.send_bytes(&transmit(way, 4), b"").unwrap();
    assert_eq!(client.statistics().send_calls, 0);
}
