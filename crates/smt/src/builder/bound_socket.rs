// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The carrier of an endpoint, and the number of its shard.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use smt_carrier::Carrier;
use smt_io::{ThreadedCarrier, UdpCarrier, UdpOptions};
use smt_wire::Shard;

use super::Address;
use crate::error::OpenError;

/// A place for one endpoint.
pub(crate) struct BoundSocket {
    pub(crate) shard: Shard,
    pub(crate) carrier: Arc<dyn Carrier>,
    pub(crate) udp: Option<Arc<UdpCarrier>>,
}

impl BoundSocket {
    /// The only one, at this address, of an endpoint that connects to servers.
    pub(super) fn at(options: &UdpOptions, address: SocketAddr) -> Result<Self, OpenError> {
        let options = options.clone().unreachable_reports(true);
        Ok(Self::shard_of(Shard::default(), options.bind(address)?))
    }

    /// The only one, at an address and port that the system chooses, for this server.
    pub(super) fn unbound(options: &UdpOptions, server: &Address) -> Result<Self, OpenError> {
        let [v4, any] = [
            SocketAddr::from(([0; 4], 0)),
            SocketAddr::from(([0_u16; 8], 0)),
        ];
        let known = server.known();
        if !known.is_empty() && known.iter().all(SocketAddr::is_ipv4) {
            return Self::at(options, v4);
        }
        // A host without IPv6 has no such socket.
        Self::at(options, any).or_else(|_| Self::at(options, v4))
    }

    /// The only one, over a socket that is bound.
    pub(super) fn adopted(options: &UdpOptions, socket: UdpSocket) -> Result<Self, OpenError> {
        Ok(Self::shard_of(Shard::default(), options.adopt(socket)?))
    }

    /// The only one, over any carrier.
    pub(super) fn over(carrier: Arc<dyn Carrier>) -> Self {
        Self {
            shard: Shard::default(),
            carrier,
            udp: None,
        }
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

    fn shard_of(shard: Shard, udp: UdpCarrier) -> Self {
        let udp = Arc::new(udp);
        Self {
            shard,
            carrier: Arc::clone(&udp) as Arc<dyn Carrier>,
            udp: Some(udp),
        }
    }

    /// Those of a server's shards, which share an address.
    pub(crate) fn bound(
        options: &UdpOptions,
        address: SocketAddr,
        count: u16,
    ) -> Result<Vec<Self>, OpenError> {
        let carriers = bound(options, address, count)?;
        Ok(sockets(carriers))
    }

    /// Those of a client's shards. Each has a socket of its own: the kernel sorts by port.
    pub(super) fn unbound_shards(
        options: &UdpOptions,
        server: &Address,
        count: u16,
    ) -> Result<Vec<Self>, OpenError> {
        check(count)?;
        let sockets = (0..count).map(|number| {
            let socket = Self::unbound(options, server)?;
            Ok(Self {
                shard: Shard::new(number, count),
                ..socket
            })
        });
        sockets.collect()
    }
}

/// The sockets of a server's shards.
fn bound(
    options: &UdpOptions,
    address: SocketAddr,
    count: u16,
) -> Result<Vec<UdpCarrier>, OpenError> {
    check(count)?;
    let carriers = options.bind_shards(address, count)?;
    if carriers.iter().any(|carrier| !carrier.has_shard_selector()) {
        tracing::warn!(%address, "this system does not sort datagrams by shard: the shards do it themselves, which costs more");
    }
    Ok(carriers)
}

fn sockets(carriers: Vec<UdpCarrier>) -> Vec<BoundSocket> {
    let count = carriers.len() as u16;
    let carriers = (0..count).zip(carriers);
    carriers
        .map(|(number, udp)| BoundSocket::shard_of(Shard::new(number, count), udp))
        .collect()
}

fn check(count: u16) -> Result<(), OpenError> {
    if Shard::is_count(count) {
        return Ok(());
    }
    Err(OpenError::Options(
        "the number of shards must be a power of two, at most 256",
    ))
}
