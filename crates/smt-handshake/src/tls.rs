// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.3 as the key exchange of an endpoint (SPEC §6.1): configuration.
//!
//! Flow: 1. a client says whom it trusts, a server who it is  2. [`TlsProvider`] checks all of it
//! once and holds it  3. each attempt gets an exchange of its own (see `tls/exchange.rs`).
//! TLS 1.3 only, ALPN `smt/1`, resumption with a fresh ECDHE (see `tls/resumption.rs`), no early
//! data.

pub(crate) mod algorithms;
pub(crate) mod certificate_refusal;
mod client_auth;
mod client_side;
pub(crate) mod entropy;
mod exchange;
pub(crate) mod failure;
mod peer_judge;
mod resumption;
pub(crate) mod verifiers;
pub(crate) mod verify;
mod verify_chain;
pub(crate) mod verify_pinned;
pub(crate) mod verify_server_id;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use smt_proto::WallTime;
use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider};
use smt_record::{Side, Suite};

use self::algorithms::Algorithms;
pub use self::client_auth::ClientAuth;
use self::client_side::ClientSide;
use self::entropy::EntropySources;
use self::exchange::{Dates, Terms, TlsExchange};
pub use self::peer_judge::PeerJudge;
use self::resumption::{ResumingClient, ResumingServer, SessionsPlan};
use self::verifiers::{client_verifier, server_verifier};
use self::verify::Form;
use crate::failure::{caller, environment, nothing_common, parse_params};
use crate::identity::Identity;
use crate::limits::{CLIENT_SESSIONS_MEMORY, SERVER_SESSIONS_MEMORY, SESSIONS_OF_SERVER_MAX};
use crate::told_time::ToldTime;
use crate::trust::Trust;

/// How an endpoint is a TLS client: whom it trusts, and who it is if servers ask.
#[derive(Clone, Debug)]
pub struct ClientTls {
    trust: Trust,
    identity: Option<Identity>,
    sessions_memory: usize,
}

impl ClientTls {
    /// Accepts the servers that `trust` says.
    pub fn new(trust: Trust) -> Self {
        Self { trust, identity: None, sessions_memory: CLIENT_SESSIONS_MEMORY }
    }

    /// Shows this identity to servers that ask for one.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Shows no identity.
    #[must_use]
    pub fn without_identity(mut self) -> Self {
        self.identity = None;
        self
    }

    /// Accepts other servers.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Remembers sessions in so many bytes, to resume them later (SPEC §6.10): a new session with
    /// the same server then begins without certificates, with keys that are as fresh. 0 resumes
    /// nothing; the default is [`CLIENT_SESSIONS_MEMORY`].
    #[must_use]
    pub fn with_sessions_memory(mut self, bytes: usize) -> Self {
        self.sessions_memory = bytes;
        self
    }

    /// A provider for a client with the default algorithms.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the trust cannot be used.
    pub fn build(self) -> Result<TlsProvider, TlsConfigError> {
        TlsProvider::new(Some(self), None, &Algorithms::default())
    }

    fn side(self, library: &Library) -> Result<ClientSide, TlsConfigError> {
        let trust = self.trust.clone();
        let dates = Dates {
            of_peer: trust.judges_dates(),
            own: self.identity.as_ref().and_then(Identity::expires),
        };
        Ok(ClientSide { config: self.config(library)?, trust, dates })
    }

    fn config(self, library: &Library) -> Result<ResumingClient, TlsConfigError> {
        let plan = SessionsPlan {
            memory: self.trust.sessions_memory(self.sessions_memory),
            of_name: SESSIONS_OF_SERVER_MAX,
            judges_dates: self.trust.judges_dates(),
            trust_until: self.trust.last_second(),
        };
        let provider = &library.provider;
        let builder = ClientConfig::builder_with_details(Arc::clone(provider), library.time())
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsConfigError::Unusable)?;
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(server_verifier(self.trust, provider)?);
        let mut config = match self.identity {
            Some(identity) => builder.with_client_cert_resolver(identity.as_client()),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(ResumingClient::new(config, plan, Arc::clone(&library.time)))
    }
}

/// How an endpoint is a TLS server: who it is, and whom it lets in.
#[derive(Clone, Debug)]
pub struct ServerTls {
    identity: Identity,
    client_auth: ClientAuth,
    sessions_memory: usize,
}

impl ServerTls {
    /// Shows this identity to all clients, and asks none for its own.
    pub fn new(identity: Identity) -> Self {
        Self { identity, client_auth: ClientAuth::None, sessions_memory: SERVER_SESSIONS_MEMORY }
    }

    /// Asks clients for a certificate, or not.
    #[must_use]
    pub fn with_client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = client_auth;
        self
    }

    /// Remembers sessions in so many bytes, for clients to resume them (SPEC §6.10). 0 sends no
    /// tickets; the default is [`SERVER_SESSIONS_MEMORY`].
    #[must_use]
    pub fn with_sessions_memory(mut self, bytes: usize) -> Self {
        self.sessions_memory = bytes;
        self
    }

    /// Shows another identity.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// A provider for a server with the default algorithms.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the trust in clients cannot be used.
    pub fn build(self) -> Result<TlsProvider, TlsConfigError> {
        TlsProvider::new(None, Some(self), &Algorithms::default())
    }

    fn side(self, library: &Library) -> Result<ServerSide, TlsConfigError> {
        let dates = Dates { of_peer: self.client_auth.judges_dates(), own: None };
        let peer_form = self.client_auth.form();
        let clients = client_verifier(self.client_auth.clone(), &library.provider)?;
        let config = self.config(clients.clone(), library)?;
        Ok(ServerSide { config, clients, dates, peer_form })
    }

    fn config(
        self,
        clients: Option<Arc<dyn ClientCertVerifier>>,
        library: &Library,
    ) -> Result<ResumingServer, TlsConfigError> {
        let plan = SessionsPlan {
            memory: self.client_auth.sessions_memory(self.sessions_memory),
            // A ticket is a name of its own.
            of_name: 1,
            judges_dates: self.client_auth.judges_dates(),
            trust_until: self.client_auth.last_second(),
        };
        let provider = &library.provider;
        let builder = ServerConfig::builder_with_details(Arc::clone(provider), library.time())
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsConfigError::Unusable)?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(verifier),
        };
        let mut config = builder.with_cert_resolver(self.identity.as_server());
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.ignore_client_order = true;
        Ok(ResumingServer::new(config, plan, Arc::clone(&library.time)))
    }
}

/// The TLS key exchange of an endpoint: client, server or both.
pub struct TlsProvider {
    client: Option<RwLock<ClientSide>>,
    server: Option<RwLock<ServerSide>>,
    /// How often the client's configuration was replaced.
    client_replaced: AtomicU64,
    suites: Vec<Suite>,
    library: Library,
}

impl TlsProvider {
    /// An endpoint that is a client, a server or both, with these algorithms.
    ///
    /// # Errors
    /// [`TlsConfigError`] if an algorithm list is empty, or the trust cannot be used.
    pub fn new(
        client: Option<ClientTls>,
        server: Option<ServerTls>,
        algorithms: &Algorithms,
    ) -> Result<Self, TlsConfigError> {
        if algorithms.suites.is_empty() || algorithms.groups.is_empty() {
            return Err(TlsConfigError::NoAlgorithm);
        }
        let library = Library {
            provider: Arc::new(algorithms.provider()),
            time: Arc::new(ToldTime::new(Arc::new(DefaultTimeProvider))),
        };
        Self::with_library(client, server, &algorithms.suites, library)
    }

    /// As [`Self::new`], with key shares, randomness and date from elsewhere: for simulators.
    ///
    /// # Errors
    /// [`TlsConfigError`] if a list is empty, or the trust cannot be used.
    pub fn with_sources(
        client: Option<ClientTls>,
        server: Option<ServerTls>,
        suites: &[Suite],
        sources: EntropySources,
    ) -> Result<Self, TlsConfigError> {
        if suites.is_empty() || sources.groups.is_empty() {
            return Err(TlsConfigError::NoAlgorithm);
        }
        let algorithms = Algorithms { suites: suites.to_vec(), groups: Vec::new() };
        let library = Library {
            provider: Arc::new(CryptoProvider {
                kx_groups: sources.groups,
                secure_random: sources.random,
                ..algorithms.provider()
            }),
            time: Arc::new(ToldTime::new(sources.time)),
        };
        Self::with_library(client, server, suites, library)
    }

    fn with_library(
        client: Option<ClientTls>,
        server: Option<ServerTls>,
        suites: &[Suite],
        library: Library,
    ) -> Result<Self, TlsConfigError> {
        let client = client.map(|client| client.side(&library)).transpose()?;
        let server = server.map(|server| server.side(&library)).transpose()?;
        Ok(Self {
            client: client.map(RwLock::new),
            server: server.map(RwLock::new),
            client_replaced: AtomicU64::new(0),
            suites: suites.to_vec(),
            library,
        })
    }

    /// Answers clients that begin from now on as this server: with a renewed certificate, for
    /// example. Handshakes in progress go on with what they have begun with, and sessions are not
    /// touched; those that ended before are not resumed.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the provider answers no clients, or the trust in clients cannot be
    /// used. Then nothing has changed.
    pub fn set_server(&self, server: ServerTls) -> Result<(), TlsConfigError> {
        let present = self.server.as_ref().ok_or(TlsConfigError::NoServer)?;
        let side = server.side(&self.library)?;
        *present.write().unwrap_or_else(PoisonError::into_inner) = side;
        Ok(())
    }

    /// Calls servers from now on as this client: with another trust, or a renewed certificate.
    /// Handshakes in progress go on with what they have begun with, and sessions are not touched.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the provider calls no servers, or the trust cannot be used. Then
    /// nothing has changed.
    pub fn set_client(&self, client: ClientTls) -> Result<(), TlsConfigError> {
        let present = self.client.as_ref().ok_or(TlsConfigError::NoClient)?;
        let side = client.side(&self.library)?;
        *present.write().unwrap_or_else(PoisonError::into_inner) = side;
        self.client_replaced.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// How often [`Self::set_client`] has put a configuration in the place of another.
    pub(crate) fn client_replaced(&self) -> u64 {
        self.client_replaced.load(Ordering::Relaxed)
    }

    /// Returns the trust of this moment in both roles, to judge the peers of live sessions by
    /// after it was replaced.
    #[must_use]
    pub fn peer_judge(&self) -> PeerJudge {
        let server = self.server.as_ref();
        let server = server.map(|side| side.read().unwrap_or_else(PoisonError::into_inner));
        let client = self.client.as_ref();
        let client = client.map(|side| side.read().unwrap_or_else(PoisonError::into_inner));
        PeerJudge {
            clients: server.and_then(|side| side.clients.clone()),
            servers: client.map(|side| side.trust.clone()),
            provider: Arc::clone(&self.library.provider),
            time: Arc::clone(&self.library.time),
        }
    }
}

impl KeyExchangeProvider for TlsProvider {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        let side = self.client.as_ref().ok_or_else(|| {
            caller("this endpoint is only a server: give it a ClientTls to make calls".to_owned())
        })?;
        let ClientRequest { server_name, wall, is_retry } = request;
        let side = side.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (call, tickets) = side.to_call(server_name, is_retry, &self.library)?;
        self.library.time.set(wall);
        let connection = ClientConnection::new(call.config, call.name).map_err(not_begun)?;
        let terms = Terms {
            dates: side.dates,
            tickets,
            peer_form: side.trust.form(),
            server_name: Some(server_name.into()),
        };
        Ok(self.attempt(TlsExchange::client(connection, terms)))
    }

    fn server(
        &self,
        client_params: &[u8],
        wall: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        let params = parse_params(client_params, Side::Client)?;
        if params.key_exchange != smt_wire::KeyExchange::Tls13 {
            return Err(nothing_common(format!(
                "the client wants key exchange {:?}, and this server has TLS alone",
                params.key_exchange
            )));
        }
        let side = self.server.as_ref().ok_or_else(|| {
            caller("this endpoint is only a client: give it a ServerTls to answer".to_owned())
        })?;
        self.library.time.set(wall);
        let side = side.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (config, tickets) = side.config.for_attempt();
        let connection = ServerConnection::new(config).map_err(not_begun)?;
        let (dates, peer_form) = (side.dates, side.peer_form);
        let terms = Terms { dates, tickets, peer_form, server_name: None };
        let exchange = TlsExchange::server(connection, client_params, terms);
        Ok(self.attempt(exchange))
    }
}

impl TlsProvider {
    fn attempt(&self, exchange: TlsExchange) -> Attempt {
        Attempt {
            kind: smt_wire::KeyExchange::Tls13,
            suites: self.suites.clone(),
            key: None,
            early_max: 0,
            exchange: Box::new(exchange),
        }
    }
}

impl fmt::Debug for TlsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsProvider")
            .field("client", &self.client.is_some())
            .field("server", &self.server.is_some())
            .field("suites", &self.suites)
            .finish()
    }
}

/// How clients are answered.
#[derive(Clone)]
struct ServerSide {
    config: ResumingServer,
    /// Judges its clients, if it asks who they are.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    dates: Dates,
    peer_form: Form,
}

/// The algorithms of both roles, and their clock.
struct Library {
    provider: Arc<CryptoProvider>,
    time: Arc<ToldTime>,
}

impl Library {
    fn time(&self) -> Arc<dyn TimeProvider> {
        Arc::<ToldTime>::clone(&self.time)
    }
}

/// Why TLS cannot be set up so. All of it is local.
#[non_exhaustive]
#[derive(thiserror::Error)]
pub enum TlsConfigError {
    /// A list of suites or groups is empty: name at least one of each.
    #[error(
        "caller: no cipher suite or no key exchange group is allowed; name at least one of each"
    )]
    NoAlgorithm,
    /// The endpoint answers no clients by TLS, so it shows them no identity.
    #[error(
        "caller: this endpoint answers no clients by TLS, so it has neither an identity nor a trust to replace"
    )]
    NoServer,
    /// The endpoint calls no servers by TLS, so it has no trust in servers.
    #[error(
        "caller: this endpoint calls no servers by TLS, so it has neither a trust nor a client's identity to replace"
    )]
    NoClient,
    /// The roots cannot be used.
    #[error("caller: the trusted roots cannot be used: {0}")]
    Trust(String),
    /// The library refuses the combination.
    #[error("caller: this TLS configuration cannot be used: {0}")]
    Unusable(rustls::Error),
}

/// Its text, since that is what a `main` shows that returns it.
impl fmt::Debug for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The protocol that both sides must name in TLS (SPEC §6.1).
pub const ALPN: &[u8] = b"smt/1";

/// The configuration was checked when it was built, so what is left is the system's randomness.
fn not_begun(error: rustls::Error) -> HandshakeFailure {
    environment(format!("TLS could not begin on this host: {error}"))
}
