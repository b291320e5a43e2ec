// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a native carrier is to be opened.

use super::{NativeCarrier, NativeError};
use crate::limits::{RECEIVE_BUFFER_BYTES_DEFAULT, SEND_BUFFER_BYTES_DEFAULT};
use std::net::SocketAddr;

/// The options of a native carrier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NativeOptions {
    /// The IP protocol number: 253 by default, which is for experiments (RFC 3692). Peers must have
    /// the same.
    pub protocol: u8,
    /// Bytes of the receive buffer.
    pub receive_buffer_bytes: usize,
    /// Bytes of the send buffer.
    pub send_buffer_bytes: usize,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            protocol: 253,
            receive_buffer_bytes: RECEIVE_BUFFER_BYTES_DEFAULT,
            send_buffer_bytes: SEND_BUFFER_BYTES_DEFAULT,
        }
    }
}

impl NativeOptions {
    /// The same with another IP protocol number.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> Self {
        self.protocol = protocol;
        self
    }

    /// Opens a carrier that listens on `address`, see [`NativeCarrier::bind`].
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn bind(&self, address: SocketAddr) -> Result<NativeCarrier, NativeError> {
        NativeCarrier::bind(address, self)
    }

    /// Opens the carriers of `count` shards that share an address (SPEC §6.6). The filter of each
    /// lets through the packets of its shard alone.
    ///
    /// # Panics
    /// If there may not be `count` shards ([`smt_wire::Shard::is_count`]).
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn bind_shards(
        &self,
        address: SocketAddr,
        count: u16,
    ) -> Result<Vec<NativeCarrier>, NativeError> {
        NativeCarrier::bind_shards(address, count, self)
    }
}
