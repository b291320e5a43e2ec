// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transfers from a stock server to a client on the engine, and what both have counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kit_offload::capture::capturing;
use kit_offload::client::Progress;
use kit_offload::{DeviceConfig, Driver, DriverConfig, OffloadCounts};
use kit_process::{SERVER_NAME, tls};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ConnectionHandle, TransportConfig, VarInt};

use crate::files::Files;
use crate::network::Network;
use crate::server::Server;
use crate::setting::Setting;

/// Both sides and the network.
pub(crate) struct World {
    setting: Setting,
    driver: Driver,
    server: Server,
    network: Network,
    tls: Arc<QuicClientConfig>,
    begin: Instant,
    now: Instant,
    /// All connections that were ever begun.
    handles: Vec<ConnectionHandle>,
    /// Packets that the client has taken for lost.
    lost_by_client: u64,
    /// Connections whose 0-RTT packets the server has taken.
    pub(crate) early: u64,
    entries: (usize, usize),
    _files: Files,
}

/// The findings of one run.
pub(crate) struct Outcome {
    pub(crate) counts: OffloadCounts,
    pub(crate) entries: (usize, usize),
    pub(crate) packets: u64,
    pub(crate) short_of_client: u64,
    /// Packets that either side has taken for lost.
    pub(crate) lost: u64,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let seed = std::env::var("SMT_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(20_261_126);
        println!("SMT_SEED={seed}");
        let files = Files::make();
        let provider = capturing(tls::provider(setting.cipher));
        let mut of_tls = tls::client_config(provider, &files.authority).unwrap();
        of_tls.enable_early_data = setting.is_early;
        let driver = Driver::new(DriverConfig {
            device: DeviceConfig {
                connections_max: setting.connections_max,
                policy: setting.policy,
                is_compared: true,
            },
            id_lifetime: setting.id_lifetime,
        });
        let begin = Instant::now();
        Self {
            setting,
            driver: driver.unwrap(),
            server: Server::new(&files, &setting),
            network: Network::new(seed, setting),
            tls: Arc::new(QuicClientConfig::try_from(of_tls).unwrap()),
            begin,
            now: begin,
            handles: Vec::new(),
            lost_by_client: 0,
            early: 0,
            entries: (0, 0),
            _files: files,
        }
    }

    /// A transfer on each of new connections, to their ends.
    pub(crate) fn transfer(&mut self) {
        let mut transfers: Vec<(ConnectionHandle, Progress)> = Vec::new();
        for _ in 0..self.setting.connections {
            let transport = transport(self.setting.window);
            let peer = (server(), SERVER_NAME);
            let begun = self.driver.connect(self.now, &self.tls, &transport, peer);
            let handle = begun.unwrap();
            self.handles.push(handle);
            transfers.push((handle, Progress::new(self.now, self.setting.request)));
        }
        while !transfers.is_empty() {
            assert!(self.now - self.begin < HANGS_AFTER, "{:?}", self.driver.counts());
            self.take_arrived();
            self.server.turn(self.now, &mut self.network);
            self.driver.handle_timeout(self.now);
            self.entries = self.driver.sizes();
            transfers.retain_mut(|(handle, progress)| !self.advance(*handle, progress));
            self.transmit();
            let next = self.next().unwrap();
            self.now = next.max(self.now + Duration::from_micros(1));
        }
    }

    /// Later transfers have so many bytes.
    pub(crate) fn set_download(&mut self, bytes: u64) {
        self.setting.request.download = bytes;
    }

    fn take_arrived(&mut self) {
        let updates = self.setting.server_updates;
        while let Some(packet) = self.network.arrived(self.now) {
            let network = &mut self.network;
            match packet.is_to_server {
                true => self.server.receive(self.now, network, &packet.bytes, updates),
                false => self.driver.receive(self.now, (server(), None), &packet.bytes),
            }
        }
    }

    /// Returns whether the transfer has ended.
    fn advance(&mut self, handle: ConnectionHandle, progress: &mut Progress) -> bool {
        let counts = self.driver.counts();
        let Some(connection) = self.driver.connection(handle) else {
            return true;
        };
        progress.advance(connection, self.now, self.setting.key_updates);
        if let Some(failure) = progress.failure() {
            panic!("{failure}: {counts:?}");
        }
        let is_half = progress.received() * 2 >= self.setting.request.download;
        if self.setting.is_moving && is_half && !self.network.is_moved {
            self.network.is_moved = true;
            connection.local_address_changed();
        }
        if progress.is_ended() {
            self.lost_by_client += connection.stats().path.lost_packets;
            self.early += u64::from(connection.accepted_0rtt());
        }
        progress.is_ended()
    }

    fn transmit(&mut self) {
        let mut buffer = Vec::new();
        for handle in &self.handles {
            while let Some(transmit) =
                self.driver.poll_transmit(self.now, *handle, (10, &mut buffer))
            {
                let stride = transmit.segment_size.unwrap_or(transmit.size);
                for packet in buffer[..transmit.size].chunks(stride) {
                    self.network.send(self.now, true, packet);
                }
            }
        }
    }

    fn next(&mut self) -> Option<Instant> {
        let servers = self.server.connections.values_mut();
        let timers = servers.filter_map(|served| served.connection.poll_timeout());
        let all = self.network.next().into_iter().chain(timers);
        all.chain(self.driver.timeout()).min()
    }

    /// The findings, the engine's results compared with the library's.
    pub(crate) fn outcome(&mut self) -> Outcome {
        let counts = self.driver.counts();
        let packets = self.network.from_server;
        let lost = self.server.lost() + self.lost_by_client;
        println!("{counts:?}, {packets} packets of the server, {lost} taken for lost");
        assert_eq!(counts.different, 0, "the engine opens as the library does");
        assert_eq!(counts.compared, counts.opened);
        assert_eq!(counts.dropped, 0, "no packet would have left in the clear");
        Outcome {
            counts,
            entries: self.entries,
            packets,
            short_of_client: self.network.short_of_client,
            lost,
        }
    }
}

/// One transfer on each connection.
pub(crate) fn run(setting: Setting) -> Outcome {
    let mut world = World::new(setting);
    world.transfer();
    world.outcome()
}

fn server() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 443))
}

pub(crate) fn transport(window: u32) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(window))
        .receive_window(VarInt::from_u32(window))
        .send_window(16 << 20)
        .initial_mtu(1_350)
        .mtu_discovery_config(None);
    Arc::new(transport)
}

/// Virtual time: a million packets with loss take some minutes of it.
const HANGS_AFTER: Duration = Duration::from_secs(3_000);
