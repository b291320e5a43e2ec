// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT, a secure message transport for datacenters: encrypted RPCs over UDP.
//!
//! A [`Server`] accepts requests, a [`Client`] makes calls, and an [`Endpoint`] does both, with any
//! number of peers by one socket. Messages are whole, independent and encrypted by TLS 1.3 records
//! numbered per message. The specification, of which items cite sections as SPEC §5.2, is
//! docs/draft-smt-00.md. With tokio:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use smt::pki::EphemeralCa;
//!
//! let authority = EphemeralCa::new()?;
//! let identity = authority.server(&["localhost"])?;
//! let server = smt::server(identity).bind("127.0.0.1:0").await?;
//! let address = server.local_address();
//! tokio::spawn(async move {
//!     while let Some(request) = server.accept_request().await {
//!         let body = request.body().clone();
//!         // A caller that has given up is no reason to stop.
//!         if let Err(error) = request.reply(body) {
//!             eprintln!("{error}");
//!         }
//!     }
//! });
//!
//! let client = smt::client(authority.trust()?)
//!     .server_name("localhost")
//!     .connect(address).await?;
//! let reply = client.call("hello").deadline(Duration::from_secs(1)).await?;
//! assert_eq!(reply, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! The certificates come from `smt::pki`, which the feature `pki` adds: an authority that lives as
//! long as the process. [`blocking`] has the same without a runtime, and [`polled`] is for a
//! foreign event loop. Other runtimes than tokio drive endpoints too ([`runtime`]): the feature
//! `async` alone brings them without it.
//!
//! # Features
//! | feature | by default | it adds |
//! |---|---|---|
//! | `tokio` | yes | tokio as the runtime of tasks; [`AsyncRead`](parts::ByteReader) and `AsyncWrite` of parts; `async` |
//! | `async` | by `tokio` | [`Client`], [`Server`] and [`Endpoint`] for tasks on any [`runtime`]; without it [`blocking`] and [`polled`] are there |
//! | `tower` | no | `tower::Service` for [`Client`]; `async` |
//! | `pki` | no | `smt::pki`: certificates, authorities and revocation lists made and read |
//! | `unstable-plaintext` | no | the measurement version without protection (SPEC §14), with endpoint types of its own |
//!
//! # What happens when
//! | you | here | at the peer |
//! |---|---|---|
//! | drop the future of a call | the call is cancelled | [`Request::cancelled`] is ready; a request that was not delivered yet never is |
//! | let a deadline pass | the call fails, and says whether it may have run | as for a dropped future |
//! | drop a [`Request`] without replying | nothing more | the call fails: "ended without a reply; may have run" |
//! | `reply` | returns when the reply is queued; it is kept and repeated until acknowledged | the call returns |
//! | `send` (one-way) | returns when the peer has accepted the message for delivery | it comes out of `accept` |
//! | drop the last handle: an endpoint, server, client, session, request, or the future of a call | messages that may leave at once leave, a short reply for example; then all sessions and the socket close | replies that have left are there; other calls in progress fail |
//! | do not `accept` | messages wait here, up to [`TransportConfig::memory_max`] | further messages wait there |
//! | end the tokio runtime of an endpoint | as above, although handles live; calls fail, and `accept` ends | the same |
//! | `close` a server or endpoint | new requests are refused, those in progress are finished, then all sessions and the socket close, although handles live: the handles say that the endpoint was shut down | refused calls: "did not run"; a client that connects meanwhile learns why it is not taken, and afterwards that no server is there |
//! | `close` a client | calls in progress end within the limit; then its session closes, although handles live, and further calls fail | [`Request::cancelled`] is ready |
//! | fork the process | the copy sends and receives nothing: its calls fail, and say why; the original goes on | nothing |
//! | lose the peer (no answer for 2 s) | calls fail; the next one connects anew | the same |
//!
//! A request runs at most once. [`Error::execution`] tells "did not run", which is safe to repeat,
//! from "may have run".
//!
//! # On tokio
//! A future that `block_on` polls, which is what `#[tokio::main]` makes of `main`, receives in
//! place: an accept loop or a call there costs no hand-over between threads. Other tasks are served
//! by one task of the runtime. Handlers may reply in the accept loop or in tasks of their own; one
//! that blocks belongs on `spawn_blocking`, as everywhere on tokio, or the endpoint on an I/O
//! thread ([`Builder::io_thread`]). Else a handler that blocks for 2 s can end the sessions of all
//! peers, who hear nothing meanwhile, although other workers have nothing to do. While calls follow
//! each other closely an endpoint spins for them, for a bounded time ([`Builder::spin`]).
//!
//! # Several cores
//! An endpoint has one lock: its threads take turns. Where one core is not enough,
//! [`Builder::bind_shards_blocking`] and [`Builder::connect_shards_blocking`] (and their
//! counterparts for tokio and [`polled`]) open several endpoints at once that share nothing but an
//! address and credentials: see [`Shards`].
//!
//! # Several servers
//! [`Endpoint::pool`] is a client of several servers that serve alike: it calls those that are up,
//! and tries the others again beside the calls.
//!
//! # Identity of peers
//! [`Peer::certificate`] has the names and the key that a peer has proved, and
//! [`Builder::authorize`] decides by them which clients a server serves, and
//! [`Builder::authorize_messages`] which of their messages. [`Peer::data`] keeps what the
//! application knows of a peer as long as the session lives.
//!
//! # Logs
//! Endpoints log by `tracing`. At level info, with the target `smt`, they tell each session's begin
//! and end, with the peer's address, its name and why the session ended, and each client that is
//! refused, once and with the reason; of many refusals in a second they tell some and count the
//! others. The name is that of the registered key's identity, or of the certificate. Owners of
//! [`polled`] endpoints have events of all that, and log themselves.
//!
//! # Renewed certificates
//! [`Server::set_identity`] and [`Server::set_client_auth`], which endpoints of all kinds have,
//! replace what a server shows to its clients and asks of them while it runs: clients that connect
//! from then on meet it, and sessions go on. [`Client::set_trust`] and
//! [`Client::set_client_identity`] do the same at the other side. Revocation lists
//! ([`RevocationLists`]) go with the trust, and are replaced with it. Live sessions of peers that
//! the new trust does not accept end at once, or as [`Builder::distrusted`] says: a key that was
//! stolen is of no use from then on. Owners of [`polled`] endpoints judge and end them themselves.
//!
//! A session ends when a certificate of its handshake does, unless that is pinned. The client
//! begins no calls in it from five minutes before, or a tenth of what was left, and connects anew
//! by itself: calls in progress end in the old session, which closes then. A peer whose certificate
//! has expired is served no more.
//!
//! # Secrets of a session
//! [`Session::export`] gives both ends of a session equal secrets for uses of their own: to bind a
//! token or an attestation to the session, or to let other processes go on. A live session itself
//! does not move to another process, since its keys must not exist twice. Both ends export a secret
//! of 32 bytes instead and give it away; the processes that get it make a [`RegisteredKey`] of it
//! and connect by that, without certificates. Each session so made has fresh randoms of both ends:
//! a secret that is used twice never gives the same keys.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "async"),
    allow(dead_code, reason = "some of what threads and tasks share is for tasks alone")
)]

mod accept_queue;
mod acceptors;
mod answer_queue;
#[cfg(feature = "async")]
mod asynchronous;
mod authorization;
pub mod blocking;
mod builder;
mod client_choice;
mod client_credentials;
mod clock;
mod completion;
mod cork;
mod credentials;
mod distrust;
mod driver;
mod driver_signal;
mod early_call;
mod endpoint_state;
mod error;
#[cfg(all(feature = "async", target_os = "linux"))]
mod io_thread;
mod key_log;
mod message;
#[cfg(test)]
#[cfg(all(smt_model, feature = "async", feature = "unstable-plaintext"))]
mod model;
mod operation;
mod operation_options;
pub mod parts;
mod peer;
mod peer_log;
#[cfg(feature = "unstable-plaintext")]
pub mod plaintext;
#[cfg(target_os = "linux")]
pub mod polled;
pub mod pump;
mod reply;
mod resolver;
mod retry;
#[cfg(feature = "async")]
pub mod runtime;
mod server_credentials;
mod server_handle;
mod servers;
mod session;
mod session_data;
mod shards;
mod spin;
mod state_file;
mod state_lock;
mod statistics;
mod sync;
mod turn;

#[cfg(feature = "async")]
pub use asynchronous::{
    CallBuilder, CallFuture, Client, Endpoint, ReplyFuture, SendBuilder, SendFuture, Server,
};
pub use authorization::MessageHead;
pub use builder::{
    Address, Both, Builder, ClientRole, DEFAULT_PORT, HandoverClient, HandoverServer, KeyClient,
    KeyServer, Role, ServerRole, TlsClient, TlsRole, TlsServer, client, client_by_handover,
    client_by_key, server, server_by_handover, server_by_keys,
};
pub use distrust::Distrusted;
pub use error::{Error, ErrorKind, OpenError, Phase};
pub use key_log::KeyLogFile;
pub use message::{Incoming, Message, Request};
pub use parts::{PartSender, ReplyParts, RequestParts};
pub use peer::Peer;
pub use reply::Reply;
pub use retry::Retry;
pub use session::Session;
pub use session_data::SessionData;
pub use shards::Shards;
pub use statistics::Statistics;

pub use bytes::Bytes;
pub use smt_carrier::Carrier;
pub use smt_handshake::{
    Adopter, AdopterId, Algorithms, ClientAuth, CredentialError, Group, Handover, HandoverError,
    HandoverTerms, Identity, IssuedTicket, KEY_PAIRS_MAX, KeyEncryption, KeyEnds, KeyPairPool,
    PeerCertificate, Pem, RegisteredKey, RegisteredKeyError, RevocationLists, SpiffeId,
    SpiffeIdError, Ticket, TicketError, TicketIssuer, TicketKey, TicketKeys, TicketPlan,
    TicketStore, TicketVerifier, TlsTrafficKey, Trust, VerifiedTicket,
};
#[cfg(target_os = "linux")]
pub use smt_io::{NativeOptions, XdpOptions};
pub use smt_io::{Statistics as SocketStatistics, UdpOptions};
#[cfg(feature = "pki")]
#[doc(inline)]
pub use smt_pki as pki;
pub use smt_proto::key_exchange::{FailureKind, Fault};
pub use smt_proto::{
    Body, CallError, CallFailure, CloseCode, ConnectError, Execution, Failure, IntoMessage,
    Metadata, MetadataError, OneWayOutcome, OutgoingMessage, Refused, SessionEnd, SessionFacts,
    Statistics as ProtocolStatistics, TransportConfig, Unavailability, WallTime,
};
pub use smt_record::{ExportError, KeyLimits, KeyLog, KeyLogEntry, Padding, Side, Suite};
