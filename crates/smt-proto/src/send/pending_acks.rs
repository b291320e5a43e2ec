// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Acknowledgements that wait for a message or a packet to ride in (SPEC §9.4).
//!
//! Ids are dense, so 64 neighbours share a base and a bit each. An acknowledgement is sent once: if
//! it is lost, the peer asks with NEED_ACK.

use alloc::collections::VecDeque;

use smt_wire::{Ack, MessageId};

/// Acknowledgements of one stripe.
#[derive(Debug, Default)]
pub(crate) struct PendingAcks(VecDeque<Ack>);

impl PendingAcks {
    /// Notes that the message under `id` is not needed any more. `shift` is k + 1 (SPEC §4.1).
    pub(crate) fn note(&mut self, id: MessageId, shift: u32) {
        let ack = ack_of(id, shift);
        // Neighbours finish close together: search from the newest, a few steps only.
        let same = self.0.iter_mut().rev().take(SEARCHED).find(|pending| pending.base == ack.base);
        if let Some(pending) = same {
            pending.bits |= ack.bits;
            return;
        }
        if self.0.len() == PENDING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(ack);
    }

    /// The oldest pending acknowledgements, up to 64 messages.
    pub(crate) fn take(&mut self) -> Option<Ack> {
        self.0.pop_front()
    }
}

/// The acknowledgement of one id.
pub(crate) fn ack_of(id: MessageId, shift: u32) -> Ack {
    let bit = (id.0 >> shift) % 64;
    Ack { base: MessageId(id.0 - (bit << shift)), bits: 1 << bit }
}

/// Pending blocks; older ones are dropped, the peer asks for them.
const PENDING_MAX: usize = 256;
/// Blocks looked at before a new one is begun.
const SEARCHED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn neighbours_share_a_block_and_come_back_as_ids() {
        let shift = 2;
        let ids: Vec<_> =
            [0u64, 5, 63, 64].iter().map(|counter| MessageId(counter << shift | 1)).collect();
        let mut acks = PendingAcks::default();
        for id in &ids {
            acks.note(*id, shift);
        }
        let first = acks.take().unwrap();
        assert_eq!(first.ids(shift as u8 - 1).collect::<Vec<_>>(), ids[..3]);
        let second = acks.take().unwrap();
        assert_eq!(second.ids(shift as u8 - 1).collect::<Vec<_>>(), ids[3..]);
        assert!(acks.take().is_none());
    }
}
