// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that have left a device, and not yet the host.

use std::collections::VecDeque;

use crate::net::packet::{HostId, Protocol};

/// A datagram that has left a device.
pub(super) struct SentDatagram {
    /// The receiver; `None` if it is no host of the simulator.
    pub(super) to: Option<HostId>,
    pub(super) protocol: Protocol,
    pub(super) priority: u8,
    pub(super) bytes: Vec<u8>,
}

/// Datagrams that leave the host at once: of one size, the last perhaps shorter, for one end, of
/// one protocol and one priority.
pub(crate) struct Datagrams {
    pub(crate) to: Option<HostId>,
    pub(crate) protocol: Protocol,
    pub(crate) priority: u8,
    /// Bytes of each, but of the last.
    pub(crate) size: usize,
    pub(crate) bytes: Vec<u8>,
}

impl SentDatagram {
    fn follows(&self, first: &Datagrams) -> bool {
        (self.to, self.protocol, self.priority) == (first.to, first.protocol, first.priority)
            && self.bytes.len() <= first.size
    }
}

impl Datagrams {
    /// Takes the first ones of these.
    pub(super) fn first_of(ready: &mut VecDeque<SentDatagram>) -> Option<Self> {
        let SentDatagram { to, protocol, priority, bytes } = ready.pop_front()?;
        let mut taken = Self { to, protocol, priority, size: bytes.len(), bytes };
        while ready.front().is_some_and(|next| next.follows(&taken))
            && let Some(next) = ready.pop_front()
        {
            taken.bytes.extend_from_slice(&next.bytes);
            if next.bytes.len() < taken.size {
                break;
            }
        }
        Some(taken)
    }
}
