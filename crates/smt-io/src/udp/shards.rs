// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens the sockets of an address that several shards share.
//!
//! 1. The first socket is bound alone, so that an address that any process has taken is refused.
//! 2. Then it permits others beside it (`SO_REUSEPORT`), they are bound in the order of their
//!    shards, and the kernel gets the program that chooses among them.
//! 3. Where there is no such program, all shards get the first socket.

use super::offload_state::OffloadState;
use super::receive_timeout::ReceiveTimeout;
use super::shard_socket::{Group, ShardSocket};
use super::{OpenError, UdpCarrier, UdpOptions, attach_selector};
use crate::receive_buffer::ReceiveBuffer;
use crate::statistics::Counters;
use smt_wire::Shard;
use socket2::Socket;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl UdpCarrier {
    pub(crate) fn bind_shards_with(
        address: SocketAddr,
        count: u16,
        options: &UdpOptions,
    ) -> Result<Vec<Self>, OpenError> {
        assert_count(count);
        let first = Self::bind_with(address, options)?;
        if count == 1 {
            return Ok(vec![first]);
        }
        let mut carriers = vec![first];
        let has_selector = options.shard_selector && add_selected(&mut carriers, count, options)?;
        if !has_selector {
            carriers.truncate(1);
            // No socket of another process may join the group.
            let _ = carriers[0].socket.set_reuse_port(false);
            while carriers.len() < usize::from(count) {
                carriers.push(carriers[0].beside());
            }
        }
        let sockets: Vec<Arc<Socket>> =
            carriers.iter().map(|carrier| Arc::clone(&carrier.socket)).collect();
        let group = Group::new(count, sockets, has_selector);
        let group = Arc::new(group.map_err(OpenError::preparing("make the inboxes of shards"))?);
        for (number, carrier) in (0..count).zip(&mut carriers) {
            carrier.shard_socket =
                Some(ShardSocket { shard: Shard::new(number, count), group: Arc::clone(&group) });
        }
        Ok(carriers)
    }

    /// A carrier of the same socket.
    fn beside(&self) -> Self {
        Self {
            socket: Arc::clone(&self.socket),
            family: self.family,
            local: self.local,
            connected: None,
            wildcard: self.wildcard,
            plain_class: self.plain_class,
            buffers: self.buffers,
            receive_offload: self.receive_offload,
            offload_state: OffloadState::new(self.has_segmentation_offload()),
            report_queue: None,
            hint_pending: AtomicBool::new(false),
            timeout: ReceiveTimeout::default(),
            counters: Counters::default(),
            buffer: ReceiveBuffer::default(),
            shard_socket: None,
        }
    }
}

fn assert_count(count: u16) {
    assert!(Shard::is_count(count), "shards are a power of two, at most 256");
}

/// Binds a socket for each further shard. False: this system cannot choose among them.
fn add_selected(
    carriers: &mut Vec<UdpCarrier>,
    count: u16,
    options: &UdpOptions,
) -> Result<bool, OpenError> {
    if carriers[0].socket.set_reuse_port(true).is_err() {
        return Ok(false);
    }
    let address = carriers[0].local;
    while carriers.len() < usize::from(count) {
        carriers.push(UdpCarrier::bind_beside(address, options)?);
        // The kernel takes the program only for sockets that have others beside them.
        if carriers.len() == 2 && attach_selector(&carriers[0].socket, count).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
