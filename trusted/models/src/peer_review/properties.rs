// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of the model, and their twins.

use std::sync::Arc;

use smt_peer_review::{Delivery, Suspicion, Tree};
use stateright::Property;

use super::liar::{Lie, sound};
use super::node::Seen;
use super::{LIAR, PeerReview, State};

/// The names of the properties.
pub mod names {
    /// No correct node is exposed.
    pub const NEVER_EXPOSED: &str = "a_correct_node_is_never_exposed";
    /// The evidence of a correct node convinces a third party.
    pub const CONVINCING: &str = "evidence_convinces_a_third_party";
    /// A witness takes no entry that a correct node does not make; it exposes who has signed one.
    pub const AUDITED: &str = "entries_that_are_audited_are_the_application_s";
    /// A receipt is in the log of its giver.
    pub const RECEIPTS: &str = "a_receipt_is_in_a_log";
    /// A node is suspected by each witness whose nonce its log does not have in time.
    pub const SILENCE: &str = "a_silent_node_is_suspected";
    /// A node delivers what the log of the node before sends.
    pub const SIGNED: &str = "a_node_takes_what_a_log_sends";
}

/// The names of the twins: each says that a situation is reached that tests a property.
pub mod twins {
    /// Tests [`super::names::CONVINCING`] and [`super::names::NEVER_EXPOSED`].
    pub const EXPOSED: &str = "both witnesses expose the liar";
    /// Tests [`super::names::AUDITED`].
    pub const SOUND: &str = "a log that sends a message is audited to its end";
    /// Tests [`super::names::RECEIPTS`].
    pub const RECEIPT: &str = "a message has its receipt";
    /// Tests [`super::names::SILENCE`].
    pub const ANSWERED: &str = "a witness trusts the liar after an audit that it has answered";
    /// Tests [`super::names::SIGNED`].
    pub const WRONG: &str = "the child delivers wrong content, and the source exposes the liar";
}

pub(super) fn all() -> Vec<Property<PeerReview>> {
    type Of = PeerReview;
    vec![
        Property::always(names::NEVER_EXPOSED, |of: &Of, state| {
            { of.seen(state) }.iter().all(|it| it.1.evidence.iter().all(|it| it.accused() == LIAR))
        }),
        Property::always(names::CONVINCING, |of: &Of, state| {
            let convinces = |it: &(u32, Arc<Seen>)| {
                it.1.evidence.iter().all(|it| it.verify(&of.group, &Tree::new(3, 1)).is_ok())
            };
            of.seen(state).iter().all(convinces)
        }),
        Property::always(names::AUDITED, |of: &Of, state: &State| {
            let sound = sound(&state.log);
            of.seen(state).iter().all(|it| it.1.audited <= sound)
        }),
        Property::always(names::RECEIPTS, |of: &Of, state: &State| {
            let has = state.log.iter().any(|it| matches!(it.0, Lie::Received { .. }));
            of.seen(state).iter().all(|it| !it.1.has_part || it.1.waiting > 0 || has)
        }),
        Property::always(names::SILENCE, suspects),
        Property::always(names::SIGNED, |of: &Of, state: &State| {
            let sends = state.log.iter().any(|it| !matches!(it.0, Lie::Audit { .. }));
            of.see(state, 2).is_none_or(|it| it.delivered.is_empty() || sends)
        }),
        Property::sometimes(twins::EXPOSED, |of: &Of, state| {
            of.seen(state).iter().all(|it| !it.1.evidence.is_empty())
        }),
        Property::sometimes(twins::SOUND, |of: &Of, state: &State| {
            let is_whole = |it: &(u32, Arc<Seen>)| it.1.audited == state.log.len() as u64;
            let sends = state.log.iter().any(|it| matches!(it.0, Lie::Received { .. }));
            sends && of.seen(state).iter().all(is_whole)
        }),
        Property::sometimes(twins::RECEIPT, |of: &Of, state| {
            of.see(state, 0).is_some_and(|it| it.has_part && it.waiting == 0)
        }),
        Property::sometimes(twins::ANSWERED, |of: &Of, state| {
            let trusts = |it: &Seen| {
                it.ticks == of.bounds.ticks && it.audited > 0 && it.suspicions.is_empty()
            };
            of.seen(state).iter().any(|it| trusts(&it.1) && it.1.evidence.is_empty())
        }),
        Property::sometimes(twins::WRONG, |of: &Of, state| {
            let is_wrong =
                |it: &Vec<u8>| Delivery::decode(it).is_some_and(|it| it.content.bytes == b"wrong");
            let delivers = of.see(state, 2).is_some_and(|it| it.delivered.iter().any(is_wrong));
            delivers && of.see(state, 0).is_some_and(|it| !it.evidence.is_empty())
        }),
    ]
}

/// Whether a witness that was given no nonce in time suspects, or has exposed.
fn suspects(of: &PeerReview, state: &State) -> bool {
    of.seen(state).iter().all(|(own, seen)| {
        let is_answered = state.log.iter().any(|it| it.0 == Lie::Audit { witness: *own });
        let is_late = seen.ticks >= 3 && !is_answered;
        !is_late || seen.suspicions.contains(&Suspicion::Audit) || !seen.evidence.is_empty()
    })
}
