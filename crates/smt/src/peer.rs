// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The peer of a session: its address, its identity, and what the application keeps of it.

use std::net::SocketAddr;
use std::sync::OnceLock;

use smt_handshake::PeerCertificate;
use smt_proto::key_exchange::PeerIdentity;
use smt_proto::{Failure, WallTime};

use crate::session_data::SessionData;

/// The sender of a message: its address, and how it has proved its identity.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Address and port.
    pub address: SocketAddr,
    /// Certificates in DER, leaf first; empty if the peer showed none.
    pub certificates: Vec<Vec<u8>>,
    /// Public key in DER that the peer showed in the place of certificates, if it did (RFC 7250).
    pub public_key: Option<Box<[u8]>>,
    /// Name of the registered key, if the session has one.
    pub key_name: Option<Vec<u8>>,
    /// Identity that the registered key gives the sender, if the session has one.
    pub key_identity: Option<String>,
    /// The moment from which what it has proved its identity by counts no more, if that was judged
    /// by a date. The session ends then (SPEC §10).
    pub expires: Option<WallTime>,
    /// Name by which this side has called the peer, a server, and which the peer has proved.
    pub server_name: Option<Box<str>>,
    /// Whether it has proved its identity in an earlier session, which this one resumes (SPEC
    /// §6.10).
    pub is_resumed: bool,
    /// Application bytes of the largest message that it accepts.
    pub(crate) message_max: u32,
    /// Why its requests are refused, if they are.
    pub(crate) refusal: Option<Box<Failure>>,
    /// The leaf, once somebody has asked.
    certificate: OnceLock<Option<Box<PeerCertificate>>>,
    data: SessionData,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, identity: PeerIdentity, message_max: u32) -> Self {
        let PeerIdentity {
            server_name,
            certificates,
            public_key,
            key_name,
            key_identity,
            expires,
            is_resumed,
        } = identity;
        Self {
            address,
            certificates,
            public_key,
            key_name,
            key_identity,
            expires,
            server_name,
            is_resumed,
            message_max,
            refusal: None,
            certificate: OnceLock::new(),
            data: SessionData::default(),
        }
    }

    /// Returns names and key of the peer's certificate; `None` if it showed none. The certificate
    /// is read once a session, when somebody first asks.
    #[must_use]
    pub fn certificate(&self) -> Option<&PeerCertificate> {
        let read = || {
            let read = PeerCertificate::from_der(self.certificates.first()?);
            // The handshake has read it with success.
            let read = read.inspect_err(|error| tracing::warn!(peer = %self.address, %error));
            read.ok().map(Box::new)
        };
        self.certificate.get_or_init(read).as_deref()
    }

    /// Returns the SPIFFE ID that the peer has proved
    /// ([`PeerCertificate::spiffe_id`]).
    #[must_use]
    pub fn spiffe_id(&self) -> Option<&str> {
        self.certificate()?.spiffe_id()
    }

    /// Returns the application's own values of this session: the user whom the peer stands for, or
    /// a quota. They live as long as the session and its messages do.
    ///
    /// A client may have several sessions
    /// ([`TransportConfig::sessions_of_identity_max`](crate::TransportConfig)). A quota of a
    /// client, and not of each of its sessions, is kept by the client's name in a map of the
    /// application.
    #[must_use]
    pub fn data(&self) -> &SessionData {
        &self.data
    }

    /// Returns the bytes of the largest message that the peer accepts, metadata included.
    #[must_use]
    pub fn message_limit(&self) -> u32 {
        self.message_max
    }

    /// The identity that the peer has proved.
    pub(crate) fn identity(&self) -> PeerIdentity {
        PeerIdentity {
            server_name: self.server_name.clone(),
            certificates: self.certificates.clone(),
            public_key: self.public_key.clone(),
            key_name: self.key_name.clone(),
            key_identity: self.key_identity.clone(),
            expires: self.expires,
            is_resumed: self.is_resumed,
        }
    }

    /// A name of the peer for the fields of log events, which subscribers escape: the identity that
    /// its registered key gives it, or the first of its certificate's names.
    pub(crate) fn name(&self) -> Option<String> {
        let by_key = self.key_identity.clone();
        by_key.or_else(|| self.certificate().and_then(name_of))
    }

    /// The same for texts. Nothing of it reaches a terminal as it is.
    pub(crate) fn shown_name(&self) -> Option<String> {
        self.name().map(|name| name.escape_debug().to_string())
    }

    /// A peer of which nothing is known.
    #[cfg(test)]
    pub(crate) fn unknown() -> Self {
        let address = "127.0.0.1:1".parse().unwrap();
        Self::new(address, PeerIdentity::default(), 1)
    }
}

/// The first of a certificate's names: as of a host, as of a workload, or that of its subject.
fn name_of(certificate: &PeerCertificate) -> Option<String> {
    let hosts = certificate.dns_names.iter().cloned();
    let addresses = certificate.ip_addresses.iter().map(ToString::to_string);
    let others = certificate.uris.iter().chain(&certificate.common_name);
    hosts.chain(addresses).chain(others.cloned()).next()
}
