// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stock quinn server that answers requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use kit_process::request::{PIECE_MAX, RequestReader, content};
use kit_process::tls;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId,
};

use crate::files::Files;
use crate::network::Network;
use crate::setting::Setting;
use crate::world::transport;

pub(crate) struct Server {
    endpoint: Endpoint,
    pub(crate) connections: BTreeMap<usize, Served>,
    /// Packets of connections that are over that were taken for lost.
    lost: u64,
}

pub(crate) struct Served {
    pub(crate) connection: Connection,
    requests: BTreeMap<StreamId, RequestReader>,
    answers: BTreeMap<StreamId, (u64, u64)>,
    updates_left: u32,
}

impl Server {
    pub(crate) fn new(files: &Files, setting: &Setting) -> Self {
        let provider = tls::provider(setting.cipher);
        let mut config = tls::server_config(provider, &files.certificate, &files.key).unwrap();
        if setting.is_early {
            config.send_tls13_tickets = 2;
            config.max_early_data_size = u32::MAX;
        }
        let config = QuicServerConfig::try_from(config).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(config));
        config.transport_config(transport(16 << 20));
        let endpoint = Endpoint::new(
            Arc::new(EndpointConfig::default()),
            Some(Arc::new(config)),
            true,
            Some([7; 32]),
        );
        Self { endpoint, connections: BTreeMap::new(), lost: 0 }
    }

    /// Packets that it has taken for lost.
    pub(crate) fn lost(&self) -> u64 {
        let served = self.connections.values();
        let lost = served.map(|of| of.connection.stats().path.lost_packets);
        self.lost + lost.sum::<u64>()
    }

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        network: &mut Network,
        bytes: &[u8],
        updates: u32,
    ) {
        let mut response = Vec::new();
        let from = network.client();
        let bytes = BytesMut::from(bytes);
        match self.endpoint.handle(now, from, None, None, bytes, &mut response) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut response, None);
                let Ok((handle, connection)) = accepted else {
                    return;
                };
                let served = Served {
                    connection,
                    requests: BTreeMap::new(),
                    answers: BTreeMap::new(),
                    updates_left: updates,
                };
                self.connections.insert(handle.0, served);
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(served) = self.connections.get_mut(&handle.0) {
                    served.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                network.send(now, false, &response[..transmit.size]);
            }
            None => {}
        }
    }

    pub(crate) fn turn(&mut self, now: Instant, network: &mut Network) {
        let mut buffer = Vec::new();
        for (handle, served) in &mut self.connections {
            served.connection.handle_timeout(now);
            while let Some(event) = served.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(ConnectionHandle(*handle), event) {
                    served.connection.handle_event(event);
                }
            }
            served.answer();
            buffer.clear();
            while let Some(transmit) = served.connection.poll_transmit(now, 10, &mut buffer) {
                let stride = transmit.segment_size.unwrap_or(transmit.size);
                for packet in buffer[..transmit.size].chunks(stride) {
                    network.send(now, false, packet);
                }
                buffer.clear();
            }
        }
        self.connections.retain(|_, served| {
            let is_over = served.connection.is_drained();
            if is_over {
                self.lost += served.connection.stats().path.lost_packets;
            }
            !is_over
        });
    }
}

impl Served {
    fn answer(&mut self) {
        while let Some(event) = self.connection.poll() {
            if let Event::Stream(StreamEvent::Opened { dir }) = event {
                let stream = self.connection.streams().accept(dir).unwrap();
                self.requests.insert(stream, RequestReader::default());
            }
        }
        let connection = &mut self.connection;
        let answers = &mut self.answers;
        self.requests.retain(|stream, reader| {
            let mut receiving = connection.recv_stream(*stream);
            let Ok(mut chunks) = receiving.read(true) else {
                return true;
            };
            let is_open = loop {
                match chunks.next(PIECE_MAX) {
                    Ok(Some(chunk)) => reader.take(&chunk.bytes),
                    Ok(None) => {
                        let request = reader.finish().expect("a request");
                        answers.insert(*stream, (0, request.download));
                        break false;
                    }
                    Err(_) => break true,
                }
            };
            let _ = chunks.finalize();
            is_open
        });
        for (stream, (written, all)) in &mut self.answers {
            let mut sending = connection.send_stream(*stream);
            while *written < *all {
                match sending.write(content(*written, *all)) {
                    Ok(length) => *written += length as u64,
                    Err(_) => break,
                }
            }
            if *written == *all {
                let _ = sending.finish();
            }
            if self.updates_left > 0 && *written > *all / 2 {
                connection.force_key_update();
                self.updates_left -= 1;
            }
        }
    }
}
