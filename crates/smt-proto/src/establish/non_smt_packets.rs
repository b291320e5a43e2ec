// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that no SMT server sends, from an address that this side connects to: a hint for error
//! messages.
//!
//! Anybody can send such packets, at any rate. Each costs one look-up, however many connects there
//! are.

use alloc::collections::BTreeMap;
use core::net::SocketAddr;

use crate::time::Time;

/// The addresses of connects in progress, and when a foreign packet has last come from each.
#[derive(Default)]
pub(crate) struct NonSmtPackets(BTreeMap<SocketAddr, Place>);

#[derive(Default)]
struct Place {
    connects: usize,
    last: Option<Time>,
}

impl NonSmtPackets {
    /// Notes that a connect to this address is under way.
    pub(crate) fn add_connect(&mut self, remote: SocketAddr) {
        self.0.entry(remote).or_default().connects += 1;
    }

    /// Notes that a connect to this address is over.
    pub(crate) fn remove_connect(&mut self, remote: SocketAddr) {
        let Some(place) = self.0.get_mut(&remote) else {
            return;
        };
        place.connects -= 1;
        if place.connects == 0 {
            self.0.remove(&remote);
        }
    }

    /// Notes that a foreign packet has come from this address.
    pub(crate) fn note(&mut self, now: Time, remote: SocketAddr) {
        if let Some(place) = self.0.get_mut(&remote) {
            place.last = Some(now);
        }
    }

    /// When a foreign packet has last come from this address.
    pub(crate) fn last(&self, remote: SocketAddr) -> Option<Time> {
        self.0.get(&remote)?.last
    }
}
