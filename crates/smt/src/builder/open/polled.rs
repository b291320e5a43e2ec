// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens endpoints for foreign event loops.
#![cfg(target_os = "linux")]

use std::sync::Arc;

use smt_carrier::Carrier;

use crate::builder::bound_socket::BoundSocket;
use crate::builder::endpoint_parts::EndpointParts;
use crate::builder::role::{ClientRole, Role, ServerRole};
use crate::builder::{Address, Builder};
use crate::error::OpenError;
use crate::polled::Endpoint;
use crate::shards::Shards;

impl<R: ServerRole> Builder<R> {
    /// Opens a server for a foreign event loop.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_polled(self, address: impl Into<Address>) -> Result<Endpoint, OpenError> {
        Ok(self.bind_shards_polled(address, 1)?.into_only())
    }

    /// Opens a server for foreign event loops as `count` shards, see
    /// [`Self::bind_shards_blocking`]: one for each loop.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_shards_polled(
        self,
        address: impl Into<Address>,
        count: u16,
    ) -> Result<Shards<Endpoint>, OpenError> {
        let address = address.into().to_bind()?;
        let sockets = BoundSocket::bound(&self.carrier, address, count)?;
        shards(&self.polled_parts()?, sockets)
    }

    /// Opens a server for a foreign event loop over any carrier. A carrier that has no descriptor
    /// to poll ([`Carrier::readiness`]) has a thread that waits for it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_over_polled(self, carrier: Arc<dyn Carrier>) -> Result<Endpoint, OpenError> {
        self.over_polled(carrier)
    }
}

impl<R: ClientRole> Builder<R> {
    /// Opens an endpoint for a foreign event loop at this address, which connects to any number of
    /// servers ([`Endpoint::connect`]). Port 0 lets the system choose.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_polled(self, address: impl Into<Address>) -> Result<Endpoint, OpenError> {
        let bound_socket = BoundSocket::at(&self.carrier, address.into().to_bind()?)?;
        Endpoint::new(&self.polled_parts()?, bound_socket)
    }

    /// Opens endpoints for foreign event loops as `count` shards of a client, each with a socket of
    /// its own for servers of the same family of addresses as `server`; [`Endpoint::connect`]
    /// begins the session of each.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_shards_polled(
        self,
        server: impl Into<Address>,
        count: u16,
    ) -> Result<Shards<Endpoint>, OpenError> {
        let sockets = BoundSocket::unbound_shards(&self.carrier, &server.into(), count)?;
        shards(&self.polled_parts()?, sockets)
    }

    /// Opens an endpoint for a foreign event loop over any carrier, as
    /// [`bind_over_polled`](Builder::bind_over_polled) does; [`Endpoint::connect`] begins a
    /// session.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_over_polled(self, carrier: Arc<dyn Carrier>) -> Result<Endpoint, OpenError> {
        self.over_polled(carrier)
    }
}

impl<R: Role> Builder<R> {
    /// The parts of endpoints whose owner decides which clients are served.
    fn polled_parts(&self) -> Result<EndpointParts, OpenError> {
        if self.authorization.is_some() {
            return Err(OpenError::Options(
                "`authorize` is not for polled endpoints: close sessions after `Event::Accepted`",
            ));
        }
        if self.message_authorization.is_some() {
            return Err(OpenError::Options(
                "`authorize_messages` is not for polled endpoints: look at the head of each request",
            ));
        }
        if self.distrusted.is_some() {
            return Err(OpenError::Options(
                "`distrusted` is not for polled endpoints: judge peers by `check_peer` when the trust was replaced",
            ));
        }
        self.endpoint_parts()
    }

    fn over_polled(self, carrier: Arc<dyn Carrier>) -> Result<Endpoint, OpenError> {
        let bound_socket = BoundSocket::polled_over(carrier)?;
        Endpoint::new(&self.polled_parts()?, bound_socket)
    }
}

fn shards(
    endpoint_parts: &EndpointParts,
    sockets: Vec<BoundSocket>,
) -> Result<Shards<Endpoint>, OpenError> {
    let endpoints = sockets.into_iter();
    let endpoints = endpoints.map(|bound_socket| Endpoint::new(endpoint_parts, bound_socket));
    endpoints.collect::<Result<_, _>>().map(Shards::new)
}
