// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam between the protocol core and the key exchange.
//!
//! The core moves *flights* (SPEC §6.1): it fragments, repeats and reassembles them and never looks
//! inside. A [`KeyExchange`] turns the peer's flights into its own and, in the end, into session
//! secrets. TLS, certificates and randomness are not here; they are in `smt-handshake`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use smt_record::{SessionSecrets, Suite};

use crate::time::WallTime;

/// One attempt's key exchange, of either side: flights in, flights out.
///
/// The core calls [`Self::step`] first with [`Input::Begin`], then once for each whole flight of
/// the peer. After a failure it calls no more.
pub trait KeyExchange: Send {
    /// Takes one input. At the client the step of [`Input::Begin`] yields flight 1; at the server
    /// it yields nothing.
    ///
    /// # Errors
    /// The attempt has failed; [`Failed::alert`] may be owed to the peer.
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed>;

    /// The peer's CONFIRM has opened (SPEC §6.5): it has the secrets, and the session is about to
    /// begin. The core calls this once at most, after the result. It does not for a session that
    /// begins with early data.
    ///
    /// # Errors
    /// No session may begin, such as a second one of a secret that is for one alone (SPEC §7.5).
    /// The attempt has failed, and the peer is not told.
    fn confirmed(&mut self) -> Result<(), HandshakeFailure> {
        Ok(())
    }
}

/// An input of a key exchange.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The attempt begins.
    Begin {
        /// The parameters that this side sends, byte for byte: they enter the parameter hash
        /// (SPEC §6.3).
        own_params: &'a [u8],
        /// Early data of a client (SPEC §6.8), at most [`Attempt::early_max`] bytes; empty if there
        /// is none, and at a server.
        early: &'a [u8],
    },
    /// A whole flight of the peer.
    Flight {
        /// Its number, from 1; the client sends odd ones.
        number: u8,
        /// The peer's parameter bytes in flight 1 (at the server) and flight 2 (at the client);
        /// empty in later flights.
        params: &'a [u8],
        /// The key exchange bytes.
        bytes: &'a [u8],
    },
}

/// The output of one step of a key exchange.
#[derive(Default)]
pub struct Step {
    /// Key exchange bytes of this side's next flight, if one is to be sent now.
    pub send: Option<Vec<u8>>,
    /// The result, which one step of each side yields. At the server that step comes after the
    /// client's Finished was verified.
    pub finished: Option<Finished>,
    /// Early data of the client that the server takes, in the step that yields the result.
    pub early: Option<Vec<u8>>,
    /// At the server, with the result: key exchange bytes for the client that its session does not
    /// need, such as session tickets. They leave once, beside CONFIRM (SPEC §6.10), if they fit in
    /// its datagram.
    pub parting: Option<Vec<u8>>,
}

impl Step {
    /// The outcome of a step: `send` is a flight if the step was `taken`, else an alert.
    ///
    /// # Errors
    /// The step was not taken.
    pub fn of(
        taken: Result<(), HandshakeFailure>,
        send: Option<Vec<u8>>,
        finished: Option<Finished>,
    ) -> Result<Self, Failed> {
        match taken {
            Ok(()) => Ok(Self { send, finished, early: None, parting: None }),
            Err(failure) => Err(Failed { failure, alert: send }),
        }
    }
}

/// A key exchange that has failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failed {
    /// Why.
    pub failure: HandshakeFailure,
    /// Key exchange bytes of a last flight that tells the peer.
    pub alert: Option<Vec<u8>>,
}

impl From<HandshakeFailure> for Failed {
    /// Makes a failure of which the peer is not told.
    fn from(failure: HandshakeFailure) -> Self {
        Self { failure, alert: None }
    }
}

/// The result of a completed key exchange.
pub struct Finished {
    /// The secrets of both directions (SPEC §7).
    pub secrets: SessionSecrets,
    /// The identity that the peer has proved.
    pub peer: PeerIdentity,
    /// Name of the key exchange group, for logs.
    pub key_exchange: &'static str,
    /// At a client: whether the server has taken its early data.
    pub early_taken: bool,
    /// The moment from which this side's own credentials count no more, if the peer may have judged
    /// them by a date. A client begins another session before (SPEC §10).
    pub own_expires: Option<WallTime>,
}

/// The identity that the peer has proved.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PeerIdentity {
    /// The name by which this side has called the peer, a server, and which the peer has proved.
    pub server_name: Option<Box<str>>,
    /// Certificates in DER, leaf first; empty if the peer showed none.
    pub certificates: Vec<Vec<u8>>,
    /// Public key in DER that the peer showed in the place of certificates, if it did (RFC 7250).
    pub public_key: Option<Box<[u8]>>,
    /// Name of the registered key, if that was used.
    pub key_name: Option<Vec<u8>>,
    /// Identity that the registered key gives the peer, if that was used (SPEC §7.2).
    pub key_identity: Option<String>,
    /// The moment from which the peer's credentials count no more, if they were judged by a date:
    /// the second behind the last one of its certificate. The session ends then (SPEC §10).
    pub expires: Option<WallTime>,
    /// Whether the peer has proved it in an earlier session, which this one resumes (SPEC §6.10).
    pub is_resumed: bool,
}

/// Makes key exchanges; held by an endpoint. One provider may offer several kinds of key exchange.
pub trait KeyExchangeProvider: Send + Sync {
    /// Begins an attempt to reach a server.
    ///
    /// # Errors
    /// This endpoint cannot be a client, or the server's name is neither a DNS name nor an IP
    /// address.
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure>;

    /// Answers an attempt with these client parameters, by the kind that they name. `wall` is as in
    /// [`ClientRequest::wall`].
    ///
    /// # Errors
    /// This endpoint cannot be a server, has no key exchange of the kind that the client wants
    /// ([`FailureKind::NoCommonParameters`]), or does not know the named key (the same).
    fn server(
        &self,
        client_params: &[u8],
        wall: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure>;
}

/// The purpose of a client's attempt.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest<'a> {
    /// The server's name: a DNS name, an IP address, or a SPIFFE ID if the provider knows these.
    pub server_name: &'a str,
    /// The wall time, if the endpoint's owner has told it ([`crate::Endpoint::set_wall_time`]).
    pub wall: Option<WallTime>,
    /// Whether an attempt for the same connection came to nothing before.
    pub is_retry: bool,
}

impl<'a> ClientRequest<'a> {
    /// A first attempt to reach the server of this name, at a time that nobody has told.
    #[must_use]
    pub const fn new(server_name: &'a str) -> Self {
        Self { server_name, wall: None, is_retry: false }
    }
}

/// A key exchange that is about to begin, and what this side's parameters say of it (SPEC §6.3).
pub struct Attempt {
    /// Which kind of key exchange.
    pub kind: smt_wire::KeyExchange,
    /// The suites that this side accepts, preferred first; none in the plaintext version (SPEC
    /// §14).
    pub suites: Vec<Suite>,
    /// The external key that the parameters name; only of [`smt_wire::KeyExchange::Registered`].
    pub key: Option<NamedKey>,
    /// Most bytes of early data that a client's exchange carries; 0 if it carries none.
    pub early_max: usize,
    /// The exchange itself.
    pub exchange: Box<dyn KeyExchange>,
}

/// An external key as parameters name it (SPEC §7.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedKey {
    /// The key's name.
    pub name: Vec<u8>,
    /// A fresh random of this side.
    pub random: [u8; 32],
}

/// Keyed hashing for what a host says to itself: cookies, reset tokens and the salt of its hash
/// tables.
pub trait TokenMac: Send + Sync {
    /// MAC over the concatenation of `message`, under a key of its own for each purpose.
    fn mac(&self, purpose: MacPurpose, message: &[&[u8]]) -> [u8; 16];
}

/// The purpose of a MAC of [`TokenMac`]; each purpose has its own key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MacPurpose {
    /// Address validation before the handshake (SPEC §6.4). Each generation has a key of its own.
    Cookie {
        /// Coarse time, so that keys change.
        generation: u64,
    },
    /// Proof that an index is gone (SPEC §12.1).
    Reset,
    /// The salt of hash tables, which keeps peers from choosing ids that are slow to find. It is
    /// never sent.
    Tables,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HandshakeFailure {
    /// The side that can mend it.
    pub fault: Fault,
    /// The part that failed.
    pub kind: FailureKind,
    /// The cause and what to do, in one line.
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

/// The part of a handshake that failed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// The peer refused us with a TLS alert.
    AlertReceived,
    /// We refuse the peer's certificate.
    CertificateRefused,
    /// The peer's bytes are no flight.
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
