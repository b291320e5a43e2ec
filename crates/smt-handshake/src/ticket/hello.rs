// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two flights of a handshake by ticket, as bytes (SPEC §6.7), and the hashes over them.

use smt_record::{AwsLc, HashProvider, Suite};

use super::codec::{BadLength, Reader, put_long};
use super::schedule::TranscriptHash;

/// The client's flight 1 up to its binder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ClientHello {
    pub(super) suite: u16,
    pub(super) ticket: [u8; 32],
    pub(super) random: [u8; 32],
    /// For the ticket's share, used once.
    pub(super) share: Vec<u8>,
    /// For forward secrecy; empty without.
    pub(super) ephemeral: Vec<u8>,
}

/// All of flight 1.
#[derive(Debug)]
pub(super) struct ClientFlight<'a> {
    pub(super) hello: ClientHello,
    pub(super) hello_bytes: &'a [u8],
    pub(super) binder: &'a [u8],
    pub(super) sealed: &'a [u8],
}

impl ClientHello {
    /// The bytes; `None` if a share is too long.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let mut out = self.suite.to_be_bytes().to_vec();
        out.extend_from_slice(&self.ticket);
        out.extend_from_slice(&self.random);
        put_long(&mut out, &self.share)?;
        put_long(&mut out, &self.ephemeral)?;
        Some(out)
    }
}

impl<'a> ClientFlight<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, BadLength> {
        let mut reader = Reader::new(bytes);
        let hello = ClientHello {
            suite: reader.u16()?,
            ticket: reader.array()?,
            random: reader.array()?,
            share: reader.long()?.to_vec(),
            ephemeral: reader.long()?.to_vec(),
        };
        let hello_len = hello.bytes().ok_or(BadLength)?.len();
        let suite = Suite::from_code(hello.suite).ok_or(BadLength)?;
        let flight = Self {
            hello,
            hello_bytes: &bytes[..hello_len],
            binder: reader.take(suite.hash().output_len())?,
            sealed: reader.long()?,
        };
        reader.end().map(|()| flight)
    }
}

/// The server's flight 2.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ServerFlight {
    Hello(ServerHello),
    /// The server does not take the ticket, and says nothing that is authenticated.
    Refused(Refusal),
}

/// The answer of a server that takes a ticket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ServerHello {
    /// Whether the client's early data is taken.
    pub(super) takes_early: bool,
    pub(super) random: [u8; 32],
    /// For forward secrecy; empty without.
    pub(super) ephemeral: Vec<u8>,
    pub(super) finished: Vec<u8>,
}

/// Why a server does not take a ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refusal {
    /// The server does not have its key: it is over, revoked, or of an earlier run of the server.
    UnknownTicket = 1,
    /// The server wants more than the client gave: forward secrecy, or a certificate.
    TooLittle = 2,
    /// The client's certificate is not trusted.
    Certificate = 3,
}

impl Refusal {
    pub(super) fn bytes(self) -> Vec<u8> {
        vec![self as u8]
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UnknownTicket => {
                "the server does not know the ticket: it is over, revoked, or of an earlier run"
            }
            Self::TooLittle => "the server wants forward secrecy, or a client certificate",
            Self::Certificate => "the server does not trust this client's certificate",
        })
    }
}

impl ServerHello {
    /// The bytes before `finished`; `None` if a share is too long.
    pub(super) fn hello_bytes(&self) -> Option<Vec<u8>> {
        let mut out = vec![if self.takes_early { TAKEN_WITH_EARLY } else { TAKEN }];
        out.extend_from_slice(&self.random);
        put_long(&mut out, &self.ephemeral)?;
        Some(out)
    }
}

impl ServerFlight {
    pub(super) fn parse(bytes: &[u8], suite: Suite) -> Result<Self, BadLength> {
        let mut reader = Reader::new(bytes);
        let refusal = match reader.u8()? {
            taken @ (TAKEN | TAKEN_WITH_EARLY) => {
                let hello = ServerHello {
                    takes_early: taken == TAKEN_WITH_EARLY,
                    random: reader.array()?,
                    ephemeral: reader.long()?.to_vec(),
                    finished: reader.take(suite.hash().output_len())?.to_vec(),
                };
                return reader.end().map(|()| Self::Hello(hello));
            }
            2 => Refusal::TooLittle,
            3 => Refusal::Certificate,
            _ => Refusal::UnknownTicket,
        };
        Ok(Self::Refused(refusal))
    }
}

/// The hash over what the client has sent before its binder.
pub(super) fn hash_of_hello(params: &[u8], hello: &[u8]) -> TranscriptHash {
    AwsLc.sha256(&[PROTOCOL, &length(params), params, hello])
}

/// The hash over both hellos.
pub(super) fn hash_of_hellos(
    client: &TranscriptHash,
    flight: &ClientFlight<'_>,
    server_params: &[u8],
    server_hello: &[u8],
) -> TranscriptHash {
    let sealed = AwsLc.sha256(&[flight.sealed]);
    AwsLc.sha256(&[
        client,
        flight.binder,
        &sealed,
        &length(server_params),
        server_params,
        server_hello,
    ])
}

fn length(params: &[u8]) -> [u8; 4] {
    u32::try_from(params.len()).expect("params are a part of a flight").to_be_bytes()
}

/// No hash of TLS or of registered keys begins so.
const PROTOCOL: &[u8] = b"smt-1 ticket";
const TAKEN: u8 = 0;
const TAKEN_WITH_EARLY: u8 = 4;
