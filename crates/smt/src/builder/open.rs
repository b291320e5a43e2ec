// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From choices to an open endpoint, whatever its role and its driver.

mod client;
mod endpoint;
mod polled;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::Carrier;

use super::Builder;
use super::bound_socket::BoundSocket;
use super::endpoint_parts::EndpointParts;
use super::role::Role;
use crate::client_choice::ClientChoice;
use crate::driver::{Drive, DriveBy, Driver, Guard};
use crate::endpoint_state::EndpointState;
use crate::error::OpenError;
#[cfg(feature = "async")]
use crate::runtime::Runtime;

impl<R: Role> Builder<R> {
    /// An endpoint for threads.
    fn open_for_threads(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
    ) -> Result<Arc<Guard>, OpenError> {
        self.open_by(endpoint_parts, bound_socket, DriveBy::Threads)
    }

    /// An endpoint for tasks, and the task that drives it.
    #[cfg(feature = "async")]
    fn open_for_tasks(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
    ) -> Result<Arc<Guard>, OpenError> {
        let carrier = Arc::clone(&bound_socket.carrier);
        let runtime = self.runtime_of_tasks()?;
        let by = self.driver_of_tasks(&*runtime)?;
        let guard = self.open_by(endpoint_parts, bound_socket, by)?;
        spawn(&guard, carrier, by, &runtime)?;
        Ok(guard)
    }

    /// The runtime that was named, or that of tokio in which this is.
    #[cfg(feature = "async")]
    fn runtime_of_tasks(&self) -> Result<Arc<dyn Runtime>, OpenError> {
        if let Some(runtime) = &self.runtime {
            return Ok(Arc::clone(runtime));
        }
        #[cfg(feature = "tokio")]
        if let Some(runtime) = crate::runtime::TokioRuntime::current() {
            return Ok(runtime);
        }
        Err(OpenError::Options(NO_RUNTIME))
    }

    /// All that opens an endpoint for tasks begins here, and would else do a part of it in vain.
    #[cfg(feature = "async")]
    fn check_runtime(&self) -> Result<(), OpenError> {
        self.runtime_of_tasks().map(drop)
    }

    /// The driver of an endpoint that is opened on this runtime.
    #[cfg(feature = "async")]
    fn driver_of_tasks(&self, runtime: &dyn Runtime) -> Result<DriveBy, OpenError> {
        if self.has_io_thread && !cfg!(target_os = "linux") {
            return Err(OpenError::Options("`io_thread` needs Linux"));
        }
        Ok(match runtime.workers() {
            _ if self.has_io_thread => DriveBy::IoThread,
            ..=1 => DriveBy::OneWorker,
            _ => DriveBy::Workers,
        })
    }

    fn open_by(
        &self,
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
        by: DriveBy,
    ) -> Result<Arc<Guard>, OpenError> {
        let buffer_bytes = bound_socket.receive_buffer_bytes;
        let shard = bound_socket.shard;
        let mut opened = endpoint_parts.endpoint(shard, &*bound_socket.carrier, buffer_bytes);
        if !R::ACCEPTS {
            // Most clients never accept: servers should not fill their memory.
            opened.endpoint.set_untaken_max(UNACCEPTED_MAX);
        }
        let drive = Drive {
            clock: endpoint_parts.clock,
            by,
            spin: self.spin,
            span: span::<R>(&bound_socket),
            credentials: endpoint_parts.credentials.clone(),
            #[cfg(feature = "async")]
            runtime: match by {
                DriveBy::Threads => None,
                _ => self.runtime_of_tasks().ok(),
            },
        };
        let carrier = Arc::clone(&bound_socket.carrier);
        let mut state = EndpointState::new(opened, carrier, bound_socket.udp);
        state.state_lock.clone_from(&endpoint_parts.state_lock);
        state.authorization.clone_from(&self.authorization);
        let rule = &self.message_authorization;
        state.message_authorization.clone_from(rule);
        state.distrusted = self.distrusted.unwrap_or_default();
        Driver::open(state, bound_socket.carrier, drive)
    }

    fn client_choice(&self) -> ClientChoice {
        ClientChoice {
            server_name: self.role.server_name().map(str::to_owned),
            connect_deadline: self.connect_deadline,
            defaults: self.call_defaults,
        }
    }
}

/// The span in which an endpoint logs, named by its role.
fn span<R: Role>(bound_socket: &BoundSocket) -> tracing::Span {
    let address: SocketAddr = bound_socket.carrier.local_address();
    let shard = bound_socket.shard;
    let number = (shard.count() > 1).then(|| shard.number());
    match R::ACCEPTS {
        true => tracing::info_span!("server", %address, shard = number),
        false => tracing::info_span!("client", %address, shard = number),
    }
}

#[cfg(feature = "async")]
fn spawn(
    guard: &Guard,
    carrier: Arc<dyn Carrier>,
    by: DriveBy,
    runtime: &Arc<dyn Runtime>,
) -> Result<(), OpenError> {
    match by {
        #[cfg(target_os = "linux")]
        DriveBy::IoThread => {
            let started = crate::io_thread::spawn_io_thread(guard, carrier);
            started.map_err(|reason| OpenError::System {
                what: "starting the endpoint's thread",
                reason,
            })
        }
        _ => crate::asynchronous::spawn_driver(guard, carrier, runtime),
    }
}

/// Resolves an address in a thread, since that may block.
#[cfg(feature = "async")]
async fn to_bind(address: super::Address) -> Result<SocketAddr, OpenError> {
    match address.known() {
        [known, ..] => Ok(*known),
        [] => crate::resolver::resolve_to_bind(address).await,
    }
}

#[cfg(all(feature = "async", feature = "tokio"))]
const NO_RUNTIME: &str = "no tokio runtime is running here: open the endpoint within one, or name a runtime by `runtime`, or use `bind_blocking`, `connect_blocking`";
#[cfg(all(feature = "async", not(feature = "tokio")))]
const NO_RUNTIME: &str =
    "there is no runtime: name one by `runtime`, or use `bind_blocking`, `connect_blocking`";

/// The memory in which messages of a server wait at a client that has never called `accept`.
const UNACCEPTED_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests;
