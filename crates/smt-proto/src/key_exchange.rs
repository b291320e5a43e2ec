// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam between the protocol core and the key exchange.
//!
//! The core moves *flights* (SPEC §6.1): it fragments, repeats and reassembles them and never looks inside.
//! A [`KeyExchange`] turns the peer's flights into its own and, in the end, into session secrets.
//! What is not here: TLS, certificates and randomness; they live in `smt-handshake`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use smt_record::{SessionSecrets, Suite};

/// One attempt's key exchange, of either side: flights in, flights out.
pub trait KeyExchange: Send {
    /// Takes one whole flight. `params` are the peer's parameter bytes (flight 1 at the server, flight 2 at
    /// the client), empty in later flights.
    ///
    /// # Errors
    /// The attempt has failed; [`Self::next_flight`] may still hold an alert for the peer.
    fn receive(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure>;

    /// The key exchange bytes of the next flight, if one is to be sent now.
    fn next_flight(&mut self) -> Option<Vec<u8>>;

    /// Takes the parameters that this side sends, byte for byte: they enter the parameter hash (SPEC §6.3).
    fn sent_params(&mut self, params: &[u8]);

    /// The result, once: at the server only after the client's Finished was verified.
    fn finished(&mut self) -> Option<Finished>;
}

/// What a completed key exchange yields.
pub struct Finished {
    /// The secrets of both directions (SPEC §7).
    pub secrets: SessionSecrets,
    /// Who the peer has proved to be.
    pub peer: PeerIdentity,
    /// Name of the key exchange group, for logs.
    pub key_exchange: &'static str,
}

/// Who the peer has proved to be.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PeerIdentity {
    /// Certificates in DER, leaf first; empty if the peer showed none.
    pub certificates: Vec<Vec<u8>>,
    /// Name of the registered key, if that was used.
    pub key_name: Option<Vec<u8>>,
    /// Identity that the registered key gives the peer, if that was used (SPEC §7.2).
    pub key_identity: Option<String>,
}

/// Makes key exchanges; held by an endpoint.
pub trait KeyExchangeProvider: Send + Sync {
    /// Begins an attempt to reach the server of this name.
    ///
    /// # Errors
    /// This endpoint cannot be a client, or the name is none.
    fn client(&self, server_name: &str) -> Result<Box<dyn KeyExchange>, HandshakeFailure>;

    /// Answers an attempt with these client parameters.
    ///
    /// # Errors
    /// This endpoint cannot be a server, or does not know the named key.
    fn server(&self, client_params: &[u8]) -> Result<Box<dyn KeyExchange>, HandshakeFailure>;

    /// The suites that this side accepts, preferred first.
    fn suites(&self) -> Vec<Suite>;

    /// Which key exchange this provider makes.
    fn kind(&self) -> smt_wire::KeyExchange;

    /// Key name and fresh random for the parameters (registered keys only). The server passes the client's.
    fn registered_params(&self, client_params: Option<&[u8]>) -> Option<(Vec<u8>, [u8; 32])>;
}

/// Keyed hashing for what a host says to itself: cookies and reset tokens, and what its tables are hashed with.
pub trait TokenMac: Send + Sync {
    /// MAC over the concatenation of `message`, under a key of its own for each purpose.
    fn mac(&self, purpose: MacPurpose, message: &[&[u8]]) -> [u8; 16];
}

/// What a [`TokenMac`] is for; each purpose has its own key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MacPurpose {
    /// Address validation before the handshake (SPEC §6.4). Each generation has a key of its own.
    Cookie {
        /// Coarse time, so that keys change.
        generation: u64,
    },
    /// Proof that an index is gone (SPEC §12.1).
    Reset,
    /// What tables are hashed with, so that no peer can choose ids that are slow to find. Never sent.
    Tables,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HandshakeFailure {
    /// Who can mend it.
    pub fault: Fault,
    /// What failed.
    pub kind: FailureKind,
    /// What happened and what to do, in one line.
    pub text: String,
}

/// Whose fault an error is.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The calling program.
    Caller,
    /// The network, the host, the operating system.
    Environment,
    /// A limit that was configured or negotiated.
    Limit,
    /// The other side.
    Peer,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Caller => "caller",
            Self::Environment => "environment",
            Self::Limit => "limit",
            Self::Peer => "peer",
        })
    }
}

/// What failed in a handshake.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// The peer refused us with a TLS alert.
    AlertReceived,
    /// We refuse the peer's certificate.
    CertificateRefused,
    /// Bytes that are no flight.
    Malformed,
    /// No version, suite or parameter in common.
    NoCommonParameters,
    /// Anything else.
    Other,
}

impl core::fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

impl core::error::Error for HandshakeFailure {}
