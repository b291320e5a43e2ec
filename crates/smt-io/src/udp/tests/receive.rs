// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arrivals, and how a call waits for them.

use super::*;

#[test]
fn nothing_there_is_none() {
    let carrier = UdpCarrier::bind(local_v4()).unwrap();
    let waits = [Duration::ZERO, Duration::from_micros(50), Duration::from_millis(2)];
    for wait in waits.map(Wait::AtMost).into_iter().chain([Wait::Never]) {
        assert_eq!(carrier.receive_into(&mut [0; 64], wait), Ok(None), "{wait:?}");
    }
}

#[test]
fn waiting_is_one_system_call_in_the_steady_state() {
    let (client, server) = connected(local_v4(), &UdpOptions::new());
    let way = Path::to(server.local_address());
    for _ in 0..10 {
        client.send_bytes(&transmit(way, 4), b"ping").unwrap();
        let received = server.receive_into(&mut [0; 64], SOON).unwrap();
        assert_eq!(received.unwrap().length, 4);
    }
    let statistics = server.statistics();
    assert_eq!((statistics.receive_calls, statistics.timeout_changes), (10, 1));
    assert_eq!(server.receive_into(&mut [0; 64], SHORT), Ok(None));
    assert_eq!(server.receive_into(&mut [0; 64], SHORT), Ok(None));
    let statistics = server.statistics();
    assert_eq!((statistics.receive_calls, statistics.timeout_changes), (12, 2));
}

#[test]
fn second_waiting_thread_keeps_its_own_time() {
    let carrier = UdpCarrier::bind(local_v4()).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| carrier.receive_into(&mut [0; 64], SOON).unwrap());
        while carrier.statistics().timeout_changes == 0 {
            std::thread::yield_now();
        }
        // Were it to wait by the socket's limit, this would take ten seconds, or end the first.
        assert_eq!(carrier.receive_into(&mut [0; 64], SHORT), Ok(None));
        assert_eq!(carrier.statistics().timeout_changes, 1);
        let way = Path::to(carrier.local_address());
        carrier.send_bytes(&transmit(way, 4), b"ping").unwrap();
        assert!(first.join().unwrap().is_some());
    });
}

#[test]
fn cut_datagram_is_dropped_and_counted() {
    let (client, server) = connected(local_v4(), &UdpOptions::new());
    let way = Path::to(server.local_address());
    client.send_bytes(&transmit(way, 100), &contents(100)).unwrap();
    client.send_bytes(&transmit(way, 4), b"next").unwrap();
    let mut buffer = [0; 64];
    let received = server.receive_batch(&mut buffer, SOON).unwrap().unwrap();
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
        client.send_bytes(&transmit(way, 1_000), &contents(1_000)).unwrap();
    }
    let mut taken = 0;
    while server.receive_into(&mut [0; 2_000], Wait::Never).unwrap().is_some() {
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
        let hint = Err(ReceiveError::Unreachable { remote: Some(remote) });
        client.send_bytes(&transmit(way, 4), b"ping").unwrap();
        assert_eq!(client.receive_into(&mut buffer, SOON), hint);
        // The second send call comes across the report of the first, and passes it on.
        client.send_bytes(&transmit(way, 4), b"ping").unwrap();
        wait_readable([client.as_fd()], Duration::from_secs(10)).unwrap();
        client.send_bytes(&transmit(way, 4), b"ping").unwrap();
        assert_eq!(client.receive_into(&mut buffer, Wait::Never), hint);
        assert!(client.statistics().unreachable_hints >= 2);

        // A socket is bound there, and all is well.
        let server = UdpCarrier::bind(remote).unwrap();
        while client.receive_into(&mut buffer, Wait::Never) == hint {}
        client.send_bytes(&transmit(way, 4), b"ping").unwrap();
        assert!(server.receive_into(&mut buffer, SOON).unwrap().is_some());
    }
}

/// The network's mark is in the byte that also has the priority.
#[cfg(target_os = "linux")]
#[test]
fn marks_of_congestion_are_told() {
    use smt_carrier::Ecn;
    for address in loopbacks() {
        let (client, server) = connected(address, &UdpOptions::new());
        let is_v4 = address.is_ipv4();
        for (class, ecn) in [(0, Ecn::NotEct), (0xe3, Ecn::Ce), (0x02, Ecn::Ect0)] {
            match is_v4 {
                true => client.socket.set_tos_v4(class).unwrap(),
                false => client.socket.set_tclass_v6(class).unwrap(),
            }
            let way = Path::to(server.local_address());
            client.send_bytes(&transmit(way, 4), b"mark").unwrap();
            let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
            let received = server.receive_into(&mut buffer, SOON).unwrap().unwrap();
            assert_eq!(received.marks.ecn, ecn, "{address} {class}");
        }
    }
}
