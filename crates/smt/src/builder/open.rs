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
use super::address::resolve_async;
use super::address::{host_of, resolve};
use super::basis::Basis;
use super::seat::Seat;
use crate::blocking;
use crate::core::Core;
use crate::error::OpenError;
use crate::hub::{Drive, Guard, Hub};
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

    /// Opens a client for threads, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_blocking(self, address: impl Display) -> Result<blocking::Client, OpenError> {
        let (remote, name) = self.remote(&address.to_string(), resolve(&address.to_string())?);
        let seat = Seat::socket(self.udp.connect(remote)?);
        self.blocking_client(&self.basis(false)?, seat, (remote, name))
    }

    /// Opens a client for threads as `count` shards, a power of two, each with a socket and a session of its own, and
    /// waits until all are live. As many shards as the server has reach one each.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_shards_blocking(
        self,
        address: impl Display,
        count: u16,
    ) -> Result<Shards<blocking::Client>, OpenError> {
        let (remote, name) = self.remote(&address.to_string(), resolve(&address.to_string())?);
        let seats = Seat::connected(&self.udp, remote, count)?;
        let basis = self.basis(false)?;
        let clients = seats.into_iter();
        let clients =
            clients.map(|seat| self.blocking_client(&basis, seat, (remote, name.clone())));
        clients.collect::<Result<_, _>>().map(Shards::new)
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
        let target = self.remote(&remote.to_string(), remote);
        self.blocking_client(&self.basis(false)?, Seat::over(carrier), target)
    }

    /// Opens a server on the current tokio runtime.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn bind(self, address: impl Display) -> Result<crate::Server, OpenError> {
        let address = resolve_async(address.to_string()).await?;
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
        let address = resolve_async(address.to_string()).await?;
        let seats = Seat::bound(&self.udp, address, count)?;
        let basis = self.basis(true)?;
        let servers = seats.into_iter();
        let servers = servers.map(|seat| self.task_server(&basis, seat));
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a client on the current tokio runtime, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "tokio")]
    pub async fn connect(self, address: impl Display) -> Result<crate::Client, OpenError> {
        let text = address.to_string();
        let (remote, name) = self.remote(&text, resolve_async(text.clone()).await?);
        let seat = Seat::socket(self.udp.connect(remote)?);
        self.task_client(&self.basis(false)?, seat, (remote, name))
            .await
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
        let text = address.to_string();
        let (remote, name) = self.remote(&text, resolve_async(text.clone()).await?);
        let seats = Seat::connected(&self.udp, remote, count)?;
        let basis = self.basis(false)?;
        let mut clients = Vec::with_capacity(seats.len());
        for seat in seats {
            let target = (remote, name.clone());
            clients.push(self.task_client(&basis, seat, target).await?);
        }
        Ok(Shards::new(clients))
    }

    /// The address of a client's server, and the name it must prove.
    fn remote(&self, text: &str, address: SocketAddr) -> (SocketAddr, String) {
        let host = || host_of(text).to_owned();
        (address, self.server_name.clone().unwrap_or_else(host))
    }

    fn blocking_server(&self, basis: &Basis, seat: Seat) -> Result<blocking::Server, OpenError> {
        let guard = self.server(basis, seat, false)?;
        Ok(blocking::Server::new(guard))
    }

    fn blocking_client(
        &self,
        basis: &Basis,
        seat: Seat,
        target: (SocketAddr, String),
    ) -> Result<blocking::Client, OpenError> {
        let remote = target.0;
        let client = blocking::Client::new(self.client(basis, seat, target, false)?, remote);
        client.connect()?;
        Ok(client)
    }

    #[cfg(feature = "tokio")]
    fn task_server(&self, basis: &Basis, seat: Seat) -> Result<crate::Server, OpenError> {
        let udp = seat.udp.clone();
        let guard = self.server(basis, seat, true)?;
        spawn(&guard, udp.as_deref())?;
        Ok(crate::Server::new(guard))
    }

    #[cfg(feature = "tokio")]
    async fn task_client(
        &self,
        basis: &Basis,
        seat: Seat,
        target: (SocketAddr, String),
    ) -> Result<crate::Client, OpenError> {
        let (remote, udp) = (target.0, seat.udp.clone());
        let guard = self.client(basis, seat, target, true)?;
        spawn(&guard, udp.as_deref())?;
        let client = crate::Client::new(guard, remote);
        client.connect().await?;
        Ok(client)
    }

    fn server(&self, basis: &Basis, seat: Seat, is_task: bool) -> Result<Arc<Guard>, OpenError> {
        let address = seat.carrier.local_address();
        let span = match seat.shard.count() {
            1 => tracing::info_span!("server", %address),
            _ => tracing::info_span!("server", %address, shard = seat.shard.number()),
        };
        self.open(basis, seat, is_task, (span, None))
    }

    fn client(
        &self,
        basis: &Basis,
        seat: Seat,
        (remote, name): (SocketAddr, String),
        is_task: bool,
    ) -> Result<Arc<Guard>, OpenError> {
        let deadline = self.connect_deadline.unwrap_or(CONNECT_DEADLINE);
        let span = match seat.shard.count() {
            1 => tracing::info_span!("client", server = %remote),
            _ => tracing::info_span!("client", server = %remote, shard = seat.shard.number()),
        };
        let target = Target::new(Path::to(remote), name, deadline);
        self.open(basis, seat, is_task, (span, Some(target)))
    }

    fn open(
        &self,
        basis: &Basis,
        seat: Seat,
        is_task: bool,
        (span, target): (tracing::Span, Option<Target>),
    ) -> Result<Arc<Guard>, OpenError> {
        let endpoint = basis.endpoint(seat.shard, seat.udp.as_deref());
        let mut core = Core::new(endpoint, Arc::clone(&seat.carrier), basis.has_dscp);
        core.target = target;
        let drive = Drive {
            clock: basis.clock,
            is_task,
            spin: self.spin.unwrap_or(SPIN),
            span,
        };
        Hub::open(core, seat.carrier, seat.udp, drive)
    }
}

#[cfg(feature = "tokio")]
fn spawn(guard: &Arc<Guard>, udp: Option<&UdpCarrier>) -> Result<(), OpenError> {
    let udp = udp.expect("tasks are driven over sockets");
    crate::asynchronous::spawn_driver(guard, udp).map_err(|reason| OpenError::System {
        what: "registering the socket with tokio",
        reason,
    })
}

/// Default of [`Builder::connect_deadline`] (SPEC §10).
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Default of [`Builder::spin`]: two unloaded round trips of 64 B (docs/PERF.md).
const SPIN: Duration = Duration::from_micros(50);
