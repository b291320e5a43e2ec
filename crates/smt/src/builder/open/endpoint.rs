// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens endpoints with many peers.

use std::sync::Arc;

use smt_carrier::Carrier;

use crate::blocking;
use crate::builder::bound_socket::BoundSocket;
use crate::builder::role::ClientRole;
use crate::builder::{Address, Builder};
use crate::error::OpenError;

impl<R: ClientRole> Builder<R> {
    /// Opens an endpoint for threads at this address, which connects to any number of servers by
    /// one socket. Port 0 lets the system choose.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_blocking(
        self,
        address: impl Into<Address>,
    ) -> Result<blocking::Endpoint, OpenError> {
        let parts = self.endpoint_parts()?;
        let bound_socket = BoundSocket::at(&self.carrier, address.into().to_bind()?)?;
        let guard = self.open_for_threads(&parts, bound_socket)?;
        Ok(blocking::Endpoint::new(guard, self.client_choice()))
    }

    /// Opens an endpoint for threads over any carrier.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_over_blocking(
        self,
        carrier: Arc<dyn Carrier>,
    ) -> Result<blocking::Endpoint, OpenError> {
        let parts = self.endpoint_parts()?;
        let guard = self.open_for_threads(&parts, BoundSocket::over(carrier))?;
        Ok(blocking::Endpoint::new(guard, self.client_choice()))
    }

    /// Opens an endpoint for tasks at this address, which connects to any number
    /// of servers by one socket. Port 0 lets the system choose.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub async fn open(self, address: impl Into<Address>) -> Result<crate::Endpoint, OpenError> {
        self.check_runtime()?;
        let address = super::to_bind(address.into()).await?;
        let parts = self.endpoint_parts()?;
        let guard = self.open_for_tasks(&parts, BoundSocket::at(&self.carrier, address)?)?;
        Ok(crate::Endpoint::new(guard, self.client_choice()))
    }

    /// Opens an endpoint for tasks over any carrier.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[cfg(feature = "async")]
    pub fn open_over(self, carrier: Arc<dyn Carrier>) -> Result<crate::Endpoint, OpenError> {
        self.check_runtime()?;
        let parts = self.endpoint_parts()?;
        let guard = self.open_for_tasks(&parts, BoundSocket::polled_over(carrier)?)?;
        Ok(crate::Endpoint::new(guard, self.client_choice()))
    }
}
