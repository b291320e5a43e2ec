// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Neighbours to whom packets for peers are sent, as the kernel knows them: asked for, and kept for
//! a second.
//!
//! A peer whose neighbour is not known is reached by the kernel's own way, which finds the
//! neighbour. The same is done once a second where the kernel has not heard of the neighbour
//! lately: it then looks whether it is still there.

use super::frame::HardwareAddress;
use super::netlink::Netlink;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The neighbours of peers.
#[derive(Debug)]
pub(super) struct Neighbours {
    netlink: Netlink,
    interface: u32,
    local: IpAddr,
    known: HashMap<SocketAddr, Known>,
    /// Questions to the kernel that may still be asked before `second` is over.
    questions_left: u32,
    second: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    address: Option<HardwareAddress>,
    asked: Instant,
}

impl Neighbours {
    /// Those that are reached from an address of an interface.
    pub(super) fn new(interface: u32, local: IpAddr, now: Instant) -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open()?,
            interface,
            local,
            known: HashMap::new(),
            questions_left: QUESTIONS_A_SECOND,
            second: now,
        })
    }

    /// The neighbour for a peer; `None` if the kernel has to send.
    pub(super) fn to(&mut self, remote: SocketAddr, now: Instant) -> Option<HardwareAddress> {
        // The port is of no account.
        let mut peer = remote;
        peer.set_port(0);
        if let Some(known) = self.known.get(&peer)
            && now.duration_since(known.asked) < KEPT
        {
            return known.address;
        }
        if !self.may_ask(now) {
            return None;
        }
        let way = self.netlink.next_hop(peer, self.local);
        let way = way.ok().filter(|way| way.interface == self.interface);
        let address = way.and_then(|way| way.address);
        if self.known.len() >= PEERS_MAX {
            self.known.clear();
        }
        let asked = match address {
            Some(_) => now,
            // The kernel finds a neighbour within a millisecond mostly.
            None => now.checked_sub(KEPT - KEPT_UNKNOWN).unwrap_or(now),
        };
        self.known.insert(peer, Known { address, asked });
        // The kernel sends one packet, and then looks for the neighbour anew.
        address.filter(|_| way.is_some_and(|way| way.is_confirmed))
    }

    fn may_ask(&mut self, now: Instant) -> bool {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.questions_left = QUESTIONS_A_SECOND;
        }
        let may = self.questions_left > 0;
        self.questions_left = self.questions_left.saturating_sub(1);
        may
    }
}

/// How long the kernel's word counts.
const KEPT: Duration = Duration::from_secs(1);
/// How long it counts that the kernel does not know.
const KEPT_UNKNOWN: Duration = Duration::from_millis(2);
/// Peers whose neighbours are kept.
const PEERS_MAX: usize = 4_096;
/// A flood from many addresses shall not become one of questions: the rest goes the kernel's way.
const QUESTIONS_A_SECOND: u32 = 10_000;
