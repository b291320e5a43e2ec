// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn-proto and the device, turned together: datagrams and times in, datagrams out.
//!
//! 1. [`Driver::connect`] begins a connection; its handshake is quinn's alone.
//! 2. [`Driver::receive`] takes a datagram: the device first, then quinn, with a mark where the
//!    engine has opened it.
//! 3. [`Driver::poll_transmit`] has quinn build datagrams, and the engine seal them.
//! 4. Between them the device keeps its table in step with the connections' keys and ids.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use kit_process::{Doing, Failure};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, Transmit, TransportConfig,
};
use smt_nic::quic;

use crate::built;
use crate::device::{Device, DeviceConfig, ID_LENGTH, OffloadCounts};
use crate::issued_ids::IssuedIds;
use crate::link::Link;
use crate::session::LinkedClientConfig;

/// The settings of a driver.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The device.
    pub device: DeviceConfig,
    /// Connection ids are replaced after so long.
    pub id_lifetime: Option<Duration>,
}

/// The endpoint, its connections and the device.
pub struct Driver {
    endpoint: Endpoint,
    device: Device,
    issued: IssuedIds,
    connections: BTreeMap<usize, Driven>,
}

/// A connection: quinn's half, and its link to the device.
struct Driven {
    quinn: Connection,
    link: Arc<Link>,
}

impl Driver {
    /// A driver without connections.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new(config: DriverConfig) -> Result<Self, Failure> {
        let issued = IssuedIds::default();
        let (generators, lifetime) = (issued.clone(), config.id_lifetime);
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(move || Box::new(generators.generator(ID_LENGTH, lifetime)));
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(endpoint), None, true, None),
            device: Device::new(config.device)?,
            issued,
            connections: BTreeMap::new(),
        })
    }

    /// Begins a connection. The cipher suites of `tls` are captured ones
    /// ([`crate::capture::capturing`]).
    ///
    /// # Errors
    /// quinn's.
    pub fn connect(
        &mut self,
        now: Instant,
        tls: &Arc<QuicClientConfig>,
        transport: &Arc<TransportConfig>,
        (server, name): (SocketAddr, &str),
    ) -> Result<ConnectionHandle, Failure> {
        let links = self.device.links().clone();
        let key = links.next_key();
        let library = Arc::clone(tls);
        let mut config =
            ClientConfig::new(Arc::new(LinkedClientConfig { library, links: links.clone() }));
        config.transport_config(Arc::clone(transport));
        let connected = self.endpoint.connect(now, config, server, name);
        let (handle, quinn) = connected.doing("connecting")?;
        let link = links.find(key);
        let link = link.ok_or_else(|| Failure::new("the system gives no randomness"))?;
        self.connections.insert(handle.0, Driven { quinn, link });
        self.note_ids(handle);
        Ok(handle)
    }

    /// quinn's connection, until it is over.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle.0).map(|of| &mut of.quinn)
    }

    /// Takes a datagram.
    pub fn receive(
        &mut self,
        now: Instant,
        (from, ecn): (SocketAddr, Option<EcnCodepoint>),
        datagram: &[u8],
    ) {
        let mut bytes = BytesMut::from(datagram);
        self.device.receive(&mut bytes);
        let mut response = Vec::new();
        let event = self.endpoint.handle(now, from, None, ecn, bytes, &mut response);
        // A client has no answer to strangers' datagrams, and accepts no connection.
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event {
            if let Some(of) = self.connections.get_mut(&handle.0) {
                of.quinn.handle_event(event);
            }
            self.turn(handle);
        }
    }

    /// When a connection's timer ends.
    pub fn timeout(&mut self) -> Option<Instant> {
        let timers = self.connections.values_mut().filter_map(|of| of.quinn.poll_timeout());
        timers.min()
    }

    /// Lets timers end.
    pub fn handle_timeout(&mut self, now: Instant) {
        let handles: Vec<usize> = self.connections.keys().copied().collect();
        for handle in handles {
            if let Some(of) = self.connections.get_mut(&handle) {
                of.quinn.handle_timeout(now);
            }
            self.turn(ConnectionHandle(handle));
        }
    }

    /// Has quinn build the next datagrams of a connection, and seals them. A connection that is
    /// over is forgotten here: its events are polled before.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        (datagrams, buffer): (usize, &mut Vec<u8>),
    ) -> Option<Transmit> {
        loop {
            buffer.clear();
            let of = self.connections.get_mut(&handle.0)?;
            // Its owner has heard of the end by now.
            if of.quinn.is_drained() {
                self.connections.remove(&handle.0);
                self.device.tend();
                return None;
            }
            let transmit = of.quinn.poll_transmit(now, datagrams, buffer);
            // The link is known here.
            let _ = built::take();
            let transmit = transmit?;
            let stride = transmit.segment_size.unwrap_or(transmit.size);
            let bytes = &mut buffer[..transmit.size];
            let unsealed = of.link.take_unsealed();
            let sealed = self.device.seal(&of.link, &unsealed, (bytes, stride));
            // A buffer that cannot be sealed is as good as lost, and more may be behind it.
            if sealed.is_ok() {
                return Some(transmit);
            }
        }
    }

    /// The counts of the device.
    #[must_use]
    pub fn counts(&mut self) -> OffloadCounts {
        self.device.counts()
    }

    /// Connections, and their ids, that the engine has.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        self.device.sizes()
    }

    /// Passes quinn's events on, and brings the table up to date.
    fn turn(&mut self, handle: ConnectionHandle) {
        self.note_ids(handle);
        if let Some(of) = self.connections.get_mut(&handle.0) {
            while let Some(event) = of.quinn.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    of.quinn.handle_event(event);
                }
            }
        }
        self.note_ids(handle);
        self.device.tend();
    }

    fn note_ids(&mut self, handle: ConnectionHandle) {
        let issued = self.issued.take();
        let Some(of) = self.connections.get(&handle.0) else {
            return;
        };
        for id in issued.iter().filter_map(|id| quic::ConnectionId::new(id)) {
            self.device.add_id(&of.link, id);
        }
    }
}
