// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The twins of properties: each says that a situation is reached that tests a property.

use std::sync::Arc;

use smt_bft::{Batch, Statement};
use stateright::Property;

use super::clients::answers;
use super::found::statement;
use super::properties::{observed, takes_for_faulty};
use super::{Beginning, Bft, Bounds, Observed};
use crate::answers::WRONG;
use crate::{Cluster, MessageId, State};

/// Tests [`super::names::AGREEMENT`]: both correct replicas have executed, and one of them has
/// heard more of a liar that contradicts itself.
pub const CONTRADICTION: &str = "a liar is found out after both have executed";
/// Tests [`super::names::NOTHING_IS_LOST`]: a view begins with what one correct replica alone
/// had executed when it was opened.
pub const CHANGE: &str = "a view is opened after one replica alone has executed";
/// Tests [`super::names::RIGHT_ANSWERS`].
pub const ANSWER: &str = "a client takes an answer beside a wrong one";
/// Tests [`super::names::SIGNED`].
pub const UNSIGNED: &str = "a leader is found out that orders what no client has signed";
/// Tests [`super::names::NO_ACCUSATION`]: a view was opened by correct replicas alone.
pub const WITHOUT_LIAR: &str = "correct replicas open a view, and execute in it";
/// Tests [`super::names::NOTHING_IS_LOST`] where the liar's device restarts.
pub const ADMITTED: &str = "a view is opened in which the liar's new epoch is a member";
/// Tests [`super::names::AGREEMENT`] and [`super::names::CLOSES`] with states.
pub const STATE: &str = "a replica executes after a state that it has taken";
/// The same with restarts.
pub const RECOVERED: &str = "a replica that has restarted is active";
/// The same with restarts, one after the other.
pub const AGAIN: &str = "another replica restarts after one that is active again";
/// The same where statements are gone.
pub const JUMPED: &str = "a replica continues in a stream from a checkpoint";
/// Tests [`super::names::REPLAYS`]: a device has no vote for one that has restarted.
pub const NEWCOMERS: &str = "two devices have restarted";

type Of = Cluster<Bft>;

/// The situations that are reached within some bounds.
pub(super) fn all(bounds: &Bounds, liars: &[u32]) -> Vec<Property<Of>> {
    match bounds.beginning {
        Beginning::New => of_new(bounds, liars),
        Beginning::Checkpoint => vec![answer(), state_taken()],
        Beginning::Admitted if liars.is_empty() => vec![recovered(), again()],
        Beginning::Admitted => vec![recovered(), answer()],
        Beginning::Recovered => vec![recovered(), newcomers()],
        Beginning::CutOff => vec![jumped()],
        Beginning::TwoOpenings => vec![answer()],
        Beginning::Newcomer => vec![recovered()],
    }
}

fn of_new(bounds: &Bounds, liars: &[u32]) -> Vec<Property<Of>> {
    let mut all = vec![answer()];
    if liars == [0] && bounds.orders && bounds.lies > 1 {
        all.extend([
            Property::sometimes(CONTRADICTION, |of: &Of, state| {
                let seen = observed(of, state);
                seen.iter().all(|it| !it.executed.is_empty())
                    && seen.iter().any(|it| takes_for_faulty(it, |it| it == 0))
            }),
            Property::sometimes(UNSIGNED, |of: &Of, state: &State| {
                let told = &state.streams[0].said;
                let faulty = |it: &Arc<Observed>| takes_for_faulty(it, |it| it == 0);
                told.len() == 1
                    && is_unsigned(of, told[0])
                    && observed(of, state).iter().all(faulty)
            }),
        ]);
    }
    if bounds.views > 0 {
        all.push(Property::sometimes(CHANGE, |of: &Of, state| changes(&observed(of, state))));
    }
    if bounds.views > 1 || (bounds.views == 1 && liars != [1]) {
        all.push(Property::sometimes(WITHOUT_LIAR, |of: &Of, state: &State| {
            let silent = state.streams.iter().all(|it| it.said.is_empty());
            let in_later = |it: &Arc<Observed>| it.replica.decided > 0 && !it.executed.is_empty();
            silent && observed(of, state).iter().all(in_later)
        }));
    }
    if bounds.restarts {
        all.push(Property::sometimes(ADMITTED, |of: &Of, state| {
            observed(of, state).iter().any(|it| it.replica.has_admitted)
        }));
    }
    all
}

fn answer() -> Property<Of> {
    Property::sometimes(ANSWER, |of: &Of, state| answers(of, state).iter().any(|it| it.1 != WRONG))
}

fn state_taken() -> Property<Of> {
    Property::sometimes(STATE, |of: &Of, state| {
        let goes_on = |it: &Arc<Observed>| {
            it.metrics.states > 0 && !it.executed.is_empty() && !it.executed.contains_key(&1)
        };
        observed(of, state).iter().any(goes_on)
    })
}

fn recovered() -> Property<Of> {
    Property::sometimes(RECOVERED, |of: &Of, state| {
        observed(of, state).iter().any(|it| it.epoch > 1 && it.metrics.is_active)
    })
}

fn again() -> Property<Of> {
    Property::sometimes(AGAIN, |of: &Of, state| {
        let seen = observed(of, state);
        let restarts: u64 = seen.iter().map(|it| it.epoch - 1).sum();
        restarts > 1 && seen.iter().any(|it| it.epoch > 1 && it.metrics.is_active)
    })
}

fn newcomers() -> Property<Of> {
    Property::sometimes(NEWCOMERS, |of: &Of, state| {
        observed(of, state).iter().filter(|it| it.epoch > 1).count() > 1
    })
}

fn jumped() -> Property<Of> {
    Property::sometimes(JUMPED, |of: &Of, state| {
        observed(of, state).iter().any(|it| it.metrics.stream_jumps > 0)
    })
}

fn is_unsigned(of: &Of, said: MessageId) -> bool {
    let signed = &of.system.requests;
    match statement(&of.messages.bytes(said)) {
        Some((_, Statement::Prepare { batch, .. })) => batch.iter().any(|it| !signed.contains(it)),
        _ => false,
    }
}

/// One has executed what the other has not, and a view begins with it.
fn changes(seen: &[Arc<Observed>]) -> bool {
    let is_alone = |it: &Arc<Observed>| it.executed.is_empty() && it.replica.promised > 0;
    let is_log = |it: &Vec<Option<Batch>>| !it.is_empty();
    let begins = |it: &Arc<Observed>| it.replica.views.range(1..).any(|it| is_log(it.1));
    seen.iter().any(is_alone) && seen.iter().any(begins)
}
