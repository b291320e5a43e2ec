// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The carrier of an endpoint, and the number of its shard.

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::Carrier;
use smt_io::{ThreadedCarrier, UdpCarrier, UdpOptions};
use smt_wire::Shard;

use crate::error::OpenError;

/// A place for one endpoint.
pub(crate) struct BoundSocket {
    pub(crate) shard: Shard,
    pub(crate) carrier: Arc<dyn Carrier>,
    pub(crate) udp: Option<Arc<UdpCarrier>>,
}

impl BoundSocket {
    /// The only one, over a socket.
    pub(crate) fn socket(udp: UdpCarrier) -> Self {
        Self::shard_of(Shard::default(), udp)
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
    pub(crate) fn connected(
        options: &UdpOptions,
        remote: SocketAddr,
        count: u16,
    ) -> Result<Vec<Self>, OpenError> {
        Ok(sockets(connected(options, remote, count)?))
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

/// The sockets of a client's shards.
fn connected(
    options: &UdpOptions,
    remote: SocketAddr,
    count: u16,
) -> Result<Vec<UdpCarrier>, OpenError> {
    check(count)?;
    let carriers = (0..count).map(|_| options.connect(remote));
    Ok(carriers.collect::<Result<_, _>>()?)
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
