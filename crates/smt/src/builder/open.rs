// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From choices to an open endpoint: the last call of every builder.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Carrier, Path};

use super::Builder;
#[cfg(feature = "tokio")]
use super::address::resolve_all_async;
use super::address::{Candidates, TimeLeft, host_of, resolve, resolve_all};
use super::bound_socket::BoundSocket;
use super::endpoint_parts::EndpointParts;
use crate::blocking;
use crate::driver::{Drive, DriveBy, Driver, Guard};
use crate::endpoint_state::EndpointState;
use crate::error::OpenError;
use crate::reconnect::Reconnect;
use crate::shards::Shards;

impl Builder {
    /// Opens a server for threads.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_blocking(self, address: impl Display) -> Result<blocking::Server, OpenError> {
        let bound_socket = BoundSocket::socket(self.udp.bind(resolve(&address.to_string())?)?);
        self.blocking_server(&self.endpoint_parts(true)?, bound_socket)
    }

    /// Opens a server for threads as `count` shards, a power of two: endpoints that share an
    /// address and nothing else, so that as many cores work without waiting for each other. All
    /// limits are those of one shard. A client has its sessions with one shard, or with all of them
    /// ([`Self::connect_shards_blocking`]).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_shards_blocking(
        self,
        address: impl Display,
        count: u16,
    ) -> Result<Shards<blocking::Server>, OpenError> {
        let sockets = BoundSocket::bound(&self.udp, resolve(&address.to_string())?, count)?;
        let endpoint_parts = self.endpoint_parts(true)?;
        let servers = sockets.into_iter();
        let servers =
            servers.map(|bound_socket| self.blocking_server(&endpoint_parts, bound_socket));
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a client for threads, and waits until its session is live. If a host has several
    /// addresses, each is tried, in the system's order, until a server answers at one. The rest of
    /// [`Self::connect_deadline`] is shared among the addresses that are left.
    ///
    /// # Errors
    /// See [`OpenError`]. If several addresses failed, the error is the one that says most of the
    /// server.
    pub fn connect_blocking(self, address: impl Display) -> Result<blocking::Client, OpenError> {
        let clients = self.connect_shards_blocking(address, 1)?;
        Ok(clients.into_iter().next().expect("one shard"))
    }

    /// Opens a client for threads as `count` shards, a power of two, each with a socket and a
    /// session of its own, and waits until all are live. If the client has as many shards as the
    /// server, each reaches one of the server's. Several addresses of a host are tried as by
    /// [`Self::connect_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_shards_blocking(
        self,
        address: impl Display,
        count: u16,
    ) -> Result<Shards<blocking::Client>, OpenError> {
        let host = address.to_string();
        self.connect_any_blocking(&host, resolve_all(&host)?, count)
    }

    /// Connects to the first of a host's addresses that answers.
    fn connect_any_blocking(
        self,
        host: &str,
        addresses: Vec<SocketAddr>,
        count: u16,
    ) -> Result<Shards<blocking::Client>, OpenError> {
        let endpoint_parts = self.endpoint_parts(false)?;
        let mut candidates = Candidates::new(addresses, self.deadline());
        loop {
            let remote = self.remote(host, candidates.take());
            match self.blocking_clients(&endpoint_parts, &remote, count) {
                Err(error) => candidates.failed(error)?,
                Ok(clients) => return Ok(Shards::new(clients)),
            }
        }
    }

    /// Opens a server for threads over any carrier.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_over_blocking(
        self,
        carrier: Arc<dyn Carrier>,
    ) -> Result<blocking::Server, OpenError> {
        self.blocking_server(&self.endpoint_parts(true)?, BoundSocket::over(carrier))
    }

    /// Opens a client for threads over any carrier, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_over_blocking(
        self,
        carrier: Arc<dyn Carrier>,
        remote: SocketAddr,
    ) -> Result<blocking::Client, OpenError> {
        let remote = self.remote(&remote.to_string(), (remote, self.deadline()));
        self.blocking_client(
            &self.endpoint_parts(false)?,
            BoundSocket::over(carrier),
            &remote,
        )
    }

    /// Opens a server on the current tokio runtime over any carrier. A carrier that has no
    /// descriptor to poll ([`Carrier::readiness`]) has a thread that waits for it.
    ///
    /// # Errors
    /// See [`OpenError`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[cfg(feature = "tokio")]
    pub fn bind_over(self, carrier: Arc<dyn Carrier>) -> Result<crate::Server, OpenError> {
        let bound_socket = BoundSocket::polled_over(carrier)?;
        self.task_server(&self.endpoint_parts(true)?, bound_socket)
    }

    /// Opens a client on the current tokio runtime over any carrier, as [`Self::bind_over`] does,
    /// and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn connect_over(
        self,
        carrier: Arc<dyn Carrier>,
        remote: SocketAddr,
    ) -> Result<crate::Client, OpenError> {
        let remote = self.remote(&remote.to_string(), (remote, self.deadline()));
        let bound_socket = BoundSocket::polled_over(carrier)?;
        self.task_client(&self.endpoint_parts(false)?, bound_socket, &remote)
            .await
    }

    /// Opens a server on the current tokio runtime.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn bind(self, address: impl Display) -> Result<crate::Server, OpenError> {
        let address = resolve_all_async(&address.to_string()).await?[0];
        let bound_socket = BoundSocket::socket(self.udp.bind(address)?);
        self.task_server(&self.endpoint_parts(true)?, bound_socket)
    }

    /// Opens a server on the current tokio runtime as `count` shards, see
    /// [`Self::bind_shards_blocking`]. A task drives each, so the runtime's threads work on several
    /// at once.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn bind_shards(
        self,
        address: impl Display,
        count: u16,
    ) -> Result<Shards<crate::Server>, OpenError> {
        let address = resolve_all_async(&address.to_string()).await?[0];
        let sockets = BoundSocket::bound(&self.udp, address, count)?;
        let endpoint_parts = self.endpoint_parts(true)?;
        let servers = sockets.into_iter();
        let servers = servers.map(|bound_socket| self.task_server(&endpoint_parts, bound_socket));
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a client on the current tokio runtime, and waits until its session is live. Several
    /// addresses of a host are tried as by [`Self::connect_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn connect(self, address: impl Display) -> Result<crate::Client, OpenError> {
        let clients = self.connect_shards(address, 1).await?;
        Ok(clients.into_iter().next().expect("one shard"))
    }

    /// Opens a client on the current tokio runtime as `count` shards, see
    /// [`Self::connect_shards_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn connect_shards(
        self,
        address: impl Display,
        count: u16,
    ) -> Result<Shards<crate::Client>, OpenError> {
        let host = address.to_string();
        let addresses = resolve_all_async(&host).await?;
        self.connect_any(&host, addresses, count).await
    }

    #[cfg(feature = "tokio")]
    async fn connect_any(
        self,
        host: &str,
        addresses: Vec<SocketAddr>,
        count: u16,
    ) -> Result<Shards<crate::Client>, OpenError> {
        let endpoint_parts = self.endpoint_parts(false)?;
        let mut candidates = Candidates::new(addresses, self.deadline());
        loop {
            let remote = self.remote(host, candidates.take());
            match self.task_clients(&endpoint_parts, &remote, count).await {
                Err(error) => candidates.failed(error)?,
                Ok(clients) => return Ok(Shards::new(clients)),
            }
        }
    }

    fn deadline(&self) -> Duration {
        self.connect_deadline.unwrap_or(CONNECT_DEADLINE)
    }

    /// The server at an address of a host, to be reached within this time.
    fn remote(&self, host: &str, (address, within): (SocketAddr, Duration)) -> Remote {
        let host = || host_of(host).to_owned();
        Remote {
            address,
            within,
            name: self.server_name.clone().unwrap_or_else(host),
        }
    }

    fn blocking_server(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
    ) -> Result<blocking::Server, OpenError> {
        let guard = self.server(endpoint_parts, bound_socket, DriveBy::Threads)?;
        Ok(blocking::Server::new(guard))
    }

    fn blocking_clients(
        &self,
        endpoint_parts: &EndpointParts,
        remote: &Remote,
        count: u16,
    ) -> Result<Vec<blocking::Client>, OpenError> {
        let sockets = BoundSocket::connected(&self.udp, remote.address, count)?;
        let mut time = TimeLeft::of(remote.within);
        let clients = sockets.into_iter();
        let clients = clients.map(|bound_socket| {
            self.blocking_client(endpoint_parts, bound_socket, &remote.within(time.left()))
        });
        clients.collect()
    }

    fn blocking_client(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
        remote: &Remote,
    ) -> Result<blocking::Client, OpenError> {
        let guard = self.client(endpoint_parts, bound_socket, remote, DriveBy::Threads)?;
        let client = blocking::Client::new(guard, remote.address);
        client.connect()?;
        Ok(client)
    }

    #[cfg(feature = "tokio")]
    fn task_server(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
    ) -> Result<crate::Server, OpenError> {
        let carrier = Arc::clone(&bound_socket.carrier);
        let by = self.driver_of_tasks()?;
        let guard = self.server(endpoint_parts, bound_socket, by)?;
        spawn(&guard, carrier, by)?;
        Ok(crate::Server::new(guard))
    }

    #[cfg(feature = "tokio")]
    async fn task_clients(
        &self,
        endpoint_parts: &EndpointParts,
        remote: &Remote,
        count: u16,
    ) -> Result<Vec<crate::Client>, OpenError> {
        let sockets = BoundSocket::connected(&self.udp, remote.address, count)?;
        let mut time = TimeLeft::of(remote.within);
        let mut clients = Vec::with_capacity(sockets.len());
        for bound_socket in sockets {
            let remote = remote.within(time.left());
            clients.push(
                self.task_client(endpoint_parts, bound_socket, &remote)
                    .await?,
            );
        }
        Ok(clients)
    }

    #[cfg(feature = "tokio")]
    async fn task_client(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
        remote: &Remote,
    ) -> Result<crate::Client, OpenError> {
        let carrier = Arc::clone(&bound_socket.carrier);
        let by = self.driver_of_tasks()?;
        let guard = self.client(endpoint_parts, bound_socket, remote, by)?;
        spawn(&guard, carrier, by)?;
        let client = crate::Client::new(guard, remote.address);
        client.connect().await?;
        Ok(client)
    }

    /// The driver of an endpoint that is opened on this runtime.
    #[cfg(feature = "tokio")]
    fn driver_of_tasks(&self) -> Result<DriveBy, OpenError> {
        if self.has_io_thread && !cfg!(target_os = "linux") {
            return Err(OpenError::Options("`io_thread` needs Linux"));
        }
        let workers = crate::asynchronous::workers(&tokio::runtime::Handle::current());
        Ok(match workers {
            _ if self.has_io_thread => DriveBy::IoThread,
            ..=1 => DriveBy::OneWorker,
            _ => DriveBy::Workers,
        })
    }

    fn server(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
        by: DriveBy,
    ) -> Result<Arc<Guard>, OpenError> {
        let address = bound_socket.carrier.local_address();
        let span = match bound_socket.shard.count() {
            1 => tracing::info_span!("server", %address),
            _ => tracing::info_span!("server", %address, shard = bound_socket.shard.number()),
        };
        self.open(endpoint_parts, bound_socket, by, (span, None))
    }

    fn client(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
        remote: &Remote,
        by: DriveBy,
    ) -> Result<Arc<Guard>, OpenError> {
        let server = remote.address;
        let span = match bound_socket.shard.count() {
            1 => tracing::info_span!("client", %server),
            _ => tracing::info_span!("client", %server, shard = bound_socket.shard.number()),
        };
        let deadlines = (remote.within, self.deadline());
        let reconnect = Reconnect::new(Path::to(server), remote.name.clone(), deadlines);
        self.open(endpoint_parts, bound_socket, by, (span, Some(reconnect)))
    }

    fn open(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
        by: DriveBy,
        (span, reconnect): (tracing::Span, Option<Reconnect>),
    ) -> Result<Arc<Guard>, OpenError> {
        let (carrier, udp) = (&*bound_socket.carrier, bound_socket.udp.as_deref());
        let mut opened = endpoint_parts.endpoint(bound_socket.shard, carrier, udp);
        if reconnect.is_some() {
            // Most clients never accept: servers should not fill their memory.
            opened.endpoint.set_untaken_max(UNACCEPTED_MAX);
        }
        let carrier = Arc::clone(&bound_socket.carrier);
        let mut state = EndpointState::new(opened, carrier, bound_socket.udp);
        state.reconnect = reconnect;
        state.state_lock.clone_from(&endpoint_parts.state_lock);
        let drive = Drive {
            clock: endpoint_parts.clock,
            by,
            spin: self.spin.unwrap_or(SPIN),
            span,
        };
        Driver::open(state, bound_socket.carrier, drive)
    }
}

/// A client's server.
#[derive(Clone)]
struct Remote {
    address: SocketAddr,
    /// The time within which the first session with it is to be live.
    within: Duration,
    /// The name that its certificate must prove.
    name: String,
}

impl Remote {
    /// The same, in this time.
    fn within(&self, within: Duration) -> Self {
        Self {
            within,
            ..self.clone()
        }
    }
}

#[cfg(feature = "tokio")]
fn spawn(guard: &Guard, carrier: Arc<dyn Carrier>, by: DriveBy) -> Result<(), OpenError> {
    let (what, outcome) = match by {
        #[cfg(target_os = "linux")]
        DriveBy::IoThread => (
            "starting the endpoint's thread",
            crate::io_thread::spawn_io_thread(guard, carrier),
        ),
        _ => (
            "registering the carrier with tokio",
            crate::asynchronous::spawn_driver(guard, carrier),
        ),
    };
    outcome.map_err(|reason| OpenError::System { what, reason })
}

/// The memory in which messages of a server wait at a client that has never called `accept`.
const UNACCEPTED_MAX: usize = 64 << 10;
/// Default of [`Builder::connect_deadline`] (SPEC §10).
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Default of [`Builder::spin`]: the time that the peer takes for a call of 64 KB. A longer bound
/// gains nothing (docs/lab/2026-11-23.md).
const SPIN: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests;
