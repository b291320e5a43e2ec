// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties, by the names of the paper's lemmas, and their twins.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::{Entry, Packet, View};

/// The names of the properties.
pub mod names {
    /// No message is taken twice, over all starts of the receiver.
    pub const NO_DOUBLE_MESSAGES: &str = "no_double_messages";
    /// No message is taken before all that its sender attested earlier, from where the receiver
    /// began.
    pub const NO_LOST_MESSAGES: &str = "no_lost_messages";
    /// No message is taken after one that its sender attested later, in this or a later epoch.
    pub const NO_MESSAGE_REORDERING: &str = "no_message_reordering";
    /// Each message that is taken was attested.
    pub const VERIFIED_MSG_IS_AUTH: &str = "verified_msg_is_auth";
    /// No two messages have one device, epoch and counter.
    pub const NON_EQUIVOCATION: &str = "non_equivocation";
    /// An epoch is admitted on the votes of a quorum.
    pub const ADMITTED_BY_QUORUM: &str = "admitted_by_quorum";
}

/// The names of the twins: each says that a situation is reached that tests a property.
pub mod twins {
    /// Tests [`super::names::NO_DOUBLE_MESSAGES`].
    pub const RESTARTED: &str = "a restarted receiver takes a message";
    /// Tests [`super::names::NO_LOST_MESSAGES`].
    pub const SECOND: &str = "a second message is taken";
    /// Tests [`super::names::NO_MESSAGE_REORDERING`].
    pub const NEWER: &str = "a newer epoch is taken before an older message";
    /// Tests [`super::names::VERIFIED_MSG_IS_AUTH`].
    pub const TAKEN: &str = "a message is taken";
    /// Tests [`super::names::NON_EQUIVOCATION`].
    pub const COPIES: &str = "two copies attest under one counter";
    /// Tests [`super::names::ADMITTED_BY_QUORUM`].
    pub const ADMITTED: &str = "a newer epoch is admitted";
}

type Place = (u64, u64);

/// Epoch and counter of what was taken, in order.
fn taken(view: &View) -> impl Iterator<Item = Place> {
    view.log.iter().filter_map(|entry| match entry {
        Entry::Taken(packet) => Some((packet.place().1, packet.place().2)),
        Entry::Begun { .. } => None,
    })
}

pub(crate) fn nothing_twice(view: &View) -> bool {
    let mut seen = BTreeSet::new();
    taken(view).all(|place| seen.insert(place))
}

pub(crate) fn nothing_lost(view: &View) -> bool {
    let mut next = (1, 1);
    view.log.iter().all(|entry| match entry {
        Entry::Begun { epoch, counter, .. } => {
            next = (*epoch, counter + 1);
            true
        }
        Entry::Taken(packet) => {
            let (_, epoch, counter) = packet.place();
            let is_next = (epoch, counter) == next;
            next.1 += 1;
            is_next
        }
    })
}

pub(crate) fn nothing_reordered(view: &View) -> bool {
    taken(view).zip(taken(view).skip(1)).all(|(earlier, later)| earlier <= later)
}

pub(crate) fn authentic(view: &View) -> bool {
    view.log.iter().all(|entry| match entry {
        Entry::Taken(packet) => view.issued.contains(packet),
        Entry::Begun { .. } => true,
    })
}

pub(crate) fn one_story(view: &View) -> bool {
    let mut stories: BTreeMap<_, &Packet> = BTreeMap::new();
    view.issued.iter().all(|packet| *stories.entry(packet.place()).or_insert(packet) == packet)
}

pub(crate) fn by_quorum(view: &View) -> bool {
    view.log.iter().all(|entry| !matches!(entry, Entry::Begun { by_quorum: false, .. }))
}

/// A restarted receiver took a message, while one that it took before can be delivered again.
pub(crate) fn restarted_receiver_takes(view: &View) -> bool {
    let restarted = |entry: &Entry| matches!(entry, Entry::Begun { counter: 1.., .. });
    let began = view.log.iter().position(restarted);
    began.is_some_and(|at| at > 0 && matches!(view.log.last(), Some(Entry::Taken(_))))
}

/// Two messages of one epoch were taken, while the network could have given the second first.
pub(crate) fn second_message_taken(view: &View) -> bool {
    taken(view).any(|(_, counter)| counter == 2)
}

/// A newer epoch's message was taken, while one of the older epoch is still on its way.
pub(crate) fn newer_epoch_taken(view: &View) -> bool {
    let older = taken(view).filter(|place| place.0 == 1).map(|place| place.1).max().unwrap_or(0);
    let is_late = |packet: &Packet| packet.place().0 == 1 && packet.place() > (1, 1, older);
    taken(view).any(|place| place.0 == 2)
        && view.issued.iter().any(|packet| packet.place().1 == 1 && is_late(packet))
}

/// A message was taken.
pub(crate) fn message_taken(view: &View) -> bool {
    taken(view).next().is_some()
}

/// Two running copies of the sender have attested under one counter, in two epochs.
pub(crate) fn two_copies_attest(view: &View) -> bool {
    let counter_one = |epoch| view.issued.iter().any(|packet| packet.place() == (1, epoch, 1));
    counter_one(1) && counter_one(2)
}

/// A newer epoch was admitted.
pub(crate) fn epoch_admitted(view: &View) -> bool {
    view.log.iter().any(|entry| matches!(entry, Entry::Begun { epoch: 2, counter: 0, .. }))
}
