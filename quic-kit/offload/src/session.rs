// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn's TLS session with its 1-RTT keys linked to a device.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

use crate::capture::{header_key_of, phase_key_of};
use crate::keys::{LinkedHeaderKey, LinkedPacketKey};
use crate::link::{Link, Links};
use crate::notes::{HeaderPair, Phase};

/// The configuration of a client whose connections are linked to a device.
pub struct LinkedClientConfig {
    /// Its cipher suites are those of [`crate::capture::capturing`].
    pub library: Arc<dyn ClientConfig>,
    /// The device's links.
    pub links: Links,
}

impl ClientConfig for LinkedClientConfig {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let library = Arc::clone(&self.library);
        let session = library.start_session(version, server_name, params)?;
        Ok(linked(session, &self.links))
    }
}

/// The configuration of a server whose connections are linked to a device.
pub struct LinkedServerConfig {
    /// Its cipher suites are those of [`crate::capture::capturing`].
    pub library: Arc<dyn ServerConfig>,
    /// The device's links.
    pub links: Links,
}

impl ServerConfig for LinkedServerConfig {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        self.library.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.library.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        let session = Arc::clone(&self.library).start_session(version, params);
        linked(session, &self.links)
    }
}

/// A session with a link of its own. Without randomness for its marks it stays quinn's alone.
fn linked(library: Box<dyn Session>, links: &Links) -> Box<dyn Session> {
    match links.make() {
        Ok(link) => Box::new(LinkedSession { library, link, keys: 0, generations: 0 }),
        Err(_) => library,
    }
}

struct LinkedSession {
    library: Box<dyn Session>,
    link: Arc<Link>,
    /// Sets of keys that the handshake has made: the second are those of 1-RTT packets.
    keys: u32,
    /// Key phases whose keys quinn has.
    generations: u64,
}

impl LinkedSession {
    /// The pair of a phase, linked. One that was not captured is quinn's alone.
    fn linked(&mut self, pair: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let generation = self.generations;
        self.generations += 1;
        let captured = phase_key_of(&*pair.local).zip(phase_key_of(&*pair.remote));
        let Some((local, remote)) = captured else {
            return pair;
        };
        let local_of_library: Arc<dyn PacketKey> = Arc::from(pair.local);
        let remote_of_library: Arc<dyn PacketKey> = Arc::from(pair.remote);
        self.link.notes().phases.push_back(Phase {
            generation,
            local,
            remote,
            local_of_library: Arc::clone(&local_of_library),
            remote_of_library: Arc::clone(&remote_of_library),
        });
        let linked = |library| {
            let link = Arc::clone(&self.link);
            Box::new(LinkedPacketKey { link, generation, library })
        };
        KeyPair { local: linked(local_of_library), remote: linked(remote_of_library) }
    }

    fn linked_header(&self, pair: KeyPair<Box<dyn HeaderKey>>) -> KeyPair<Box<dyn HeaderKey>> {
        let captured = header_key_of(&*pair.local).zip(header_key_of(&*pair.remote));
        let Some((local, remote)) = captured else {
            return pair;
        };
        let local_of_library: Arc<dyn HeaderKey> = Arc::from(pair.local);
        let remote_of_library: Arc<dyn HeaderKey> = Arc::from(pair.remote);
        self.link.notes().header = Some(HeaderPair {
            local,
            remote,
            local_of_library: Arc::clone(&local_of_library),
            remote_of_library: Arc::clone(&remote_of_library),
        });
        let linked = |library| {
            let link = Arc::clone(&self.link);
            Box::new(LinkedHeaderKey { link, library })
        };
        KeyPair { local: linked(local_of_library), remote: linked(remote_of_library) }
    }
}

impl Session for LinkedSession {
    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.library.write_handshake(buf)?;
        self.keys += 1;
        if self.keys != OF_1_RTT {
            return Some(keys);
        }
        Some(Keys { header: self.linked_header(keys.header), packet: self.linked(keys.packet) })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let pair = self.library.next_1rtt_keys()?;
        let linked = self.linked(pair);
        self.link.call();
        Some(linked)
    }

    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.library.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.library.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.library.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.library.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.library.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.library.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.library.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.library.transport_parameters()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.library.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.library.export_keying_material(output, label, context)
    }
}

/// The handshake's keys come first.
const OF_1_RTT: u32 = 2;
