// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that the host has got, by their attestations.

use std::collections::{BTreeMap, VecDeque};

use smt_attestation::{Attestation, DeviceId, Header, StreamId};

/// Messages of one sender, of its last ones, that the host gets again when they come again.
pub const AGAIN_MAX: usize = 64;

/// The last messages of each sender that the kernel has taken, the oldest first. Senders are
/// members of groups that the device has opened, so there is an end to them.
#[derive(Default)]
pub(crate) struct Delivered(BTreeMap<(StreamId, DeviceId), VecDeque<Attestation>>);

impl Delivered {
    pub(crate) fn add(&mut self, header: &Header, attestation: Attestation) {
        let of_sender = self.0.entry((header.stream, header.device)).or_default();
        if of_sender.len() == AGAIN_MAX {
            of_sender.pop_front();
        }
        of_sender.push_back(attestation);
    }

    /// Whether the host has got this message: the MAC covers all of it but the way that it came.
    pub(crate) fn has(&self, attestation: &Attestation) -> bool {
        let sender = attestation.claim().map(|header| (header.stream, header.device));
        let of_sender = sender.and_then(|it| self.0.get(&it));
        of_sender.is_some_and(|it| it.contains(attestation))
    }
}
