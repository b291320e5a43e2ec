// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an endpoint is opened: who it is, whom it trusts, and what else may be chosen.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Carrier, Path};
use smt_handshake::{
    Algorithms, ClientAuth, ClientTls, Group, HmacTokens, Identity, PlaintextProvider,
    RegisteredKey, RegisteredProvider, ServerTls, TlsProvider, Trust,
};
use smt_io::{UdpCarrier, UdpOptions};
use smt_proto::handshake::KeyExchangeProvider;
use smt_proto::{Config, Endpoint};
use smt_record::{KeyLimits, KeyLog, Padding, Suite};

use crate::blocking;
use crate::clock::Clock;
use crate::core::Core;
use crate::durable::Durable;
use crate::error::OpenError;
use crate::hub::{Drive, Guard, Hub};
use crate::target::Target;

/// The port that is used if an address names none (SPEC §15.1).
pub const DEFAULT_PORT: u16 = 17_379;

/// Opens clients and servers. Everything but identity (server) and trust (client) has a default.
#[derive(Clone, Default)]
#[must_use]
pub struct Builder {
    identity: Option<Identity>,
    trust: Option<Trust>,
    client_auth: Option<ClientAuth>,
    server_name: Option<String>,
    registered: Vec<RegisteredKey>,
    algorithms: Algorithms,
    config: Config,
    udp: UdpOptions,
    spin: Option<Duration>,
    connect_deadline: Option<Duration>,
    key_log: Option<Arc<dyn KeyLog>>,
    has_dscp: bool,
    state_file: Option<PathBuf>,
    /// Only the endpoint types of `plaintext` set it.
    #[cfg(feature = "unstable-plaintext")]
    is_plaintext: bool,
}

impl Builder {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The certificate chain and key that this side shows.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The servers that a client accepts.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// The clients that a server accepts; by default any, without a certificate.
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = Some(client_auth);
        self
    }

    /// The name that the server's certificate must have; by default the host part of the address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Uses a key that the application negotiated itself instead of TLS (SPEC §7.2). A server may have many, told
    /// apart by name; a client has one.
    pub fn registered_key(mut self, key: RegisteredKey) -> Self {
        self.registered.push(key);
        self
    }

    /// Cipher suites, preferred first. By default AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.algorithms.suites = suites.into_iter().collect();
        self
    }

    /// Key exchange groups, preferred first. By default the post-quantum hybrid X25519MLKEM768 first.
    pub fn groups(mut self, groups: impl IntoIterator<Item = Group>) -> Self {
        self.algorithms.groups = groups.into_iter().collect();
        self
    }

    /// The largest message accepted, in bytes; 64 MiB by default.
    pub fn message_limit(mut self, bytes: u32) -> Self {
        self.config.message_limit = bytes;
        self
    }

    /// How message lengths are hidden; not at all by default.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.config.padding = padding;
        self
    }

    /// When keys are renewed; by default before 2^23 records.
    pub fn key_limits(mut self, limits: KeyLimits) -> Self {
        self.config.key_limits = limits;
        self
    }

    /// Changes anything of the protocol's configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// How long a client tries to connect; 5 s by default.
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.connect_deadline = Some(deadline);
        self
    }

    /// How long a waiting thread spins before it blocks, 50 us by default; zero never spins. Blocking endpoints only.
    pub fn spin(mut self, bound: Duration) -> Self {
        self.spin = Some(bound);
        self
    }

    /// Gives the secrets of all sessions to a key log. Whoever reads it reads the sessions: for debugging.
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        self.key_log = Some(log);
        self
    }

    /// Marks datagrams with their priority (DSCP), for networks whose switches act on it. Off by default.
    pub fn dscp(mut self, on: bool) -> Self {
        self.has_dscp = on;
        self
    }

    /// Buffers and offloads of the socket.
    pub fn udp(mut self, options: UdpOptions) -> Self {
        self.udp = options;
        self
    }

    /// Keeps a boot number and the reset key in this file, so that after a restart clients of the run before learn
    /// at once that their sessions are gone, and not only by silence. One file per server.
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
    }

    /// Opens a server for threads.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_blocking(self, address: impl Display) -> Result<blocking::Server, OpenError> {
        let address = resolve(&address.to_string())?;
        let udp = Arc::new(self.udp.bind(address)?);
        self.server(Arc::clone(&udp) as Arc<dyn Carrier>, Some(udp), false)
            .map(blocking::Server::new)
    }

    /// Opens a client for threads, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_blocking(self, address: impl Display) -> Result<blocking::Client, OpenError> {
        let (remote, name) = self.remote(&address.to_string(), resolve(&address.to_string())?);
        let udp = Arc::new(self.udp.connect(remote)?);
        let guard = self.client(
            Arc::clone(&udp) as Arc<dyn Carrier>,
            Some(udp),
            (remote, name),
            false,
        )?;
        let client = blocking::Client::new(guard, remote);
        client.connect()?;
        Ok(client)
    }

    /// Opens a server for threads over any carrier.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_over(self, carrier: Arc<dyn Carrier>) -> Result<blocking::Server, OpenError> {
        self.server(carrier, None, false).map(blocking::Server::new)
    }

    /// Opens a client for threads over any carrier, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_over(
        self,
        carrier: Arc<dyn Carrier>,
        remote: SocketAddr,
    ) -> Result<blocking::Client, OpenError> {
        let (remote, name) = self.remote(&remote.to_string(), remote);
        let guard = self.client(carrier, None, (remote, name), false)?;
        let client = blocking::Client::new(guard, remote);
        client.connect()?;
        Ok(client)
    }

    /// Opens a server on the current tokio runtime.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn bind(self, address: impl Display) -> Result<crate::Server, OpenError> {
        let address = resolve_async(address.to_string()).await?;
        let udp = Arc::new(self.udp.bind(address)?);
        let guard = self.server(
            Arc::clone(&udp) as Arc<dyn Carrier>,
            Some(Arc::clone(&udp)),
            true,
        )?;
        spawn(&guard, &udp)?;
        Ok(crate::Server::new(guard))
    }

    /// Opens a client on the current tokio runtime, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn connect(self, address: impl Display) -> Result<crate::Client, OpenError> {
        let text = address.to_string();
        let (remote, name) = self.remote(&text, resolve_async(text.clone()).await?);
        let udp = Arc::new(self.udp.connect(remote)?);
        let carrier = Arc::clone(&udp) as Arc<dyn Carrier>;
        let guard = self.client(carrier, Some(Arc::clone(&udp)), (remote, name), true)?;
        spawn(&guard, &udp)?;
        let client = crate::Client::new(guard, remote);
        client.connect().await?;
        Ok(client)
    }

    #[cfg(feature = "unstable-plaintext")]
    pub(crate) fn without_protection(mut self) -> Self {
        self.is_plaintext = true;
        self
    }

    #[cfg(feature = "unstable-plaintext")]
    fn is_plaintext(&self) -> bool {
        self.is_plaintext
    }

    #[cfg(not(feature = "unstable-plaintext"))]
    fn is_plaintext(&self) -> bool {
        false
    }

    /// The address of a client's server, and the name it must prove.
    fn remote(&self, text: &str, address: SocketAddr) -> (SocketAddr, String) {
        let host = || host_of(text).to_owned();
        (address, self.server_name.clone().unwrap_or_else(host))
    }

    fn server(
        &self,
        carrier: Arc<dyn Carrier>,
        udp: Option<Arc<UdpCarrier>>,
        is_task: bool,
    ) -> Result<Arc<Guard>, OpenError> {
        let (endpoint, clock) = self.endpoint(udp.as_deref(), true)?;
        let core = Core::new(endpoint, Arc::clone(&carrier), self.has_dscp);
        let span = tracing::info_span!("server", address = %carrier.local_address());
        Ok(Hub::open(
            core,
            carrier,
            udp,
            self.drive(clock, is_task, span),
        ))
    }

    fn client(
        &self,
        carrier: Arc<dyn Carrier>,
        udp: Option<Arc<UdpCarrier>>,
        (remote, name): (SocketAddr, String),
        is_task: bool,
    ) -> Result<Arc<Guard>, OpenError> {
        let (endpoint, clock) = self.endpoint(udp.as_deref(), false)?;
        let mut core = Core::new(endpoint, Arc::clone(&carrier), self.has_dscp);
        let deadline = self.connect_deadline.unwrap_or(CONNECT_DEADLINE);
        let span = tracing::info_span!("client", server = %remote);
        core.target = Some(Target::new(Path::to(remote), name, deadline));
        Ok(Hub::open(
            core,
            carrier,
            udp,
            self.drive(clock, is_task, span),
        ))
    }

    fn drive(&self, clock: Clock, is_task: bool, span: tracing::Span) -> Drive {
        Drive {
            clock,
            is_task,
            spin: self.spin.unwrap_or(SPIN),
            span,
        }
    }

    pub(crate) fn udp_options(&self) -> &UdpOptions {
        &self.udp
    }

    pub(crate) fn endpoint(
        &self,
        udp: Option<&UdpCarrier>,
        accept: bool,
    ) -> Result<(Endpoint, Clock), OpenError> {
        let mut config = self.config.clone();
        config.accept = accept;
        config.version = if self.is_plaintext() {
            smt_wire::PLAINTEXT_VERSION
        } else {
            smt_wire::VERSION
        };
        if let Some(udp) = udp {
            // The kernel counts a packet's buffers too, up to twice its bytes.
            let third = u32::try_from(udp.receive_buffer_bytes() / 3).unwrap_or(u32::MAX);
            config.incoming_max = config.incoming_max.min(third.max(config.unscheduled));
        }
        check(&config)?;
        let durable = match &self.state_file {
            Some(path) => Durable::next(path)?,
            None => Durable::ephemeral()?,
        };
        config.boot = durable.boot;
        config.durable_boot = durable.is_durable;
        let mac = Arc::new(HmacTokens::new(durable.seed));
        let mut endpoint = Endpoint::new(config, self.provider(accept)?, mac);
        if let Some(log) = &self.key_log {
            endpoint.set_key_log(Arc::clone(log));
        }
        Ok((endpoint, Clock::new()))
    }

    fn provider(&self, accept: bool) -> Result<Arc<dyn KeyExchangeProvider>, OpenError> {
        if self.is_plaintext() {
            return Ok(Arc::new(PlaintextProvider));
        }
        if let Some(first) = self.registered.first() {
            let provider = if accept {
                RegisteredProvider::server(self.registered.clone())
            } else {
                Ok(RegisteredProvider::client(first.clone()))
            };
            return Ok(Arc::new(provider?));
        }
        let client = match (&self.trust, accept) {
            (Some(trust), false) => {
                let tls = ClientTls::new(trust.clone());
                Some(match &self.identity {
                    Some(identity) => tls.with_identity(identity.clone()),
                    None => tls,
                })
            }
            (None, false) => {
                return Err(OpenError::Options(
                    "a client needs `trust`: whose certificates it accepts",
                ));
            }
            (_, true) => None,
        };
        let server = match (&self.identity, accept) {
            (Some(identity), true) => {
                let auth = self.client_auth.clone().unwrap_or(ClientAuth::None);
                Some(ServerTls::new(identity.clone()).with_client_auth(auth))
            }
            (None, true) => {
                return Err(OpenError::Options(
                    "a server needs an `identity`: certificate and key",
                ));
            }
            (_, false) => None,
        };
        Ok(Arc::new(TlsProvider::new(
            client,
            server,
            &self.algorithms,
        )?))
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("server_name", &self.server_name)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn check(config: &Config) -> Result<(), OpenError> {
    let checks = [
        (
            (8..=17).contains(&config.index_bits),
            "`index_bits` must be 8 to 17",
        ),
        (
            (64..=16_384).contains(&config.record_size),
            "`record_size` must be 64 to 16,384",
        ),
        (
            (64..=1_142).contains(&config.first_record_size),
            "`first_record_size` must be 64 to 1,142",
        ),
        (
            config.window.is_power_of_two() && (64..=65_536).contains(&config.window),
            "`window` must be a power of two, 64 to 65,536",
        ),
        (config.stripes_log2 <= 8, "`stripes_log2` must be at most 8"),
        (
            config.datagram_limit >= 1_200,
            "`datagram_limit` must be at least 1,200",
        ),
        (
            config.unscheduled >= 1_164,
            "`unscheduled` must be at least 1,164, a whole first record",
        ),
        (config.sessions_max > 0, "`sessions_max` must not be 0"),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, text)) => Err(OpenError::Options(text)),
        None => Ok(()),
    }
}

/// The host part of `host:port`, without brackets.
fn host_of(text: &str) -> &str {
    let host = if text.parse::<SocketAddr>().is_ok() || text.matches(':').count() == 1 {
        text.rsplit_once(':').map_or(text, |(host, _)| host)
    } else {
        text
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

/// With the default port if the address names none.
fn with_port(text: &str) -> String {
    let has_port = text.parse::<SocketAddr>().is_ok() || text.matches(':').count() == 1;
    if has_port {
        return text.to_owned();
    }
    match text
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>()
    {
        Ok(address) => SocketAddr::new(address, DEFAULT_PORT).to_string(),
        Err(_) => format!("{text}:{DEFAULT_PORT}"),
    }
}

pub(crate) fn resolve(text: &str) -> Result<SocketAddr, OpenError> {
    first_of(text, with_port(text).to_socket_addrs())
}

#[cfg(feature = "tokio")]
async fn resolve_async(text: String) -> Result<SocketAddr, OpenError> {
    let found = tokio::net::lookup_host(with_port(&text)).await;
    first_of(&text, found)
}

fn first_of(
    text: &str,
    found: std::io::Result<impl Iterator<Item = SocketAddr>>,
) -> Result<SocketAddr, OpenError> {
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    found
        .and_then(|mut addresses| addresses.next().ok_or_else(none))
        .map_err(|source| OpenError::Address {
            address: text.to_owned(),
            source,
        })
}

#[cfg(feature = "tokio")]
fn spawn(guard: &Arc<Guard>, udp: &UdpCarrier) -> Result<(), OpenError> {
    crate::asynchronous::spawn_driver(guard, udp).map_err(|source| OpenError::System {
        what: "registering the socket with tokio",
        source,
    })
}

/// Default of [`Builder::connect_deadline`] (SPEC §10).
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Default of [`Builder::spin`]: two unloaded round trips of 64 B (docs/PERF.md).
const SPIN: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_stands_before_the_port() {
        for (text, host) in [
            ("db7:9000", "db7"),
            ("db7", "db7"),
            ("127.0.0.1:9000", "127.0.0.1"),
            ("[::1]:9000", "::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(host_of(text), host, "{text}");
        }
    }

    #[test]
    fn an_address_without_a_port_gets_the_default_one() {
        for (text, whole) in [
            ("127.0.0.1", "127.0.0.1:17379"),
            ("::1", "[::1]:17379"),
            ("[::1]:5", "[::1]:5"),
            ("db7", "db7:17379"),
        ] {
            assert_eq!(with_port(text), whole, "{text}");
        }
    }

    #[test]
    fn a_choice_out_of_range_is_named() {
        let outcome = Builder::new()
            .configure(|config| config.window = 100)
            .endpoint(None, true);
        let Err(error) = outcome else {
            panic!("it was accepted")
        };
        assert!(error.to_string().contains("`window` must be"), "{error}");
    }
}
