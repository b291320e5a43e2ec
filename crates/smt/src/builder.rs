// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an endpoint is opened: its role, its credentials, and what else may be chosen.
//!
//! [`client`], [`server`] and their like for registered keys make a [`Builder`]. They demand what
//! the role cannot be without, and the builder of a role has only the options that the role acts
//! on.

pub(crate) mod address;
pub(crate) mod bound_socket;
mod carrier_choice;
pub(crate) mod endpoint_parts;
mod open;
mod ranges;
mod role;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use smt_handshake::{
    Adopter, ClientAuth, Group, Identity, RegisteredKey, SpiffeId, TicketKeys, TicketStore, Trust,
};
use smt_proto::{Failure, TransportConfig};
use smt_record::{KeyLimits, KeyLog, Padding, Suite};

use crate::authorization::{Authorization, MessageAuthorization, MessageHead};
use crate::distrust::Distrusted;
use crate::operation::CallDefaults;
use crate::peer::Peer;
use crate::retry::Retry;
#[cfg(feature = "async")]
use crate::runtime::Runtime;

pub use address::Address;
use carrier_choice::CarrierChoice;
#[cfg(feature = "unstable-plaintext")]
pub(crate) use role::Unprotected;
pub use role::{
    Both, ClientRole, HandoverClient, HandoverServer, KeyClient, KeyServer, Role, ServerRole,
    TlsClient, TlsRole, TlsServer,
};

/// The port that is used if an address names none (SPEC §15.1).
pub const DEFAULT_PORT: u16 = 17_379;

/// Begins a client that accepts the servers that `trust` says.
///
/// ```no_run
/// # async fn client(trust: smt::Trust) -> Result<(), Box<dyn std::error::Error>> {
/// let client = smt::client(trust).connect("db7").await?;
/// let reply = client.call("hello").await?;
/// # Ok(())
/// # }
/// ```
pub fn client(trust: Trust) -> Builder<TlsClient> {
    Builder::of(TlsClient::new(trust))
}

/// Begins a client whose sessions use a key that the application negotiated itself, and not TLS
/// (SPEC §7.2). One key is for one server, or for several that share an identity.
pub fn client_by_key(key: RegisteredKey) -> Builder<KeyClient> {
    Builder::of(KeyClient::new(key))
}

/// Begins a server that shows this identity.
///
/// ```no_run
/// # async fn server(identity: smt::Identity) -> Result<(), Box<dyn std::error::Error>> {
/// let server = smt::server(identity).bind("0.0.0.0").await?;
/// while let Some(request) = server.accept_request().await {
///     let body = request.body().clone();
///     // A caller that has given up is no reason to stop.
///     if let Err(error) = request.reply(body) {
///         eprintln!("{error}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub fn server(identity: Identity) -> Builder<TlsServer> {
    Builder::of(TlsServer::new(identity))
}

/// Begins a server that takes clients with registered keys alone (SPEC §7.2). There is one key for
/// each client identity, told apart by name, and all keys give the server the same own identity.
pub fn server_by_keys(keys: impl IntoIterator<Item = RegisteredKey>) -> Builder<KeyServer> {
    Builder::of(KeyServer::new(keys))
}

/// Begins a client whose sessions another process agrees on and hands over (SPEC §7.5), for the
/// server that has proved `peer_name` to that process. Each session uses up one that the adopter
/// was given; without any, a connect fails at once.
pub fn client_by_handover(
    adopter: Adopter,
    peer_name: impl Into<String>,
) -> Builder<HandoverClient> {
    Builder::of(HandoverClient::new(adopter, peer_name))
}

/// Begins a server whose sessions another process agrees on and hands over (SPEC §7.5). A client
/// gets in by a session that this adopter was given, once.
pub fn server_by_handover(adopter: Adopter) -> Builder<HandoverServer> {
    Builder::of(HandoverServer::new(adopter))
}

/// Opens endpoints of one role. Everything has a default but what the function that makes the
/// builder demands.
#[derive(Clone)]
#[must_use = "a builder opens nothing by itself"]
pub struct Builder<R> {
    role: R,
    config: TransportConfig,
    carrier: CarrierChoice,
    spin: Duration,
    #[cfg(feature = "async")]
    has_io_thread: bool,
    #[cfg(feature = "async")]
    runtime: Option<Arc<dyn Runtime>>,
    connect_deadline: Duration,
    call_defaults: CallDefaults,
    key_log: Option<Arc<dyn KeyLog>>,
    has_dscp: bool,
    state_file: Option<PathBuf>,
    authorization: Option<Authorization>,
    message_authorization: Option<MessageAuthorization>,
    distrusted: Option<Distrusted>,
}

impl<R> Builder<R> {
    pub(crate) fn of(role: R) -> Self {
        Self {
            role,
            config: TransportConfig::default(),
            carrier: CarrierChoice::default(),
            spin: SPIN,
            #[cfg(feature = "async")]
            has_io_thread: false,
            #[cfg(feature = "async")]
            runtime: None,
            connect_deadline: CONNECT_DEADLINE,
            call_defaults: CallDefaults::default(),
            key_log: None,
            has_dscp: false,
            state_file: None,
            authorization: None,
            message_authorization: None,
            distrusted: None,
        }
    }

    /// The same choices in another role.
    fn in_role<S>(self, role: impl FnOnce(R) -> S) -> Builder<S> {
        Builder {
            role: role(self.role),
            config: self.config,
            carrier: self.carrier,
            spin: self.spin,
            #[cfg(feature = "async")]
            has_io_thread: self.has_io_thread,
            #[cfg(feature = "async")]
            runtime: self.runtime,
            connect_deadline: self.connect_deadline,
            call_defaults: self.call_defaults,
            key_log: self.key_log,
            has_dscp: self.has_dscp,
            state_file: self.state_file,
            authorization: self.authorization,
            message_authorization: self.message_authorization,
            distrusted: self.distrusted,
        }
    }

    /// Sets the largest message that is accepted, 1 B to 1 GiB; 64 MiB by default.
    pub fn message_limit(mut self, bytes: u32) -> Self {
        self.config.message_limit = bytes;
        self
    }

    /// Sets how message lengths are hidden; by default they are not.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.config.padding = padding;
        self
    }

    /// Sets when keys are renewed; by default before 2^23 records. Below 1,024 heavy loss can end a
    /// session.
    pub fn key_limits(mut self, limits: KeyLimits) -> Self {
        self.config.key_limits = limits;
        self
    }

    /// Changes anything of the protocol's configuration. Values out of range are refused when the
    /// endpoint is opened. Facts of the run, such as its boot number, are no part of it:
    ///
    /// ```compile_fail,E0609
    /// # fn configured(builder: smt::Builder<smt::TlsServer>) -> smt::Builder<smt::TlsServer> {
    /// builder.configure(|config| config.boot = 7)
    /// # }
    /// ```
    pub fn configure(mut self, change: impl FnOnce(&mut TransportConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Sets for how long an endpoint that waits for messages spins before it sleeps, 100 us by
    /// default; zero never spins. The bound means the same for a thread that waits, a future in
    /// `block_on`, the task that drives and an I/O thread. Polled endpoints do not wait.
    ///
    /// An endpoint spins only while messages mostly come within that time, and yields its core
    /// between looks. Where calls follow each other closely, a spinning endpoint takes up to a
    /// whole core; CPU per call is in docs/PERFORMANCE.md. At most half of a runtime's workers
    /// spin. The only worker of a runtime does not: all tasks run between two looks instead.
    pub fn spin(mut self, bound: Duration) -> Self {
        self.spin = bound;
        self
    }

    /// Drives the endpoint by a thread of its own, and not by the runtime; off by default. This is
    /// for runtimes whose workers are kept busy or blocked by handlers: messages are received,
    /// acknowledged and sent meanwhile. Without it a handler that blocks a worker for
    /// [`TransportConfig::silence_max`] (2 s) can end the sessions of all peers, even while other
    /// workers have nothing to do. On other runtimes it costs a hand-over between threads for
    /// each call. Only endpoints for tasks have it, and only on Linux.
    #[cfg(feature = "async")]
    pub fn io_thread(mut self, on: bool) -> Self {
        self.has_io_thread = on;
        self
    }

    /// Sets the runtime that drives endpoints for tasks. By default it is the tokio runtime in
    /// which the endpoint is opened ([`TokioRuntime`](crate::runtime::TokioRuntime)); without the
    /// feature `tokio` one is to be named. Futures of the endpoint may be polled anywhere.
    #[cfg(feature = "async")]
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Gives the secrets of all sessions to a key log. A reader of the log can read the sessions:
    /// use it for debugging only.
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        self.key_log = Some(log);
        self
    }

    /// Marks datagrams with their priority (DSCP), for networks whose switches act on it. Off by
    /// default.
    pub fn dscp(mut self, on: bool) -> Self {
        self.has_dscp = on;
        self
    }
}

impl<R: ServerRole> Builder<R> {
    /// Keeps a boot number and the reset key in this file. After a restart, clients of the run
    /// before learn at once that their sessions are gone, and not only by silence. Each server
    /// needs a file of its own: the file is locked, by a file beside it that ends in `.lock` and
    /// goes with the server, and a second endpoint with it is not opened. The shards of one server
    /// share the file.
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
    }

    /// Decides which clients are served, by what the handshake has proved of them: `rule` sees each
    /// new client before its first request is delivered. By default all that the credentials let in
    /// are served.
    ///
    /// The requests of a client that is refused do not run: its calls fail with the code and the
    /// text of the [`Failure`] ([`CallFailure::Refused`](crate::CallFailure::Refused)), and its
    /// one-way messages are dropped. Its session is closed after a second
    /// ([`CloseCode::Refused`](crate::CloseCode::Refused)).
    ///
    /// The rule runs with the endpoint's lock held: it must neither block nor use the endpoint. It
    /// may keep what it has found for later requests ([`Peer::data`]). If it panics, the client is
    /// refused. Polled endpoints have no rule: their owners see
    /// [`Event::Accepted`](smt_proto::Event::Accepted).
    ///
    /// ```no_run
    /// # fn server(identity: smt::Identity, trust: smt::Trust) -> Result<(), smt::OpenError> {
    /// let server = smt::server(identity)
    ///     .client_auth(smt::ClientAuth::Required(trust))
    ///     .authorize(|peer| {
    ///         let id = peer.certificate().and_then(|certificate| certificate.spiffe_id());
    ///         match id {
    ///             Some("spiffe://example/billing") => Ok(()),
    ///             _ => Err(smt::Failure::refusal(403, "only billing is served here")),
    ///         }
    ///     })
    ///     .bind_blocking("0.0.0.0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn authorize(
        mut self,
        rule: impl Fn(&Peer) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.authorization = Some(Authorization::new(rule));
        self
    }

    /// Decides which messages are served: `rule` sees each message of a client that is served
    /// ([`Self::authorize`]), with what the handshake has proved of the client and with the
    /// message's metadata, before the application does. By default all are served, and nothing is
    /// spent on it.
    ///
    /// A request that is refused does not run: its call fails with the code, the text and the
    /// metadata of the [`Failure`] ([`CallFailure::Refused`](crate::CallFailure::Refused)). A
    /// one-way message that is refused is dropped, and its sender is not told. The session goes on.
    ///
    /// The rule runs with the endpoint's lock held, once for each message, or again for a request
    /// that had to wait: it must neither block nor use the endpoint. It may keep what it has found
    /// out about a client ([`Peer::data`]). If it panics, the message is refused. Polled endpoints
    /// have no rule: their owners see each message first.
    ///
    /// ```no_run
    /// # fn server(identity: smt::Identity, trust: smt::Trust) -> Result<(), smt::OpenError> {
    /// let server = smt::server(identity)
    ///     .client_auth(smt::ClientAuth::Required(trust))
    ///     .authorize_messages(|peer, head| {
    ///         let is_admin = peer.spiffe_id() == Some("spiffe://example/admin");
    ///         match head.metadata.get("method") {
    ///             Some(b"read") => Ok(()),
    ///             _ if is_admin => Ok(()),
    ///             _ => Err(smt::Failure::refusal(403, "only administrators write")),
    ///         }
    ///     })
    ///     .bind_blocking("0.0.0.0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn authorize_messages(
        mut self,
        rule: impl Fn(&Peer, MessageHead<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.message_authorization = Some(MessageAuthorization::new(rule));
        self
    }

    /// Lets the endpoint call servers too, by the same socket: see [`crate::Endpoint`].
    pub fn with_client<C: ClientRole>(self, client: C) -> Builder<Both<R, C>> {
        self.in_role(|server| Both { server, client })
    }
}

impl<R: ClientRole> Builder<R> {
    /// Sets how long an attempt to reach a server may take, over all addresses of the server
    /// together: 1 ms to an hour, 5 s by default.
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.connect_deadline = deadline;
        self
    }

    /// Sets the deadline of calls and one-way messages that name none; by default they wait until
    /// the session ends.
    pub fn call_deadline(mut self, deadline: Duration) -> Self {
        self.call_defaults.deadline = Some(deadline);
        self
    }

    /// Sets how often calls and one-way messages that say nothing of it are sent again after a
    /// failure; by default they are not. See [`Retry`].
    pub fn retry(mut self, retry: Retry) -> Self {
        self.call_defaults.retry = Some(retry);
        self
    }
}

impl<R: TlsRole> Builder<R> {
    /// Chooses what becomes of live sessions whose peers would not be accepted any more, when the
    /// trust in them is replaced: by default they end at once. Peers with registered keys are not
    /// meant, and owners of polled endpoints judge peers themselves.
    pub fn distrusted(mut self, choice: Distrusted) -> Self {
        self.distrusted = Some(choice);
        self
    }

    /// Sets the cipher suites, preferred first. By default AES-128-GCM, AES-256-GCM,
    /// ChaCha20-Poly1305.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.role.algorithms().suites = suites.into_iter().collect();
        self
    }

    /// Sets the key exchange groups, preferred first. By default the post-quantum hybrid
    /// X25519MLKEM768 first.
    pub fn groups(mut self, groups: impl IntoIterator<Item = Group>) -> Self {
        self.role.algorithms().groups = groups.into_iter().collect();
        self
    }
}

impl Builder<TlsClient> {
    /// Sets the certificate chain and key that this side shows to servers that ask for one.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.role = self.role.identity(identity);
        self
    }

    /// Accepts only servers whose certificate proves this SPIFFE ID, whatever other names it has:
    /// in the place of [`Self::server_name`]. The chain is judged as ever. Tickets are not used
    /// then.
    pub fn server_id(mut self, id: &SpiffeId) -> Self {
        self.role = self.role.server_id(id);
        self
    }

    /// Sets the name that the server's certificate must have, a DNS name or an IP address; by
    /// default the host part of the address. A SPIFFE ID is taken too, as by [`Self::server_id`].
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.role = self.role.server_name(name);
        self
    }

    /// Begins sessions by the tickets of this store, where it has one of the server (SPEC §6.7).
    /// A server without a ticket, or one that does not take its ticket, is reached by TLS.
    pub fn tickets(mut self, store: TicketStore) -> Self {
        self.role = self.role.tickets(store);
        self
    }

    /// Sets whether sessions by ticket have forward secrecy; by default they have. Without it a
    /// session begins with one key agreement less on each side, and all of it can be read by those
    /// who get the ticket's private key, which the server keeps for an hour at most.
    pub fn forward_secrecy(mut self, has_forward_secrecy: bool) -> Self {
        self.role = self.role.forward_secrecy(has_forward_secrecy);
        self
    }

    /// Sets in how many bytes the endpoint remembers its sessions by TLS, to resume them within an
    /// hour (SPEC §6.10): the next session with the same server then begins without certificates
    /// and signatures, and with a key exchange that is as fresh. By default 1 MiB; 0 resumes
    /// nothing.
    pub fn sessions_memory(mut self, bytes: usize) -> Self {
        self.role = self.role.sessions_memory(bytes);
        self
    }
}

impl Builder<TlsServer> {
    /// Sets the TLS clients that are let in; by default any, without a certificate. Clients with a
    /// registered key show none, even where one is required: their key proves their identity
    /// ([`Self::registered_key`]).
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.role = self.role.client_auth(client_auth);
        self
    }

    /// Lets clients in by this key too, which the application negotiated itself (SPEC §7.2). There
    /// is one key for each client identity, told apart by name, and all keys give the server the
    /// same own identity.
    pub fn registered_key(mut self, key: RegisteredKey) -> Self {
        self.role = self.role.registered_key(key);
        self
    }

    /// Sets in how many bytes the server remembers sessions by TLS, for clients to resume them
    /// within an hour (SPEC §6.10). The oldest make room for new ones, and all are forgotten when
    /// its identity or its trust in clients is replaced. By default 0, which resumes nothing: a
    /// server that resumes relies on proofs of identity that are up to an hour old. 4 MiB are for
    /// some thousand clients.
    pub fn sessions_memory(mut self, bytes: usize) -> Self {
        self.role = self.role.sessions_memory(bytes);
        self
    }

    /// Lets clients in by tickets of these keys too (SPEC §6.7). Keys may be added while the server
    /// runs.
    pub fn tickets(mut self, keys: TicketKeys) -> Self {
        self.role = self.role.tickets(keys);
        self
    }
}

impl<R: std::fmt::Debug> std::fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("role", &self.role)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Default of [`Builder::connect_deadline`] (SPEC §10).
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Default of [`Builder::spin`]: the time that the peer takes for a call of 64 KB. A longer bound
/// gains nothing (docs/lab/2026-11-23.md).
const SPIN: Duration = Duration::from_micros(100);
