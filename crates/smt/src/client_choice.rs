// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an endpoint connects to servers.

use std::time::Duration;

use crate::builder::Address;
use crate::error::OpenError;
use crate::operation::CallDefaults;
use crate::servers::ServerChoice;

/// The choices for all servers of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct ClientChoice {
    /// The name that every server must prove, if one was chosen.
    pub(crate) server_name: Option<String>,
    pub(crate) connect_deadline: Duration,
    pub(crate) defaults: CallDefaults,
}

impl ClientChoice {
    /// The choices for several servers that serve alike.
    ///
    /// # Errors
    /// An address can be that of no host, or there is none.
    pub(crate) fn servers<A: Into<Address>>(
        &self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Vec<ServerChoice>, OpenError> {
        let addresses = addresses.into_iter();
        let choices = addresses.map(|address| self.server(address.into()));
        let choices: Vec<_> = choices.collect::<Result<_, _>>()?;
        match choices.is_empty() {
            true => Err(OpenError::Options("a pool needs at least one server")),
            false => Ok(choices),
        }
    }

    /// The choices for one server.
    ///
    /// # Errors
    /// The address can be that of no host.
    pub(crate) fn server(&self, address: Address) -> Result<ServerChoice, OpenError> {
        address.check_to_connect()?;
        Ok(ServerChoice {
            server_name: address.name_to_prove(self.server_name.as_deref()),
            deadline: self.connect_deadline,
            address,
        })
    }
}
