// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens servers.

use std::net::UdpSocket;
use std::sync::Arc;

use smt_carrier::Carrier;

use crate::blocking;
use crate::builder::bound_socket::BoundSocket;
use crate::builder::role::ServerRole;
use crate::builder::{Address, Builder};
use crate::error::OpenError;
use crate::shards::Shards;

impl<R: ServerRole> Builder<R> {
    /// Opens a server for threads.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_blocking(self, address: impl Into<Address>) -> Result<blocking::Server, OpenError> {
        let servers = self.bind_shards_blocking(address, 1)?;
        Ok(servers.into_only())
    }

    /// Opens a server for threads as `count` shards, a power of two: endpoints that share an
    /// address and nothing else, so that as many cores work without waiting for each other. All
    /// limits are those of one shard. A client has its sessions with one shard, or with all of them
    /// ([`Self::connect_shards_blocking`](Builder::connect_shards_blocking)).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_shards_blocking(
        self,
        address: impl Into<Address>,
        count: u16,
    ) -> Result<Shards<blocking::Server>, OpenError> {
        let address = address.into().to_bind()?;
        let sockets = BoundSocket::bound(&self.carrier, address, count)?;
        let endpoint_parts = self.endpoint_parts()?;
        let servers = sockets.into_iter().map(|bound_socket| {
            let guard = self.open_for_threads(&endpoint_parts, bound_socket)?;
            Ok(blocking::Server::new(guard))
        });
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a server for threads over a socket that is bound already, as a service manager hands
    /// it over (`LISTEN_FDS`). The socket stays bound while this program is replaced by its next
    /// version, if another process holds it too.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_socket_blocking(self, socket: UdpSocket) -> Result<blocking::Server, OpenError> {
        let bound_socket = BoundSocket::adopted(&self.carrier, socket)?;
        let guard = self.open_for_threads(&self.endpoint_parts()?, bound_socket)?;
        Ok(blocking::Server::new(guard))
    }

    /// Opens a server for threads over any carrier.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_over_blocking(
        self,
        carrier: Arc<dyn Carrier>,
    ) -> Result<blocking::Server, OpenError> {
        let parts = self.endpoint_parts()?;
        let guard = self.open_for_threads(&parts, BoundSocket::over(carrier))?;
        Ok(blocking::Server::new(guard))
    }

    /// Opens a server for tasks.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub async fn bind(self, address: impl Into<Address>) -> Result<crate::Server, OpenError> {
        let servers = self.bind_shards(address, 1).await?;
        Ok(servers.into_only())
    }

    /// Opens a server for tasks as `count` shards, see
    /// [`Self::bind_shards_blocking`]. A task drives each, so the runtime's threads work on several
    /// at once.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub async fn bind_shards(
        self,
        address: impl Into<Address>,
        count: u16,
    ) -> Result<Shards<crate::Server>, OpenError> {
        self.check_runtime()?;
        let address = super::to_bind(address.into()).await?;
        let sockets = BoundSocket::bound(&self.carrier, address, count)?;
        let endpoint_parts = self.endpoint_parts()?;
        let servers = sockets.into_iter().map(|bound_socket| {
            let guard = self.open_for_tasks(&endpoint_parts, bound_socket)?;
            Ok(crate::Server::new(guard))
        });
        servers.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a server for tasks over a socket that is bound already, see
    /// [`Self::bind_socket_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub fn bind_socket(self, socket: UdpSocket) -> Result<crate::Server, OpenError> {
        self.check_runtime()?;
        let bound_socket = BoundSocket::adopted(&self.carrier, socket)?;
        let guard = self.open_for_tasks(&self.endpoint_parts()?, bound_socket)?;
        Ok(crate::Server::new(guard))
    }

    /// Opens a server for tasks over any carrier. A carrier that has no
    /// descriptor to poll ([`Carrier::readiness`]) has a thread that waits for it.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub fn bind_over(self, carrier: Arc<dyn Carrier>) -> Result<crate::Server, OpenError> {
        self.check_runtime()?;
        let bound_socket = BoundSocket::polled_over(carrier)?;
        let guard = self.open_for_tasks(&self.endpoint_parts()?, bound_socket)?;
        Ok(crate::Server::new(guard))
    }
}
