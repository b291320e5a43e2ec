// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens clients.

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::Carrier;

use crate::blocking;
use crate::builder::bound_socket::BoundSocket;
use crate::builder::endpoint_parts::EndpointParts;
use crate::builder::role::ClientRole;
use crate::builder::{Address, Builder};
use crate::driver::Guard;
use crate::error::OpenError;
use crate::server_handle::ServerHandle;
use crate::shards::Shards;

impl<R: ClientRole> Builder<R> {
    /// Opens a client for threads, and waits until its session is live. If a host has several
    /// addresses, the next one is tried when the one before fails, or has not answered within 100
    /// ms; the first session wins (RFC 8305).
    ///
    /// # Errors
    /// See [`OpenError`]. If several addresses failed, the error is the one that says most of the
    /// server.
    pub fn connect_blocking(
        self,
        server: impl Into<Address>,
    ) -> Result<blocking::Client, OpenError> {
        let clients = self.connect_shards_blocking(server, 1)?;
        Ok(clients.into_only())
    }

    /// Opens a client for threads, and sends nothing yet: the first call connects.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_lazy_blocking(
        self,
        server: impl Into<Address>,
    ) -> Result<blocking::Client, OpenError> {
        let server = server.into();
        let parts = self.client_parts(&server)?;
        let bound_socket = BoundSocket::unbound(&self.carrier, &server)?;
        self.blocking_client(&parts, bound_socket, server)
    }

    /// Opens a client for threads as `count` shards, a power of two, each with a socket and a
    /// session of its own, and waits until all are live. If the client has as many shards as the
    /// server, each reaches one of the server's.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_shards_blocking(
        self,
        server: impl Into<Address>,
        count: u16,
    ) -> Result<Shards<blocking::Client>, OpenError> {
        let server = server.into();
        let parts = self.client_parts(&server)?;
        let sockets = BoundSocket::unbound_shards(&self.carrier, &server, count)?;
        let clients = sockets.into_iter().map(|bound_socket| {
            let client = self.blocking_client(&parts, bound_socket, server.clone())?;
            client.connect()?;
            Ok(client)
        });
        clients.collect::<Result<_, _>>().map(Shards::new)
    }

    /// Opens a client for threads over any carrier, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_over_blocking(
        self,
        carrier: Arc<dyn Carrier>,
        server: SocketAddr,
    ) -> Result<blocking::Client, OpenError> {
        let parts = self.endpoint_parts()?;
        let client = self.blocking_client(&parts, BoundSocket::over(carrier), server.into())?;
        client.connect()?;
        Ok(client)
    }

    /// Opens a client for tasks, and waits until its session is live. Several
    /// addresses of a host are tried as by [`Self::connect_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub async fn connect(self, server: impl Into<Address>) -> Result<crate::Client, OpenError> {
        let clients = self.connect_shards(server, 1).await?;
        Ok(clients.into_only())
    }

    /// Opens a client for tasks, and sends nothing yet: the first call connects.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub fn connect_lazy(self, server: impl Into<Address>) -> Result<crate::Client, OpenError> {
        self.check_runtime()?;
        let server = server.into();
        let parts = self.client_parts(&server)?;
        let bound_socket = BoundSocket::unbound(&self.carrier, &server)?;
        self.task_client(&parts, bound_socket, server)
    }

    /// Opens a client for tasks as `count` shards, see
    /// [`Self::connect_shards_blocking`].
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub async fn connect_shards(
        self,
        server: impl Into<Address>,
        count: u16,
    ) -> Result<Shards<crate::Client>, OpenError> {
        self.check_runtime()?;
        let server = server.into();
        let parts = self.client_parts(&server)?;
        let mut clients = Vec::with_capacity(usize::from(count));
        for bound_socket in BoundSocket::unbound_shards(&self.carrier, &server, count)? {
            let client = self.task_client(&parts, bound_socket, server.clone())?;
            client.connect().await?;
            clients.push(client);
        }
        Ok(Shards::new(clients))
    }

    /// Opens a client for tasks over any carrier, as
    /// [`bind_over`](Builder::bind_over) does, and waits until its session is live.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub async fn connect_over(
        self,
        carrier: Arc<dyn Carrier>,
        server: SocketAddr,
    ) -> Result<crate::Client, OpenError> {
        self.check_runtime()?;
        let parts = self.endpoint_parts()?;
        let bound_socket = BoundSocket::polled_over(carrier)?;
        let client = self.task_client(&parts, bound_socket, server.into())?;
        client.connect().await?;
        Ok(client)
    }

    /// The parts of the client of a server, whose address is one at least.
    fn client_parts(&self, server: &Address) -> Result<EndpointParts, OpenError> {
        server.check_to_connect()?;
        self.endpoint_parts()
    }

    fn blocking_client(
        &self,
        parts: &EndpointParts,
        bound_socket: BoundSocket,
        server: Address,
    ) -> Result<blocking::Client, OpenError> {
        let guard = self.open_for_threads(parts, bound_socket)?;
        let server = self.server_of(guard, server)?;
        Ok(blocking::Client::new(server, self.call_defaults))
    }

    #[cfg(feature = "async")]
    fn task_client(
        &self,
        parts: &EndpointParts,
        bound_socket: BoundSocket,
        server: Address,
    ) -> Result<crate::Client, OpenError> {
        let guard = self.open_for_tasks(parts, bound_socket)?;
        let server = self.server_of(guard, server)?;
        Ok(crate::Client::new(server, self.call_defaults))
    }

    /// The only server of an endpoint.
    fn server_of(
        &self,
        guard: Arc<Guard>,
        server: Address,
    ) -> Result<Arc<ServerHandle>, OpenError> {
        let choice = self.client_choice().server(server)?;
        Ok(ServerHandle::only(guard, choice))
    }
}
