// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier's place among the shards of one address, and the handing over of datagrams that are
//! another shard's.
//!
//! 1. With a selector in the kernel each shard has a socket, and gets its own datagrams. Few are
//!    strays: of a batch the kernel looks at the first datagram only, and a client may send to two
//!    shards from one socket.
//! 2. Without one all share a socket: each shard that waits reads it, and most datagrams that it
//!    reads may be strays.
//! 3. Either way a stray goes to the inbox of the shard that it is for.

use super::{UdpCarrier, wait_readable};
use crate::inbox::Inbox;
use crate::received::Received;
use smt_carrier::{Arrival, ReceiveError, Wait};
use smt_wire::Shard;
use socket2::Socket;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A shard's place.
#[derive(Debug)]
pub(super) struct ShardSocket {
    pub(super) shard: Shard,
    pub(super) group: Arc<Group>,
}

/// The shards of one address.
#[derive(Debug)]
pub(super) struct Group {
    inboxes: Vec<Inbox>,
    pub(super) has_selector: bool,
    /// Kept open until the last shard has gone: the kernel numbers its sockets anew when one is
    /// closed.
    _sockets: Vec<Arc<Socket>>,
}

impl Group {
    pub(super) fn new(
        count: u16,
        sockets: Vec<Arc<Socket>>,
        has_selector: bool,
    ) -> io::Result<Self> {
        let inboxes = (0..count).map(|_| Inbox::new(!has_selector));
        Ok(Self { inboxes: inboxes.collect::<io::Result<_>>()?, has_selector, _sockets: sockets })
    }
}

impl ShardSocket {
    pub(super) fn inbox(&self) -> &Inbox {
        self.inbox_of(self.shard.number())
    }

    /// Whether this shard tells what the socket has counted, which may be the others' too.
    pub(super) fn speaks_for_socket(&self) -> bool {
        self.group.has_selector || self.shard.number() == 0
    }

    /// Shards that the socket's buffer is for.
    pub(super) fn sharers(&self) -> usize {
        if self.group.has_selector {
            return 1;
        }
        usize::from(self.shard.count())
    }

    /// Leaves only this shard's datagrams in `buffer`, and gives the others away. Tells how many
    /// those were.
    fn sort(&self, received: Received, buffer: &mut [u8]) -> (Received, usize) {
        let number_at = |buffer: &[u8], from: usize| {
            let end = received.length.min(from + received.segment_size.max(1));
            (Shard::of_datagram(&buffer[from..end], self.shard.count()), end)
        };
        let (mut from, mut kept, mut strays) = (0, 0, 0);
        while from < received.length {
            let (number, mut end) = number_at(buffer, from);
            let mut datagrams = 1;
            while end < received.length {
                let (next, next_end) = number_at(buffer, end);
                if next != number {
                    break;
                }
                end = next_end;
                datagrams += 1;
            }
            if number == self.shard.number() {
                if kept < from {
                    buffer.copy_within(from..end, kept);
                }
                kept += end - from;
            } else {
                strays += datagrams;
                self.inbox_of(number).put(Arrival {
                    path: received.path,
                    segment_size: received.segment_size,
                    marks: received.marks,
                    bytes: &buffer[from..end],
                    opened: &[],
                    spi: None,
                });
            }
            from = end;
        }
        let length = kept;
        (Received { length, ..received }, strays)
    }

    fn inbox_of(&self, number: u16) -> &Inbox {
        &self.group.inboxes[usize::from(number)]
    }
}

impl Drop for ShardSocket {
    fn drop(&mut self) {
        self.inbox().close();
    }
}

impl UdpCarrier {
    /// Receives what is for this shard. A batch of which nothing was is an empty one: there may be
    /// others behind it.
    pub(super) fn receive_own(
        &self,
        shard_socket: &ShardSocket,
        buffer: &mut [u8],
        wait: Wait,
    ) -> Result<Option<Received>, ReceiveError> {
        let inbox = shard_socket.inbox();
        if let Some(received) = inbox.take(buffer) {
            return Ok(Some(received));
        }
        let received = match wait {
            Wait::AtMost(limit) if inbox.is_awaited() => {
                self.counters.receiving.calls.add(1);
                // A signal ends the wait early, as it may.
                let _ = wait_readable([self.socket.as_fd(), inbox.as_fd()], limit);
                if let Some(received) = inbox.take(buffer) {
                    return Ok(Some(received));
                }
                self.receive_batch(buffer, Wait::Never)?
            }
            _ => self.receive_batch(buffer, wait)?,
        };
        let Some(received) = received else {
            return Ok(None);
        };
        let (received, strays) = shard_socket.sort(received, buffer);
        if strays > 0 {
            self.counters.receiving.strays.add(strays);
        }
        Ok(Some(received))
    }
}
