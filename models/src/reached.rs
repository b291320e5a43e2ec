// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events that an exploration has come to: a property that holds because nothing happens says
//! nothing.

use std::sync::atomic::{AtomicU32, Ordering};

/// Something that a rule is about has happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reached {
    /// A message was delivered.
    Delivered,
    /// All messages were delivered in one execution.
    DeliveredAll,
    /// A record of a message that was seen has opened again, and was dropped.
    RefusedRepetition,
    /// The window has blocked the client.
    Blocked,
    /// An id was used that only an advertised limit permits.
    UsedAdvertisedLimit,
    /// A control packet came again, and was dropped.
    RefusedControlAgain,
    /// The server opened something of a new epoch.
    NewEpoch,
    /// A message has records of two epochs.
    SpannedEpochs,
    /// EPOCH_ACK has finished an epoch of the client.
    FinishedEpoch,
    /// A record of an epoch that is dropped came, and did not open.
    RefusedDroppedEpoch,
    /// An EPOCH_ACK came that is not of the previous epoch.
    RefusedOtherAck,
    /// CANCEL was answered by VOIDED, and record 0 came behind it.
    Voided,
    /// CANCEL was answered by SEEN.
    CancelledTooLate,
    /// CANCEL of a message was answered that is too old for the window to know of.
    CancelledLongAgo,
    /// The server was started again while a message was outstanding.
    Restarted,
    /// A packet of a session before the restart came, and did not open.
    RefusedOldSession,
    /// A message was delivered in the session after a restart.
    DeliveredAfterRestart,
}

/// All of them, with the names that reports have.
pub(crate) const ALL: [(Reached, &str); 17] = [
    (Reached::Delivered, "a message is delivered"),
    (Reached::DeliveredAll, "all messages are delivered"),
    (Reached::RefusedRepetition, "a repeated record is dropped"),
    (Reached::Blocked, "the window blocks the client"),
    (Reached::UsedAdvertisedLimit, "an advertised limit permits an id"),
    (Reached::RefusedControlAgain, "a repeated control packet is dropped"),
    (Reached::NewEpoch, "the server moves to a new epoch"),
    (Reached::SpannedEpochs, "a message spans two epochs"),
    (Reached::FinishedEpoch, "EPOCH_ACK finishes an epoch"),
    (Reached::RefusedDroppedEpoch, "a record of a dropped epoch is refused"),
    (Reached::RefusedOtherAck, "an EPOCH_ACK of another epoch is refused"),
    (Reached::Voided, "CANCEL is answered by VOIDED"),
    (Reached::CancelledTooLate, "CANCEL is answered by SEEN"),
    (Reached::CancelledLongAgo, "CANCEL is answered by SEEN_AND_GONE"),
    (Reached::Restarted, "a restart loses a message"),
    (Reached::RefusedOldSession, "a packet of the old session is refused"),
    (Reached::DeliveredAfterRestart, "the session after a restart delivers"),
];

/// A set of them that threads share.
#[derive(Debug, Default)]
pub(crate) struct ReachedSet(AtomicU32);

impl ReachedSet {
    pub(crate) fn insert(&self, reached: Reached) {
        self.0.fetch_or(1 << reached as u32, Ordering::Relaxed);
    }

    pub(crate) fn contains(&self, reached: Reached) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << reached as u32) != 0
    }
}

/// The name in reports.
pub(crate) fn name(reached: Reached) -> &'static str {
    let entry = ALL.iter().find(|(other, _)| *other == reached);
    entry.map_or("", |(_, name)| name)
}
