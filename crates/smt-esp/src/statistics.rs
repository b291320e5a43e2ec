// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of packets and of the events that RFC 4303 wants audited.

use crate::error::{OpenError, SealError};

/// Counts of one association, under the names of `ip -s xfrm state`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AssociationStatistics {
    /// Bytes to which the cipher or the hash was applied.
    pub bytes: u64,
    /// Packets that were sealed, or opened.
    pub packets: u64,
    /// Packets below the replay window.
    pub replay_window: u64,
    /// Packets whose number was there before.
    pub replay: u64,
    /// Packets that did not authenticate.
    pub failed: u64,
}

/// Counts of a whole database. In brackets: the name in Linux's `/proc/net/xfrm_stat`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Packets that were sealed.
    pub sealed: u64,
    /// Packets that were opened.
    pub opened: u64,
    /// Dummy packets that were opened and dropped (RFC 4303 §2.6).
    pub dummies: u64,
    /// Packets that passed without ESP, in both directions, as a policy says.
    pub bypassed: u64,
    /// Packets in that are malformed, before they are authenticated (`XfrmInHdrError`).
    pub in_malformed: u64,
    /// Fragments of ESP (RFC 4303 §3.4.1).
    pub in_fragments: u64,
    /// No association with the SPI (`XfrmInNoStates`).
    pub in_no_association: u64,
    /// Encapsulated in UDP or not, against the association (`XfrmInStateMismatch`).
    pub in_encapsulation: u64,
    /// Replayed or too old (`XfrmInStateSeqError`).
    pub in_replay: u64,
    /// The integrity check failed (`XfrmInStateProtoError`).
    pub in_integrity: u64,
    /// The lifetime of the association has ended (`XfrmInStateExpired`).
    pub in_expired: u64,
    /// Bad padding or a malformed packet inside (`XfrmInStateModeError`).
    pub in_inner: u64,
    /// Dropped for a congestion mark (RFC 6040 §4.2).
    pub in_congestion: u64,
    /// Not a packet of the association (`XfrmInTmplMismatch`).
    pub in_selectors: u64,
    /// Without ESP against the policy (`XfrmInPolBlock`).
    pub in_policy: u64,
    /// Packets out that are malformed, or fragments in transport mode (`XfrmOutError`).
    pub out_malformed: u64,
    /// No policy lets the packet out (`XfrmOutPolBlock`).
    pub out_policy: u64,
    /// The association of a policy is gone, or does not match (`XfrmOutNoStates`).
    pub out_no_association: u64,
    /// No sequence number is left (`XfrmOutStateSeqError`).
    pub out_sequence_exhausted: u64,
    /// The lifetime of the association has ended (`XfrmOutStateExpired`).
    pub out_expired: u64,
    /// Longer than the path takes, or than the caller's memory has room for
    /// (`XfrmOutBundleCheckError`).
    pub out_too_big: u64,
    /// The cipher failed (`XfrmOutStateProtoError`).
    pub out_cipher: u64,
}

impl Statistics {
    pub(crate) const fn count_open_error(&mut self, error: OpenError) {
        let count = match error {
            OpenError::Malformed => &mut self.in_malformed,
            OpenError::Fragment => &mut self.in_fragments,
            OpenError::NoAssociation { .. } => &mut self.in_no_association,
            OpenError::Encapsulation => &mut self.in_encapsulation,
            OpenError::Replay | OpenError::BelowWindow => &mut self.in_replay,
            OpenError::Integrity => &mut self.in_integrity,
            OpenError::Expired => &mut self.in_expired,
            OpenError::Padding | OpenError::Inner => &mut self.in_inner,
            OpenError::Congestion => &mut self.in_congestion,
            OpenError::Selectors => &mut self.in_selectors,
            OpenError::Policy => &mut self.in_policy,
        };
        *count += 1;
    }

    pub(crate) const fn count_seal_error(&mut self, error: SealError) {
        let count = match error {
            SealError::Malformed | SealError::Fragment => &mut self.out_malformed,
            SealError::Policy => &mut self.out_policy,
            SealError::NoAssociation | SealError::Selectors => &mut self.out_no_association,
            SealError::SequenceExhausted => &mut self.out_sequence_exhausted,
            SealError::Expired => &mut self.out_expired,
            SealError::NoRoom | SealError::TooBig { .. } => &mut self.out_too_big,
            SealError::Cipher => &mut self.out_cipher,
        };
        *count += 1;
    }
}
