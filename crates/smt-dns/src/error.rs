// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a ticket was not found, or not published.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::record::RecordError;
use crate::server::NoServer;

/// A lookup without a ticket. The server is reached by TLS all the same.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The server can have no record.
    #[error(transparent)]
    NoServer(#[from] NoServer),
    /// No resolver is asked about the name: it means the same host everywhere, or none (RFC 6761,
    /// RFC 7686).
    #[error(
        "caller: {0:?} is a special name, about which no resolver is asked; call the server by a name that is in DNS"
    )]
    SpecialName(String),
    /// No answer came in time.
    #[error("environment: no resolver has answered within {0:?}")]
    NoAnswer(Duration),
    /// There is no record, or its aliases lead to none.
    #[error("peer: DNS has no ticket of the server")]
    Absent,
    /// DNSSEC says that the answer is forged, or was not able to tell.
    #[error("peer: the answer is not signed as its zone has to be (DNSSEC)")]
    NotSigned,
    /// The record is malformed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record has no chain, and none is kept.
    #[error(
        "peer: the record has no certificate chain, and the one that it names is not known yet"
    )]
    NoChain,
    /// The ticket was refused, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The resolver failed.
    #[error("environment: the resolver failed: {0}")]
    Resolver(String),
    /// Trust anchors that are no DNSKEY records.
    #[error("caller: the trust anchors are no DNSKEY records: {0}")]
    Anchors(String),
}

/// A ticket that was not published. The server is reached by TLS all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// No ticket could be made: the plan is wrong, or the system has no random bytes.
    #[error("{0}")]
    Issue(String),
    /// No record can hold the ticket.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The name of a server or zone is none.
    #[error("caller: {0}")]
    Name(String),
    /// The file could not be replaced.
    #[error("environment: {} could not be replaced: {error}", path.display())]
    ZoneFile {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The name server was not reached, or did not answer.
    #[error("environment: the name server {server} gave no answer to the update: {error}")]
    NoAnswer {
        /// The name server.
        server: std::net::SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// The name server did not take the update.
    #[error("peer: the name server {server} refused the update: {reason}")]
    Refused {
        /// The name server.
        server: std::net::SocketAddr,
        /// The server's code, or what is wrong with its answer.
        reason: String,
    },
    /// The file with the TSIG key has none.
    #[error("caller: {} has no key for updates: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason in words.
        why: String,
    },
}
