// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The counters of an endpoint since it began. They may be copied at any time, and are never reset.

use smt_record::OpenFailed;

/// Counters of an endpoint.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Datagrams handed in.
    pub datagrams_received: u64,
    /// Those of them that a switch has marked for congestion (CE of RFC 3168). They are counted
    /// before anything is authenticated, and nothing reacts to them.
    pub datagrams_ce: u64,
    /// Datagrams that are no packets, or of an unknown type or version.
    pub packets_malformed: u64,
    /// Packets whose session index or addresses belong to no live session.
    pub packets_unknown_session: u64,
    /// DATA that contradicts what its message's record 0 said, or goes beyond what was granted.
    pub packets_contradicting: u64,
    /// DATA of messages that were already complete, or of ids that are gone.
    pub packets_duplicate: u64,
    /// Records that did not open: forged, damaged, or of a key that is gone.
    pub records_failed: u64,
    /// Records that the carrier has opened, and that were taken so.
    pub records_opened_by_carrier: u64,
    /// Records that the carrier says it has opened, under a key or a number that is not theirs: of
    /// a key that was taken back meanwhile, for example. They are as good as lost.
    pub carrier_records_refused: u64,
    /// DATA of sessions whose packets carriers seal, in a packet that was not, or under another
    /// association (SPEC §15.4): forged, or of an association that was replaced.
    pub data_unsealed: u64,
    /// Associations of peers that the carrier did not take: for want of room, and peers tell them
    /// again, or since it has had them before, and peers tell others.
    pub associations_refused: u64,
    /// Records and packets that the cryptographic library could not try to seal or open. They are
    /// as good as lost.
    pub crypto_unavailable: u64,
    /// Control packets that did not open.
    pub controls_forged: u64,
    /// Control packets that came again.
    pub controls_replayed: u64,
    /// Authenticated packets that break a rule.
    pub violations: u64,
    /// Handshake attempts that failed here, as client or server.
    pub handshakes_failed: u64,
    /// Clients that were answered by a cookie.
    pub cookies_sent: u64,
    /// UNAVAILABLE packets sent.
    pub unavailable_sent: u64,
    /// RESET packets sent.
    pub resets_sent: u64,
    /// Sessions that have begun.
    pub sessions_begun: u64,
    /// Those among them that resumed an earlier one (SPEC §6.10).
    pub sessions_resumed: u64,
    /// Requests of this side that a server took as early data, and requests of clients that came so
    /// (SPEC §6.8).
    pub early_requests: u64,
    /// Requests, replies and one-way messages that have left for the first time.
    pub messages_sent: u64,
    /// Bundles of messages that have left for the first time (SPEC §5.7).
    pub bundles_sent: u64,
    /// Messages delivered to this side's application.
    pub messages_delivered: u64,
    /// Parts of calls that have come and whose call was not over (SPEC §5.9).
    pub parts_delivered: u64,
    /// One-way messages that came, or were accepted, after their time: they were not delivered.
    pub messages_expired: u64,
    /// DATA packets of live sessions that the network has trimmed to their headers.
    pub packets_trimmed: u64,
    /// Questions (RESEND) for bytes that were trimmed, sent at the pace of pulls.
    pub trimmed_asked: u64,
    /// Questions (RESEND) for missing bytes or replies, sent when nothing came for a while.
    pub resends_asked: u64,
    /// Packets sent again.
    pub packets_resent: u64,
    /// Questions (RESEND) that were not answered because the retransmit budget was used up (SPEC
    /// §9.3).
    pub resends_refused: u64,
    /// Messages that ended since the application's memory changed while they were being sent: a
    /// fault in the program.
    pub bodies_changed: u64,
    /// Key updates of this side's sending keys.
    pub key_updates: u64,
    /// Messages that waited for lack of memory.
    pub memory_refusals: u64,
}

impl Statistics {
    /// Counts a control packet that did not open: as forged, unless it could not be tried.
    pub(crate) fn control_not_opened(&mut self, failure: OpenFailed) {
        match failure {
            OpenFailed::Forged => self.controls_forged += 1,
            OpenFailed::Unavailable(_) => self.crypto_unavailable += 1,
        }
    }
}
