// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an endpoint is opened: who it is, whom it trusts, and what else may be chosen.

pub(crate) mod address;
pub(crate) mod bound_socket;
mod credentials;
pub(crate) mod endpoint_parts;
mod key_exchanges;
mod open;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use smt_handshake::{Algorithms, ClientAuth, Group, Identity, RegisteredKey, Trust};
use smt_io::UdpOptions;
use smt_proto::Config;
use smt_record::{KeyLimits, KeyLog, Padding, Suite};

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
    /// Whether `algorithms` was chosen.
    has_algorithms: bool,
    config: Config,
    udp: UdpOptions,
    spin: Option<Duration>,
    #[cfg(feature = "tokio")]
    has_io_thread: bool,
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

    /// Sets the certificate chain and key that this side shows.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the servers that a client accepts. A server with this option is not opened; its option
    /// is [`Self::client_auth`].
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// The TLS clients that a server accepts; by default any, without a certificate. Clients with a
    /// registered key show none, even where one is required: their key proves their identity
    /// ([`Self::registered_key`]). A client with this option is not opened.
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = Some(client_auth);
        self
    }

    /// The name that the server's certificate must have; by default the host part of the address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Uses a key that the application negotiated itself instead of TLS (SPEC §7.2). A client has
    /// one key, for one server or for several that share an identity. A server has one key for each
    /// client identity, told apart by name, and all keys give the server the same own identity. A
    /// client with a key and options of TLS is not opened.
    ///
    /// A server that has an [`Self::identity`] too takes each client by its own kind: TLS clients
    /// as [`Self::client_auth`] says, the others by their key. A required client certificate is
    /// required of TLS clients alone: the registered key of any other client admits it.
    pub fn registered_key(mut self, key: RegisteredKey) -> Self {
        self.registered.push(key);
        self
    }

    /// Cipher suites, preferred first. By default AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.algorithms.suites = suites.into_iter().collect();
        self.has_algorithms = true;
        self
    }

    /// Key exchange groups, preferred first. By default the post-quantum hybrid X25519MLKEM768
    /// first.
    pub fn groups(mut self, groups: impl IntoIterator<Item = Group>) -> Self {
        self.algorithms.groups = groups.into_iter().collect();
        self.has_algorithms = true;
        self
    }

    /// Sets the largest message that is accepted, in bytes; 64 MiB by default.
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

    /// Changes anything of the protocol's configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Sets how long a client tries to connect, to all addresses of its server together; 5 s by
    /// default.
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.connect_deadline = Some(deadline);
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
        self.spin = Some(bound);
        self
    }

    /// Drives the endpoint by a thread of its own, and not by the runtime; off by default. This is
    /// for runtimes whose workers are kept busy or blocked by handlers: messages are received,
    /// acknowledged and sent meanwhile. On other runtimes it costs a hand-over between threads for
    /// each call. Only endpoints for tasks have it, and only on Linux.
    #[cfg(feature = "tokio")]
    pub fn io_thread(mut self, on: bool) -> Self {
        self.has_io_thread = on;
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

    /// Buffers and offloads of the socket.
    pub fn udp(mut self, options: UdpOptions) -> Self {
        self.udp = options;
        self
    }

    /// Keeps a boot number and the reset key in this file. After a restart, clients of the run
    /// before learn at once that their sessions are gone, and not only by silence. Each server
    /// needs a file of its own: the file is locked, by a file beside it that ends in `.lock`, and a
    /// second endpoint with it is not opened. The shards of one server share the file.
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
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

    pub(crate) fn udp_options(&self) -> &UdpOptions {
        &self.udp
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
