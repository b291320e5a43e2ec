// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The carrier of an endpoint, and the number of its shard.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use smt_carrier::Carrier;
#[cfg(target_os = "linux")]
use smt_io::{NativeCarrier, XdpCarrier};
use smt_io::{ThreadedCarrier, UdpCarrier};
use smt_wire::Shard;

use super::Address;
use super::carrier_choice::CarrierChoice;
use crate::error::OpenError;

/// A place for one endpoint.
pub(crate) struct BoundSocket {
    pub(crate) shard: Shard,
    pub(crate) carrier: Arc<dyn Carrier>,
    pub(crate) udp: Option<Arc<UdpCarrier>>,
    /// Bytes that the carrier can hold until they are received, if it is known.
    pub(crate) receive_buffer_bytes: Option<usize>,
}

impl BoundSocket {
    /// The only one, at this address, of an endpoint that connects to servers.
    pub(super) fn at(choice: &CarrierChoice, address: SocketAddr) -> Result<Self, OpenError> {
        choice.open(address)
    }

    /// The only one, at an address and port that the system chooses, for this server.
    pub(super) fn unbound(choice: &CarrierChoice, server: &Address) -> Result<Self, OpenError> {
        let [v4, any] = [SocketAddr::from(([0; 4], 0)), SocketAddr::from(([0_u16; 8], 0))];
        if let Some(local) = choice.local_for(server)? {
            return Self::at(choice, local);
        }
        let known = server.known();
        if !known.is_empty() && known.iter().all(SocketAddr::is_ipv4) {
            return Self::at(choice, v4);
        }
        // A host without IPv6 has no such socket.
        Self::at(choice, any).or_else(|_| Self::at(choice, v4))
    }

    /// The only one, over a socket that is bound.
    pub(super) fn adopted(choice: &CarrierChoice, socket: UdpSocket) -> Result<Self, OpenError> {
        let udp = choice.of_adopted()?.adopt(socket)?;
        Ok(Self::of_udp(Shard::default(), Arc::new(udp)))
    }

    /// The only one, over any carrier.
    pub(super) fn over(carrier: Arc<dyn Carrier>) -> Self {
        Self { shard: Shard::default(), carrier, udp: None, receive_buffer_bytes: None }
    }

    /// The only one, over any carrier, and with descriptors that tell when there is something to
    /// receive. A carrier without any has a thread that waits for it.
    pub(crate) fn polled_over(carrier: Arc<dyn Carrier>) -> Result<Self, OpenError> {
        if !carrier.readiness().is_none() {
            return Ok(Self::over(carrier));
        }
        let threaded = ThreadedCarrier::new(carrier).map_err(|reason| OpenError::System {
            what: "starting the carrier's thread",
            reason,
        })?;
        Ok(Self::over(Arc::new(threaded)))
    }

    /// A shard over UDP.
    pub(super) fn of_udp(shard: Shard, udp: Arc<UdpCarrier>) -> Self {
        Self {
            shard,
            carrier: Arc::clone(&udp) as Arc<dyn Carrier>,
            receive_buffer_bytes: Some(udp.receive_buffer_bytes()),
            udp: Some(udp),
        }
    }

    /// A shard over an IP protocol of SMT's own.
    #[cfg(target_os = "linux")]
    pub(super) fn of_native(shard: Shard, native: NativeCarrier) -> Self {
        Self {
            shard,
            receive_buffer_bytes: Some(native.receive_buffer_bytes()),
            carrier: Arc::new(native),
            udp: None,
        }
    }

    /// The only one, over an IP protocol of SMT's own, past the kernel's IP.
    #[cfg(target_os = "linux")]
    pub(super) fn of_xdp(xdp: XdpCarrier) -> Self {
        Self { receive_buffer_bytes: Some(xdp.receive_buffer_bytes()), ..Self::over(Arc::new(xdp)) }
    }

    /// Those of a server's shards, which share an address.
    pub(crate) fn bound(
        choice: &CarrierChoice,
        address: SocketAddr,
        count: u16,
    ) -> Result<Vec<Self>, OpenError> {
        check(count)?;
        choice.open_shards(address, count)
    }

    /// Those of a client's shards. Each has a socket of its own: the kernel sorts by port.
    pub(super) fn unbound_shards(
        choice: &CarrierChoice,
        server: &Address,
        count: u16,
    ) -> Result<Vec<Self>, OpenError> {
        check(count)?;
        let sockets = (0..count).map(|number| {
            let socket = Self::unbound(choice, server)?;
            Ok(Self { shard: Shard::new(number, count), ..socket })
        });
        sockets.collect()
    }
}

fn check(count: u16) -> Result<(), OpenError> {
    if Shard::is_count(count) {
        return Ok(());
    }
    Err(OpenError::Options("the number of shards must be a power of two, at most 256"))
}
