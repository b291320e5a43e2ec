// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All executions within the bounds hold the properties, and each broken variant loses one.

use smt_models::{Bounds, Broken, Explored, Reached, Violation, explore};

/// Explores the protocol, and shows how much that was.
fn hold(bounds: Bounds, expected: &[Reached]) {
    let explored = explore(bounds, None);
    let Explored { states, depth, .. } = explored;
    let name = bounds.name;
    println!("{name}: {states} states, {depth} steps deep, all properties hold");
    assert!(explored.violations.is_empty(), "{explored:#?}");
    for reached in expected {
        let is_reached = explored.reached.contains(reached);
        assert!(is_reached, "{name} never comes to {reached:?}");
    }
}

/// Explores a variant, and shows the execution that breaks it.
fn loses(bounds: Bounds, broken: Broken, expected: Violation) {
    let explored = explore(bounds, Some(broken));
    let name = bounds.name;
    let trace = explored.violations.get(&expected);
    let trace =
        trace.unwrap_or_else(|| panic!("{broken:?} is not caught by {expected:?}: {explored:#?}"));
    println!("{name}, {broken:?}: {expected:?} after {} steps", trace.len());
    for step in trace {
        println!("    {step}");
    }
}

mod window {
    use super::*;

    #[test]
    fn every_execution_holds_every_property() {
        hold(
            Bounds::WINDOW,
            &[
                Reached::Delivered,
                Reached::DeliveredAll,
                Reached::RefusedRepetition,
                Reached::Blocked,
                Reached::UsedAdvertisedLimit,
                Reached::RefusedControlAgain,
                Reached::Voided,
                Reached::CancelledTooLate,
                Reached::CancelledLongAgo,
            ],
        );
    }

    #[test]
    fn an_id_that_is_not_marked_is_delivered_twice() {
        loses(Bounds::WINDOW, Broken::MarksNothing, Violation::DeliveredTwice);
    }

    #[test]
    fn voided_without_a_mark_is_delivered() {
        let expected = Violation::VoidedAndDelivered;
        loses(Bounds::WINDOW, Broken::VoidsWithoutMark, expected);
    }

    #[test]
    fn a_client_without_a_limit_uses_ids_beyond_the_window() {
        loses(Bounds::WINDOW, Broken::IgnoresLimit, Violation::OutOfRange);
    }

    #[test]
    fn a_server_that_advertises_ahead_has_not_that_limit() {
        let expected = Violation::FalseLimit;
        loses(Bounds::WINDOW, Broken::AdvertisesAhead, expected);
    }

    #[test]
    fn control_packets_without_a_window_are_taken_twice() {
        let expected = Violation::ControlTwice;
        loses(Bounds::WINDOW, Broken::HasNoControlWindow, expected);
    }

    #[test]
    fn a_repetition_that_is_sealed_anew_reuses_a_nonce() {
        let expected = Violation::NonceReused;
        loses(Bounds::WINDOW, Broken::SealsRepetitionAnew, expected);
    }
}

mod epochs {
    use super::*;

    #[test]
    fn every_execution_holds_every_property() {
        hold(
            Bounds::EPOCHS,
            &[
                Reached::Delivered,
                Reached::DeliveredAll,
                Reached::RefusedRepetition,
                Reached::RefusedControlAgain,
                Reached::NewEpoch,
                Reached::FinishedEpoch,
                Reached::RefusedDroppedEpoch,
                Reached::RefusedOtherAck,
            ],
        );
    }

    #[test]
    fn marks_that_end_with_their_epoch_deliver_twice() {
        let expected = Violation::DeliveredTwice;
        loses(Bounds::EPOCHS, Broken::ForgetsMarks, expected);
    }

    #[test]
    fn control_numbers_that_restart_refuse_new_control_packets() {
        let expected = Violation::ControlRefused;
        loses(Bounds::EPOCHS, Broken::RestartsControlNumbers, expected);
    }

    #[test]
    fn an_early_epoch_done_takes_the_servers_key() {
        let expected = Violation::ServerKeyLost;
        loses(Bounds::EPOCHS, Broken::SaysDoneEarly, expected);
    }

    #[test]
    fn an_epoch_done_that_is_not_repeated_may_be_lost() {
        loses(Bounds::EPOCHS, Broken::SaysDoneOnce, Violation::NeverEnds);
    }

    #[test]
    fn keys_that_epoch_done_leaves_open_old_records() {
        let expected = Violation::DroppedEpochOpened;
        loses(Bounds::EPOCHS, Broken::KeepsOldKeys, expected);
    }

    #[test]
    fn an_ack_of_another_epoch_takes_the_clients_key() {
        let expected = Violation::ClientKeyLost;
        loses(Bounds::EPOCHS, Broken::TakesAnyAck, expected);
    }

    #[test]
    fn a_client_that_does_not_wait_for_the_ack_loses_its_key() {
        let expected = Violation::ClientKeyLost;
        loses(Bounds::EPOCHS, Broken::MovesTwice, expected);
    }
}

#[test]
fn window_and_epochs_together_hold_every_property() {
    hold(
        Bounds::BOTH,
        &[
            Reached::DeliveredAll,
            Reached::Blocked,
            Reached::UsedAdvertisedLimit,
            Reached::FinishedEpoch,
            Reached::RefusedDroppedEpoch,
        ],
    );
}

#[test]
fn a_message_of_two_records_holds_every_property() {
    hold(
        Bounds::SPANNING,
        &[
            Reached::DeliveredAll,
            Reached::SpannedEpochs,
            Reached::FinishedEpoch,
            Reached::Voided,
            Reached::CancelledTooLate,
        ],
    );
}

#[test]
fn a_server_that_looks_at_the_floor_first_says_seen_of_half_a_message() {
    let expected = Violation::FalseSeen;
    loses(Bounds::SPANNING, Broken::LooksAtTheFloorFirst, expected);
}

mod restart {
    use super::*;

    #[test]
    fn every_execution_holds_every_property() {
        hold(
            Bounds::RESTART,
            &[
                Reached::Restarted,
                Reached::RefusedOldSession,
                Reached::DeliveredAfterRestart,
                Reached::FinishedEpoch,
            ],
        );
    }

    #[test]
    fn keys_that_outlive_a_restart_reuse_a_nonce() {
        let expected = Violation::NonceReused;
        loses(Bounds::RESTART, Broken::KeepsKeysOverRestart, expected);
    }
}
