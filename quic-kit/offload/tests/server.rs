// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn's server on the engine with stock quinn clients, over UDP sockets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "certificates/mod.rs"]
mod files;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use kit_offload::capture::capturing;
use kit_offload::{Device, DeviceConfig, OffloadCounts, SharedDevice, server};
use kit_process::request::{PIECE_MAX, Request, content, is_content};
use kit_process::{Cipher, SERVER_NAME, tls};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, TransportConfig};
use quinn_proto::RandomConnectionIdGenerator;
use smt_nic::quic::AdmissionPolicy;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::files::Files;

/// A server on the engine, with a stock client.
struct Both {
    device: SharedDevice,
    client: Endpoint,
    server: SocketAddr,
    /// The server's connections, as it accepts them.
    accepted: UnboundedReceiver<Connection>,
    _files: Files,
}

const DEVICE: DeviceConfig =
    DeviceConfig { connections_max: 4, policy: AdmissionPolicy::ALL, is_compared: true };

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

impl Both {
    fn begin(device: DeviceConfig, id_lifetime: Option<Duration>) -> Self {
        let files = Files::make();
        let device = SharedDevice::new(Device::new(device).unwrap());
        let provider = capturing(tls::provider(Cipher::Aes128));
        let mut of_tls = tls::server_config(provider, &files.certificate, &files.key).unwrap();
        of_tls.send_tls13_tickets = 2;
        of_tls.max_early_data_size = u32::MAX;
        let mut ids = EndpointConfig::default();
        ids.cid_generator(move || {
            let mut generator = RandomConnectionIdGenerator::new(kit_offload::device::ID_LENGTH);
            if let Some(lifetime) = id_lifetime {
                generator.set_lifetime(lifetime);
            }
            Box::new(generator)
        });
        let transport = Arc::new(TransportConfig::default());
        let endpoint = server::endpoint(any(), of_tls, transport, ids, &device).unwrap();
        let server = endpoint.local_addr().unwrap();
        let (say, accepted) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let say = say.clone();
                tokio::spawn(async move {
                    let mut connecting = incoming.accept().unwrap();
                    // Before the `ClientHello` is whole the client's limits are unknown.
                    connecting.handshake_data().await.unwrap();
                    let (connection, _) = connecting.into_0rtt().unwrap();
                    let _ = say.send(connection.clone());
                    server::answer_all(&connection).await;
                });
            }
        });
        let provider = tls::provider(Cipher::Aes128);
        let mut of_tls = tls::client_config(provider, &files.authority).unwrap();
        of_tls.enable_early_data = true;
        let of_tls = QuicClientConfig::try_from(of_tls).unwrap();
        let mut client = Endpoint::client(any()).unwrap();
        client.set_default_client_config(ClientConfig::new(Arc::new(of_tls)));
        Self { device, client, server, accepted, _files: files }
    }

    async fn connect(&self) -> Connection {
        let connecting = self.client.connect(self.server, SERVER_NAME).unwrap();
        connecting.await.unwrap()
    }

    /// The counts: nothing was opened otherwise than by the library, nothing left in the clear.
    fn counts(&self) -> OffloadCounts {
        let counts = self.device.counts();
        println!("{counts:?}");
        assert_eq!((counts.different, counts.dropped), (0, 0));
        assert_eq!(counts.compared, counts.opened);
        assert!(counts.opened * 100 >= counts.eligible * 99, "{counts:?}");
        counts
    }
}

/// Sends and receives so many bytes, which must be right.
async fn transfer(connection: &Connection, request: Request) {
    let (mut sending, mut receiving) = connection.open_bi().await.unwrap();
    let upload = async {
        sending.write_all(&request.head()).await.unwrap();
        let mut sent = 0;
        while sent < request.upload {
            let piece = content(sent, request.upload);
            sending.write_all(piece).await.unwrap();
            sent += piece.len() as u64;
        }
        sending.finish().unwrap();
    };
    let download = async {
        let mut received = 0;
        while let Some(chunk) = receiving.read_chunk(PIECE_MAX, true).await.unwrap() {
            assert!(is_content(received, &chunk.bytes), "at {received}");
            received += chunk.bytes.len() as u64;
        }
        assert_eq!(received, request.download);
    };
    tokio::join!(upload, download);
}

/// Megabytes both ways: more than 500 packets for each side to open.
const REQUEST: Request = Request { download: 1_000_000, upload: 1_000_000 };

/// Runs a test to its end. One that hangs has failed.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(HANGS_AFTER, test).await.unwrap();
    });
}

const HANGS_AFTER: Duration = Duration::from_secs(120);

#[test]
fn a_stock_client_is_served_by_the_engine() {
    run(async {
        let both = Both::begin(DEVICE, None);
        transfer(&both.connect().await, REQUEST).await;
        let counts = both.counts();
        assert!(counts.opened > 500 && counts.sealed > 500, "{counts:?}");
        assert_eq!(counts.sealed_in_software, 0);
    });
}

#[test]
fn a_client_that_moves_to_another_address_is_followed() {
    run(async {
        let mut both = Both::begin(DEVICE, None);
        let connection = both.connect().await;
        transfer(&connection, REQUEST).await;
        let before = both.counts();
        let moved = UdpSocket::bind(any()).unwrap();
        let address = moved.local_addr().unwrap();
        both.client.rebind(moved).unwrap();
        transfer(&connection, REQUEST).await;
        let of_server = both.accepted.recv().await.unwrap();
        assert_eq!(of_server.remote_address(), address);
        // It uses another id from there on, by which the connection is known too. quinn opens what
        // came before the engine was told of the id: much of a transfer, where it is told late.
        while both.device.counts().opened <= before.opened + 500 {
            transfer(&connection, REQUEST).await;
        }
        let counts = both.counts();
        assert!(counts.ids > before.ids, "{counts:?}");
        assert_eq!((counts.admitted, counts.sealed_in_software), (1, 0));
    });
}

#[test]
fn key_updates_of_either_side_are_followed() {
    run(async {
        let mut both = Both::begin(DEVICE, None);
        let connection = both.connect().await;
        let of_server = both.accepted.recv().await.unwrap();
        // One that is asked for before the one before it is acknowledged is not made.
        for side in [&connection, &of_server] {
            let before = both.device.counts().updates;
            while both.device.counts().updates < before + 2 {
                side.force_key_update();
                transfer(&connection, REQUEST).await;
            }
        }
        let counts = both.counts();
        assert_eq!((counts.admitted, counts.sealed_in_software), (1, 0));
    });
}

#[test]
fn ids_that_are_replaced_are_learnt() {
    run(async {
        let both = Both::begin(DEVICE, Some(Duration::from_millis(20)));
        let connection = both.connect().await;
        let small = Request { download: 100_000, upload: 100_000 };
        while both.device.counts().ids < 5 {
            transfer(&connection, small).await;
        }
        assert_eq!(both.counts().admitted, 1);
        assert!(both.device.sizes().1 <= 8);
    });
}

#[test]
fn early_packets_of_a_resumed_session_are_quinns_and_the_rest_is_the_engines() {
    run(async {
        let both = Both::begin(DEVICE, None);
        let first = both.connect().await;
        transfer(&first, REQUEST).await;
        first.close(0_u32.into(), b"");
        let connecting = both.client.connect(both.server, SERVER_NAME).unwrap();
        let Ok((second, is_accepted)) = connecting.into_0rtt() else {
            panic!("the server has given a ticket");
        };
        transfer(&second, REQUEST).await;
        assert!(is_accepted.await);
        let counts = both.counts();
        assert_eq!((counts.admitted, counts.sealed_in_software), (2, 0));
        assert!(counts.opened > 1_000, "{counts:?}");
    });
}

#[test]
fn a_full_engine_refuses_a_connection_and_admits_it_later() {
    run(async {
        let config = DeviceConfig { connections_max: 1, ..DEVICE };
        let mut both = Both::begin(config, None);
        let first = both.connect().await;
        transfer(&first, REQUEST).await;
        // quinn keeps a connection, and the engine its entry, while anyone holds it.
        drop(both.accepted.recv().await);
        let second = both.connect().await;
        transfer(&second, REQUEST).await;
        let before = both.counts();
        assert_eq!(before.admitted, 1);
        assert!(before.refused > 5, "{before:?}");
        first.close(0_u32.into(), b"");
        while both.device.counts().admitted < 2 {
            transfer(&second, REQUEST).await;
        }
        transfer(&second, REQUEST).await;
        let counts = both.counts();
        assert!(counts.opened > before.opened + 500, "{counts:?}");
    });
}

#[test]
fn entries_that_two_connections_take_from_each_other_lose_no_byte() {
    run(async {
        let config = DeviceConfig {
            connections_max: 1,
            policy: AdmissionPolicy { bytes_min: 0, evicted_after: Some(0) },
            ..DEVICE
        };
        let both = Both::begin(config, None);
        let (first, second) = (both.connect().await, both.connect().await);
        tokio::join!(transfer(&first, REQUEST), transfer(&second, REQUEST));
        let counts = both.counts();
        assert!(counts.evicted > 5, "{counts:?}");
        assert!(counts.opened > 0 && counts.sealed > 0, "{counts:?}");
    });
}
