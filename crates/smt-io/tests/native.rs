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
    all.into_iter()
        .filter(|ip| std::net::UdpSocket::bind((*ip, 0)).is_ok())
        .collect()
}

/// The datagrams that come until nothing comes for a while, and whence.
fn received(carrier: &NativeCarrier, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut datagrams = Vec::new();
    let wait = Wait::AtMost(Duration::from_secs(5));
    while datagrams.len() < count {
        let mut sink = |arrival: smt_carrier::Arrival<'_>| {
            datagrams.push((arrival.path.remote, arrival.bytes.to_vec()));
        };
        assert!(
            carrier.receive(&mut sink, wait).unwrap() > 0,
            "nothing came"
        );
    }
    datagrams
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
        sender
            .send(&Batch::datagrams(path, longest, &bytes))
            .unwrap();
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
