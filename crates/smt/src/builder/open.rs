// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From choices to an open endpoint: the last call of every builder.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Carrier, Path};
use smt_io::UdpCarrier;

use super::Builder;
#[cfg(feature = "tokio")]
use super::address::resolve_async;
use super::address::{host_of, resolve};
use crate::blocking;
use crate::clock::Clock;
use crate::core::Core;
use crate::error::OpenError;
use crate::hub::{Drive, Guard, Hub};
use crate::target::Target;

impl Builder {
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
