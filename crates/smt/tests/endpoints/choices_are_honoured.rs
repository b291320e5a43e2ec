// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choices of a builder work: suites, groups, padding, geometry, stripes.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use smt::{
    Builder, Group, KeyLog, KeyLogEntry, Padding, Suite, TlsClient, TlsServer, TransportConfig,
    blocking,
};

use crate::support::forwarder::{Forwarder, Way};
use crate::support::payload::payload;
use crate::support::{Credentials, assert_echo, echo, serve};

/// Keeps the lines of a key log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl KeyLog for Lines {
    fn log(&self, entry: &KeyLogEntry<'_>) {
        self.0.lock().unwrap().push(entry.to_string());
    }
}

fn pair(
    server: Builder<TlsServer>,
    client: Builder<TlsClient>,
) -> (blocking::Client, blocking::Server) {
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    let client = client.connect_blocking(server.local_address()).unwrap();
    (client, server)
}

#[test]
fn every_suite_works() {
    let credentials = Credentials::new();
    for suite in Suite::ALL {
        let lines = Lines::default();
        let client = credentials.client().suites([suite]).key_log(Arc::new(lines.clone()));
        let (client, _server) = pair(credentials.server(), client);
        for size in [0, 1_142, 60_001, 1_000_000] {
            assert_echo(&client, payload(1, size));
        }
        let lines = lines.take();
        assert_eq!(lines.len(), 4);
        let code = format!(" {:04x} ", suite.code());
        assert!(lines.iter().all(|line| line.contains(&code)), "{code}");
    }
}

#[test]
fn the_servers_suites_decide_what_a_willing_client_uses() {
    let credentials = Credentials::new();
    let lines = Lines::default();
    let (client, _server) = pair(
        credentials.server().suites([Suite::ChaCha20Poly1305]),
        credentials.client().key_log(Arc::new(lines.clone())),
    );
    assert_echo(&client, "hello");
    assert!(lines.take()[0].contains(" 1303 "));
}

#[test]
fn no_suite_in_common_is_explained() {
    let credentials = Credentials::new();
    let server =
        credentials.server().suites([Suite::Aes256Gcm]).bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let client = credentials.client().suites([Suite::ChaCha20Poly1305]);
    let error = client.connect_blocking(server.local_address()).unwrap_err();
    println!("{error}");
    assert!(error.to_string().contains("suite"), "{error}");
}

#[test]
fn every_group_works() {
    let credentials = Credentials::new();
    for group in [Group::X25519MlKem768, Group::X25519, Group::P256] {
        let (client, _server) = pair(credentials.server(), credentials.client().groups([group]));
        assert_echo(&client, "hello");
    }
}

#[test]
fn a_group_that_only_the_other_prefers_costs_a_flight_more() {
    let credentials = Credentials::new();
    let server = credentials.server().groups([Group::P256]);
    let client = credentials.client().groups([Group::X25519, Group::P256]);
    let (client, _server) = pair(server, client);
    assert_echo(&client, "hello");
}

#[test]
fn every_padding_works() {
    let credentials = Credentials::new();
    let block = |bytes| Padding::Block(NonZeroU32::new(bytes).unwrap());
    let all = [Padding::None, block(1), block(256), block(65_536), block(u32::MAX), Padding::Padme];
    for ours in all {
        for theirs in [Padding::None, ours] {
            let limit = 300_000;
            let (client, _server) = pair(
                credentials.server().padding(theirs).message_limit(limit),
                credentials.client().padding(ours).message_limit(limit),
            );
            for size in [0, 1, 1_102, 1_103, 100_000, limit as usize] {
                assert_echo(&client, payload(1, size));
            }
        }
    }
}

#[test]
fn block_padding_hides_the_length() {
    let credentials = Credentials::new();
    let server = credentials.server().padding(Padding::Block(NonZeroU32::new(4_096).unwrap()));
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lengths);
    let forwarder = Forwarder::new(server.local_address(), move |way, datagram: &[u8]| {
        // SPEC §3.3: the message length of a DATA packet.
        if datagram[1] == 0x01 {
            let length = u32::from_be_bytes(datagram[28..32].try_into().unwrap());
            seen.lock().unwrap().push((way, length));
        }
        vec![(way, datagram.to_vec())]
    });
    let client = credentials
        .client()
        .padding(Padding::Block(NonZeroU32::new(4_096).unwrap()))
        .connect_blocking(forwarder.address())
        .unwrap();
    for size in [0, 1, 100, 4_000] {
        assert_echo(&client, payload(1, size));
    }
    let lengths = lengths.lock().unwrap();
    assert!(lengths.iter().any(|(way, _)| *way == Way::ToClient));
    assert!(lengths.iter().all(|(_, length)| *length == 4_096), "{lengths:?}");
}

#[test]
fn other_geometries_stripes_and_small_windows_work() {
    let credentials = Credentials::new();
    let variants: [(u8, u16, u16, u8, u32); 5] = [
        (8, 16_384, 1_142, 0, 64),
        (17, 64, 64, 0, 4_096),
        (16, 1_000, 500, 3, 64),
        (12, 4_096, 1_142, 8, 64),
        (16, 16_384, 64, 1, 65_536),
    ];
    for (index_bits, record, first, stripes, window) in variants {
        let choose = |config: &mut TransportConfig| {
            config.index_bits = index_bits;
            config.record_size = record;
            config.first_record_size = first;
            config.stripes_log2 = stripes;
            config.window = window;
        };
        let (client, _server) =
            pair(credentials.server().configure(choose), credentials.client().configure(choose));
        let most = client.connect().unwrap().facts().unwrap().message_max as usize;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let client = &client;
                scope.spawn(move || {
                    for round in 0..100 {
                        let size = (round * 997 + thread * 331) % 50_000;
                        assert_echo(client, payload(round as u64, size.min(most)));
                    }
                });
            }
        });
        assert_echo(&client, payload(1, most.min(2_000_000)));
    }
}

#[test]
fn small_datagrams_and_few_unscheduled_bytes_work() {
    let credentials = Credentials::new();
    let choose = |config: &mut TransportConfig| {
        config.datagram_limit = 1_200;
        config.unscheduled = 1_164;
        config.incoming_max = 20_000;
    };
    let (client, _server) =
        pair(credentials.server().configure(choose), credentials.client().configure(choose));
    for size in [0, 1_102, 1_103, 60_000, 3_000_000] {
        assert_echo(&client, payload(1, size));
    }
    assert_eq!(client.connect().unwrap().facts().unwrap().datagram_size, 1_200);
}

#[test]
fn dscp_marks_change_nothing_else() {
    let credentials = Credentials::new();
    let (client, _server) = pair(credentials.server().dscp(true), credentials.client().dscp(true));
    for size in [0, 1_142, 60_001, 1_000_000] {
        assert_echo(&client, payload(1, size));
    }
}
