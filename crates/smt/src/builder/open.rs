// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From choices to an open endpoint: the last call of every builder.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Carrier, Path};
#[cfg(feature = "tokio")]
use smt_io::UdpCarrier;

use super::Builder;
#[cfg(feature = "tokio")]
use super::address::resolve_all_async;
use super::address::{Candidates, TimeLeft, host_of, resolve, resolve_all};
use super::basis::Basis;
use super::seat::Seat;
use crate::blocking;
use crate::core::Core;
use crate::error::OpenError;
use crate::hub::{Drive, DriveBy, Guard, Hub};
use crate::shards::Shards;
use crate::target::Target;

impl Builder {
    /// Opens a server for threads.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_blocking(self, address: impl Display) -> Result<blocking::Server, OpenError> {
        let seat = Seat::socket(self.udp.bind(resolve(&address.to_string())?)?);
        self.blocking_server(&self.basis(true)?, seat)
    }

    /// Opens a server for threads as `count` shards, a power of two: endpoints that share an address and nothing else,
    /// so that as many cores work without waiting for each other. All limits are a shard's. A client has its sessions
    /// with one shard, or with all of them ([`Self::connect_shards_blocking`]).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_shards_blocking(
        self,
        address: impl Display,
        count: u16,
    ) -> Result<Shards<blocking::Server>, OpenError> {
        let seats = Seat::bound(&self.udp, resolve(&address.to_string())?, count)?;
        let basis = self.basis(true)?;
        let servers = seats.into_iter();
        let servers = servers.map(|seat| self.blocking_server(&basis, seat));
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a client for threads, and waits until its session is live. Of a host with several addresses each is tried,
    /// in the system's order, until a server answers at one; what is left of [`Self::connect_deadline`] is shared among
    /// those that are left.
    ///
    /// # Errors
    /// See [`OpenError`]; of several addresses that which says most of the server.
    pub fn connect_blocking(self, address: impl Display) -> Result<blocking::Client, OpenError> {
        let clients = self.connect_shards_blocking(address, 1)?;
        Ok(clients.into_iter().next().expect("one shard"))
    }

    /// Opens a client for threads as `count` shards, a power of two, each with a socket and a session of its own, and
    /// waits until all are live. As many shards as the server has reach one each. Of several addresses as
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

    /// To the first of a host's addresses that answers.
    fn connect_any_blocking(
        self,
        host: &str,
        addresses: Vec<SocketAddr>,
        count: u16,
    ) -> Result<Shards<blocking::Client>, OpenError> {
        let basis = self.basis(false)?;
        let mut candidates = Candidates::new(addresses, self.deadline());
        loop {
            let remote = self.remote(host, candidates.take());
            match self.blocking_clients(&basis, &remote, count) {
                Err(error) => candidates.failed(error)?,
                Ok(clients) => return Ok(Shards::new(clients)),
            }
        }
    }

    /// Opens a server for threads over any carrier.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_over(self, carrier: Arc<dyn Carrier>) -> Result<blocking::Server, OpenError> {
        self.blocking_server(&self.basis(true)?, Seat::over(carrier))
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
        let remote = self.remote(&remote.to_string(), (remote, self.deadline()));
        self.blocking_client(&self.basis(false)?, Seat::over(carrier), &remote)
    }

    /// Opens a server on the current tokio runtime.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn bind(self, address: impl Display) -> Result<crate::Server, OpenError> {
        let address = resolve_all_async(&address.to_string()).await?[0];
        let seat = Seat::socket(self.udp.bind(address)?);
        self.task_server(&self.basis(true)?, seat)
    }

    /// Opens a server on the current tokio runtime as `count` shards, see [`Self::bind_shards_blocking`]. A task drives
    /// each, so the runtime's threads work on several at once.
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
        let seats = Seat::bound(&self.udp, address, count)?;
        let basis = self.basis(true)?;
        let servers = seats.into_iter();
        let servers = servers.map(|seat| self.task_server(&basis, seat));
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a client on the current tokio runtime, and waits until its session is live. Of several addresses as
    /// [`Self::connect_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn connect(self, address: impl Display) -> Result<crate::Client, OpenError> {
        let clients = self.connect_shards(address, 1).await?;
        Ok(clients.into_iter().next().expect("one shard"))
    }

    /// Opens a client on the current tokio runtime as `count` shards, see [`Self::connect_shards_blocking`].
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
        let basis = self.basis(false)?;
        let mut candidates = Candidates::new(addresses, self.deadline());
        loop {
            let remote = self.remote(host, candidates.take());
            match self.task_clients(&basis, &remote, count).await {
                Err(error) => candidates.failed(error)?,
                Ok(clients) => return Ok(Shards::new(clients)),
            }
        }
    }

    fn deadline(&self) -> Duration {
        self.connect_deadline.unwrap_or(CONNECT_DEADLINE)
    }

    /// The server at an address of a host, to be reached within so long.
    fn remote(&self, host: &str, (address, within): (SocketAddr, Duration)) -> Remote {
        let host = || host_of(host).to_owned();
        Remote {
            address,
            within,
            name: self.server_name.clone().unwrap_or_else(host),
        }
    }

    fn blocking_server(&self, basis: &Basis, seat: Seat) -> Result<blocking::Server, OpenError> {
        let guard = self.server(basis, seat, DriveBy::Threads)?;
        Ok(blocking::Server::new(guard))
    }

    fn blocking_clients(
        &self,
        basis: &Basis,
        remote: &Remote,
        count: u16,
    ) -> Result<Vec<blocking::Client>, OpenError> {
        let seats = Seat::connected(&self.udp, remote.address, count)?;
        let mut time = TimeLeft::of(remote.within);
        let clients = seats.into_iter();
        let clients =
            clients.map(|seat| self.blocking_client(basis, seat, &remote.within(time.left())));
        clients.collect()
    }

    fn blocking_client(
        &self,
        basis: &Basis,
        seat: Seat,
        remote: &Remote,
    ) -> Result<blocking::Client, OpenError> {
        let guard = self.client(basis, seat, remote, DriveBy::Threads)?;
        let client = blocking::Client::new(guard, remote.address);
        client.connect()?;
        Ok(client)
    }

    #[cfg(feature = "tokio")]
    fn task_server(&self, basis: &Basis, seat: Seat) -> Result<crate::Server, OpenError> {
        let udp = seat.udp.clone();
        let by = self.driver_of_tasks()?;
        let guard = self.server(basis, seat, by)?;
        spawn(&guard, udp.as_ref(), by)?;
        Ok(crate::Server::new(guard))
    }

    #[cfg(feature = "tokio")]
    async fn task_clients(
        &self,
        basis: &Basis,
        remote: &Remote,
        count: u16,
    ) -> Result<Vec<crate::Client>, OpenError> {
        let seats = Seat::connected(&self.udp, remote.address, count)?;
        let mut time = TimeLeft::of(remote.within);
        let mut clients = Vec::with_capacity(seats.len());
        for seat in seats {
            let remote = remote.within(time.left());
            clients.push(self.task_client(basis, seat, &remote).await?);
        }
        Ok(clients)
    }

    #[cfg(feature = "tokio")]
    async fn task_client(
        &self,
        basis: &Basis,
        seat: Seat,
        remote: &Remote,
    ) -> Result<crate::Client, OpenError> {
        let udp = seat.udp.clone();
        let by = self.driver_of_tasks()?;
        let guard = self.client(basis, seat, remote, by)?;
        spawn(&guard, udp.as_ref(), by)?;
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

    fn server(&self, basis: &Basis, seat: Seat, by: DriveBy) -> Result<Arc<Guard>, OpenError> {
        let address = seat.carrier.local_address();
        let span = match seat.shard.count() {
            1 => tracing::info_span!("server", %address),
            _ => tracing::info_span!("server", %address, shard = seat.shard.number()),
        };
        self.open(basis, seat, by, (span, None))
    }

    fn client(
        &self,
        basis: &Basis,
        seat: Seat,
        remote: &Remote,
        by: DriveBy,
    ) -> Result<Arc<Guard>, OpenError> {
        let server = remote.address;
        let span = match seat.shard.count() {
            1 => tracing::info_span!("client", %server),
            _ => tracing::info_span!("client", %server, shard = seat.shard.number()),
        };
        let deadlines = (remote.within, self.deadline());
        let target = Target::new(Path::to(server), remote.name.clone(), deadlines);
        self.open(basis, seat, by, (span, Some(target)))
    }

    fn open(
        &self,
        basis: &Basis,
        seat: Seat,
        by: DriveBy,
        (span, target): (tracing::Span, Option<Target>),
    ) -> Result<Arc<Guard>, OpenError> {
        let mut endpoint = basis.endpoint(seat.shard, seat.udp.as_deref());
        if target.is_some() {
            // Most clients never accept: servers should not fill their memory.
            endpoint.set_untaken_max(UNACCEPTED_MAX);
        }
        let carrier = Arc::clone(&seat.carrier);
        let mut core = Core::new(endpoint, carrier, seat.udp, basis.has_dscp);
        core.target = target;
        core.state_lock.clone_from(&basis.state_lock);
        let drive = Drive {
            clock: basis.clock,
            by,
            spin: self.spin.unwrap_or(SPIN),
            span,
        };
        Hub::open(core, seat.carrier, drive)
    }
}

/// A client's server.
#[derive(Clone)]
struct Remote {
    address: SocketAddr,
    /// The first session with it is to be live after so long.
    within: Duration,
    /// What its certificate must prove.
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
fn spawn(guard: &Guard, udp: Option<&Arc<UdpCarrier>>, by: DriveBy) -> Result<(), OpenError> {
    let udp = udp.expect("tasks are driven over sockets");
    let (what, outcome) = match by {
        #[cfg(target_os = "linux")]
        DriveBy::IoThread => (
            "starting the endpoint's thread",
            crate::io_thread::spawn_io_thread(guard, udp),
        ),
        _ => (
            "registering the socket with tokio",
            crate::asynchronous::spawn_driver(guard, udp),
        ),
    };
    outcome.map_err(|reason| OpenError::System { what, reason })
}

/// Messages of a server wait in so much memory of a client that has never called `accept`.
const UNACCEPTED_MAX: usize = 64 << 10;
/// Default of [`Builder::connect_deadline`] (SPEC §10).
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Default of [`Builder::spin`]: what the peer takes for a call of 64 KB. Longer gains nothing (docs/PERF.md).
const SPIN: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests;
