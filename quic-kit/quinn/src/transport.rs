// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of a connection and of its socket, which both sides have.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use kit_process::{Doing, Failure, IDLE, StackOptions, Switch, WINDOW_BYTES};
use quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt};

/// quinn's settings.
pub(crate) fn transport(options: &StackOptions) -> Result<Arc<TransportConfig>, Failure> {
    if options.pacing != Switch::Default {
        return Err(Failure::new("quinn's pacing cannot be turned on or off"));
    }
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(Some(idle()))
        .keep_alive_interval(None::<Duration>)
        // All stacks have datagrams of one length, and do not look for a longer one.
        .initial_mtu(options.datagram)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(options.segmentation != Switch::Off);
    Ok(Arc::new(transport))
}

/// An endpoint with a socket at this address.
pub(crate) fn endpoint(
    address: SocketAddr,
    server: Option<ServerConfig>,
) -> Result<Endpoint, Failure> {
    let socket = UdpSocket::bind(address).doing("binding the socket")?;
    kit_process::socket::enlarge(&socket);
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), server, socket, runtime)
        .doing("beginning the endpoint")
}

fn idle() -> quinn::IdleTimeout {
    VarInt::from_u32(IDLE.as_millis() as u32).into()
}
