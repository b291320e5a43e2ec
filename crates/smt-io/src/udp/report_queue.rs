// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ICMP reports to a socket that is not connected: the kernel keeps them in the socket's error
//! queue, with the destination of the datagram that each is about (ip(7), `IP_RECVERR`).
//!
//! The kernel queues a local failure there too, for example of a datagram that is too large. A
//! queue that is not emptied makes the socket look readable for ever.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use smt_carrier::Path;
use socket2::Socket;

use super::next_report;

/// Peers that were reported as unreachable, and of which nobody has been told.
#[derive(Debug, Default)]
pub(super) struct ReportQueue {
    waiting: Mutex<VecDeque<SocketAddr>>,
}

impl ReportQueue {
    /// Takes the reports out of the socket's queue.
    pub(super) fn fill(&self, socket: &Socket) {
        let mut waiting = self.lock();
        for _ in 0..REPORTS_PER_LOOK {
            let Ok(remote) = next_report(socket) else {
                break;
            };
            // In the form in which datagrams of that peer come.
            let remote = remote.map(|remote| Path::to(remote).remote);
            if let Some(remote) = remote
                && waiting.len() < WAITING_MAX
                && !waiting.contains(&remote)
            {
                waiting.push_back(remote);
            }
        }
    }

    /// The next peer, and whether there are more.
    pub(super) fn next(&self) -> Option<(SocketAddr, bool)> {
        let mut waiting = self.lock();
        let next = waiting.pop_front()?;
        Some((next, !waiting.is_empty()))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SocketAddr>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports that are taken at a time: anyone can forge them, and they shall not keep a receiver from
/// receiving.
const REPORTS_PER_LOOK: usize = 64;
/// Peers that wait to be told of.
const WAITING_MAX: usize = 64;
