// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shipped kernel withstands every attack; each kernel that lacks a rule does not.

use std::marker::PhantomData;

use smt_attestation_explorer::broken::{
    admits_an_epoch_again, admits_without_quorum, gives_a_counter_twice, ignores_the_mac,
    moves_on_a_bad_mac, restarts_at_zero, skips, states_a_replaced_epoch, synchronizes_again,
    takes_any_order, takes_votes_in_advance,
};
use smt_attestation_explorer::{Attack, Counter, Device, Shipped, names, twins};
use stateright::{Checker, HasDiscoveries, Model};

/// Senders of two messages, and a receiver that goes on.
fn messages<D>() -> Attack<D> {
    let (messages_max, receiver_restarts) = (2, false);
    Attack { counter: Counter::Grows, messages_max, receiver_restarts, kernel: PhantomData }
}

/// Senders of one message, and a receiver that restarts.
fn restarts<D>() -> Attack<D> {
    Attack { messages_max: 1, receiver_restarts: true, ..messages() }
}

/// The attacker breaks `property`.
fn is_caught<D: Device + Send + Sync + 'static>(attack: Attack<D>, property: &'static str) {
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = attack.checker().finish_when(found).spawn_bfs().join();
    checker.assert_any_discovery(property);
}

/// The attacker breaks nothing, though it reaches the situations `twins`.
fn is_sound(attack: Attack<Shipped>, twins: &[&'static str]) {
    let checker = attack.checker().threads(2).spawn_bfs().join();
    for property in [
        names::NO_DOUBLE_MESSAGES,
        names::NO_LOST_MESSAGES,
        names::NO_MESSAGE_REORDERING,
        names::VERIFIED_MSG_IS_AUTH,
        names::NON_EQUIVOCATION,
        names::ADMITTED_BY_QUORUM,
    ] {
        checker.assert_no_discovery(property);
    }
    for twin in twins {
        checker.assert_any_discovery(twin);
    }
    println!("{} states, {} of them distinct", checker.state_count(), checker.unique_state_count());
}

#[test]
fn the_shipped_kernel_withstands_a_hostile_host_and_network() {
    let twins = [twins::SECOND, twins::NEWER, twins::TAKEN, twins::COPIES, twins::ADMITTED];
    is_sound(messages(), &twins);
}

#[test]
fn the_shipped_kernel_withstands_restarts_of_the_receiver() {
    is_sound(restarts(), &[twins::RESTARTED, twins::NEWER, twins::COPIES, twins::ADMITTED]);
}

/// The limit that README.md states: without a counter that only grows there is no promise.
#[test]
fn a_restored_counter_of_epochs_lets_the_host_equivocate() {
    let attack = Attack::<Shipped> { counter: Counter::Restored, ..messages() };
    is_caught(attack, names::NON_EQUIVOCATION);
}

mod a_kernel_is_caught {
    use super::*;

    #[test]
    fn that_takes_what_does_not_come_next() {
        is_caught(messages::<skips::kernel::Kernel<1, 2, 4>>(), names::NO_LOST_MESSAGES);
    }

    #[test]
    fn that_takes_any_order() {
        is_caught(
            messages::<takes_any_order::kernel::Kernel<1, 2, 4>>(),
            names::NO_MESSAGE_REORDERING,
        );
        is_caught(
            messages::<takes_any_order::kernel::Kernel<1, 2, 4>>(),
            names::NO_DOUBLE_MESSAGES,
        );
    }

    #[test]
    fn that_ignores_the_mac() {
        is_caught(
            messages::<ignores_the_mac::kernel::Kernel<1, 2, 4>>(),
            names::VERIFIED_MSG_IS_AUTH,
        );
    }

    #[test]
    fn whose_counter_a_bad_mac_moves() {
        is_caught(
            messages::<moves_on_a_bad_mac::kernel::Kernel<1, 2, 4>>(),
            names::NO_LOST_MESSAGES,
        );
    }

    #[test]
    fn that_gives_a_counter_twice() {
        is_caught(
            messages::<gives_a_counter_twice::kernel::Kernel<1, 2, 4>>(),
            names::NON_EQUIVOCATION,
        );
    }

    #[test]
    fn that_admits_an_epoch_again() {
        is_caught(
            messages::<admits_an_epoch_again::kernel::Kernel<1, 2, 4>>(),
            names::NO_DOUBLE_MESSAGES,
        );
    }

    #[test]
    fn that_admits_without_a_quorum() {
        is_caught(
            messages::<admits_without_quorum::kernel::Kernel<1, 2, 4>>(),
            names::ADMITTED_BY_QUORUM,
        );
    }

    #[test]
    fn that_restarts_at_zero() {
        is_caught(
            restarts::<restarts_at_zero::kernel::Kernel<1, 2, 4>>(),
            names::NO_DOUBLE_MESSAGES,
        );
    }

    #[test]
    fn that_takes_votes_made_in_advance() {
        is_caught(
            restarts::<takes_votes_in_advance::kernel::Kernel<1, 2, 4>>(),
            names::NO_DOUBLE_MESSAGES,
        );
    }

    #[test]
    fn that_synchronizes_again() {
        let attack = restarts::<synchronizes_again::kernel::Kernel<1, 2, 4>>();
        is_caught(attack, names::NO_DOUBLE_MESSAGES);
    }

    #[test]
    fn that_states_an_epoch_which_it_voted_to_replace() {
        let property = names::NO_MESSAGE_REORDERING;
        is_caught(restarts::<states_a_replaced_epoch::kernel::Kernel<1, 2, 4>>(), property);
    }
}
