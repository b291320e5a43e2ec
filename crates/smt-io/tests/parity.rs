// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every carrier keeps the contract of [`Carrier`]: the same bodies run on each.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use smt_carrier::limits::DATAGRAM_BYTES_FLOOR;
use smt_carrier::{Arrival, Batch, Carrier, Path, ReceiveError, SendError, Transmit, Wait};
use smt_io::{MemoryCarrier, MemoryOptions, UdpCarrier, UdpOptions};
use std::net::SocketAddr;
use std::time::Duration;

const SOON: Wait = Wait::AtMost(Duration::from_secs(10));

/// A client, a server, and the address by which the client calls the server.
struct Pair {
    name: &'static str,
    client: Box<dyn Carrier>,
    server: Box<dyn Carrier>,
    called: SocketAddr,
}

fn memory(name: &'static str, options: MemoryOptions) -> Pair {
    let (client, server) = MemoryCarrier::pair_with(options);
    let called = server.local_address();
    Pair { name, client: Box::new(client), server: Box::new(server), called }
}

fn udp(name: &'static str, server: &str, called: &str, options: &UdpOptions) -> Pair {
    let server = options.bind(server.parse().unwrap()).unwrap();
    let called = SocketAddr::new(called.parse().unwrap(), server.local_address().port());
    let client = options.connect(called).unwrap();
    Pair { name, client: Box::new(client), server: Box::new(server), called }
}

fn unconnected() -> Pair {
    let [client, server] =
        [(); 2].map(|()| UdpCarrier::bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let called = server.local_address();
    Pair { name: "udp unconnected", client: Box::new(client), server: Box::new(server), called }
}

/// A pair over an IP protocol of SMT's own; `None` where the process may not open raw sockets.
#[cfg(target_os = "linux")]
fn native(name: &'static str, server: &str, called: &str) -> Option<Pair> {
    // A protocol number of these tests' own, so that nothing else of the host sends to it.
    let options = smt_io::NativeOptions::default().protocol(252);
    let open = |address: SocketAddr| match options.bind(address) {
        Ok(carrier) => Some(carrier),
        Err(error @ smt_io::NativeError::NotPermitted { .. }) => {
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    };
    let server = open(server.parse().unwrap())?;
    let called = SocketAddr::new(called.parse().unwrap(), server.local_address().port());
    let any = match called {
        SocketAddr::V4(_) => "127.0.0.1:0",
        SocketAddr::V6(_) => "[::1]:0",
    };
    Some(Pair {
        name,
        client: Box::new(open(any.parse().unwrap())?),
        server: Box::new(server),
        called,
    })
}

fn pairs() -> Vec<Pair> {
    let offload = UdpOptions::new();
    let plain = UdpOptions::new().segmentation_offload(false).receive_offload(false);
    let mut pairs = vec![
        memory("memory", MemoryOptions::new()),
        memory("memory plain", MemoryOptions::new().coalesce(false)),
        unconnected(),
        udp("udp v4", "127.0.0.1:0", "127.0.0.1", &offload),
        udp("udp v4 wildcard", "0.0.0.0:0", "127.0.0.2", &offload),
        udp("udp v4 plain", "127.0.0.1:0", "127.0.0.1", &plain),
    ];
    if smt_io::probe().unwrap().ipv6 {
        pairs.extend([
            udp("udp v6", "[::1]:0", "::1", &offload),
            udp("udp v6 plain", "[::1]:0", "::1", &plain),
            udp("udp dual by v6", "[::]:0", "::1", &offload),
            udp("udp dual by v4", "[::]:0", "127.0.0.2", &offload),
        ]);
        #[cfg(target_os = "linux")]
        pairs.extend(
            [
                native("native v6", "[::1]:0", "::1"),
                native("native dual by v6", "[::]:0", "::1"),
                native("native dual by v4", "[::]:0", "127.0.0.2"),
            ]
            .into_iter()
            .flatten(),
        );
    }
    #[cfg(target_os = "linux")]
    pairs.extend(
        [
            native("native v4", "127.0.0.1:0", "127.0.0.1"),
            native("native v4 wildcard", "0.0.0.0:0", "127.0.0.2"),
        ]
        .into_iter()
        .flatten(),
    );
    pairs
}

fn transmit(path: Path, segment_size: usize, priority: u8) -> Transmit {
    Transmit { priority, ..Transmit::new(path, segment_size) }
}

fn batch<'a>(transmit: &Transmit, bytes: &'a [u8]) -> Batch<'a> {
    Batch::datagrams(transmit.path, transmit.segment_size, bytes).with_priority(transmit.priority)
}

fn contents(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index / 7 % 251) as u8).collect()
}

/// The datagrams of a batch, and their path.
type Taken = (Vec<Vec<u8>>, Path);

/// Takes one batch.
fn take(carrier: &dyn Carrier, wait: Wait) -> Result<Option<Taken>, ReceiveError> {
    let mut taken = None;
    let mut sink = |arrival: Arrival<'_>| {
        let datagrams = arrival.segments().map(<[u8]>::to_vec);
        taken = Some((datagrams.collect(), arrival.path));
    };
    let count = carrier.receive(&mut sink, wait)?;
    Ok(taken.filter(|_| count == 1))
}

/// Receives until `count` datagrams are there; gives them, and the path of the last.
fn collect(carrier: &dyn Carrier, count: usize) -> Taken {
    let mut datagrams = Vec::new();
    loop {
        let (taken, path) = take(carrier, SOON).unwrap().expect("everything sent arrives");
        datagrams.extend(taken);
        if datagrams.len() >= count {
            return (datagrams, path);
        }
    }
}

#[test]
fn burst_arrives_as_it_was_cut_and_the_answer_finds_its_way_back() {
    for Pair { name, client, server, called } in pairs() {
        for priority in [0, 7] {
            for (count, segment_size) in [(1, 1), (1, DATAGRAM_BYTES_FLOOR), (100, 1_200)] {
                let bytes = contents(count * segment_size - segment_size / 2);
                let way = transmit(Path::to(called), segment_size, priority);
                client.send(&batch(&way, &bytes)).unwrap();
                let (datagrams, back) = collect(&*server, count);
                assert_eq!(datagrams, way.segments(&bytes).collect::<Vec<_>>(), "{name}");
                assert_eq!(back.local, Some(called.ip()), "{name}");

                let answer = transmit(back, segment_size, priority);
                server.send(&batch(&answer, &bytes)).unwrap();
                let (datagrams, from) = collect(&*client, count);
                assert_eq!(datagrams, way.segments(&bytes).collect::<Vec<_>>(), "{name}");
                assert_eq!(from.remote, called, "{name}");
            }
        }
    }
}

#[test]
fn nothing_there_is_none_at_once_or_after_the_wait() {
    for Pair { name, server, .. } in pairs() {
        for wait in [Wait::Never, Wait::AtMost(Duration::from_millis(2))] {
            assert_eq!(take(&*server, wait), Ok(None), "{name}");
        }
    }
}

#[test]
fn threads_send_and_receive_at_once() {
    for Pair { name, client, server, called } in pairs() {
        let rounds = 200;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let (datagrams, back) = collect(&*server, 1);
                    let bytes = datagrams.concat();
                    server.send(&batch(&transmit(back, bytes.len(), 0), &bytes)).unwrap();
                }
            });
            for round in 0..rounds {
                let bytes = contents(round + 1);
                let way = transmit(Path::to(called), bytes.len(), 0);
                client.send(&batch(&way, &bytes)).unwrap();
                assert_eq!(collect(&*client, 1).0, [bytes], "{name}");
            }
        });
    }
}

#[test]
fn a_datagram_past_the_carriers_largest_is_too_large() {
    for Pair { name, client, called, .. } in pairs() {
        let largest = client.capabilities().datagram_max;
        assert!(largest >= DATAGRAM_BYTES_FLOOR, "{name}");
        if called.is_ipv6() {
            // It stays 8 bytes under what IPv6 itself would carry.
            continue;
        }
        let bytes = contents(largest + 1);
        let way = transmit(Path::to(called), largest + 1, 0);
        let outcome = client.send(&batch(&way, &bytes));
        assert_eq!(outcome, Err(SendError::TooLarge), "{name}");
    }
}

#[test]
fn departed_peer_is_a_hint() {
    for Pair { name, client, server, called } in pairs() {
        if name == "udp unconnected" {
            // Only a connected socket is told.
            continue;
        }
        if name.starts_with("native") {
            // No host says of a protocol that nobody listens at a port.
            continue;
        }
        drop(server);
        let way = transmit(Path::to(called), 4, 0);
        client.send(&batch(&way, b"ping")).unwrap();
        let hint = ReceiveError::Unreachable { remote: Some(called) };
        assert_eq!(take(&*client, SOON), Err(hint), "{name}");
        assert_eq!(take(&*client, Wait::Never), Ok(None), "{name}");
    }
}
