// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn on the engine with a stock quinn server, over a network in memory and a clock of its own.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../certificates/mod.rs"]
mod files;
mod network;
mod server;
mod setting;
mod world;

use std::time::Duration;

use kit_offload::OffloadCounts;
use kit_process::Cipher;
use kit_process::request::Request;
use smt_nic::quic::AdmissionPolicy;

use crate::setting::{SETTING, Setting};
use crate::world::{World, run};

/// At least 99 % of the eligible packets, of which there are at least so many.
fn assert_opened(counts: &OffloadCounts, eligible: u64) {
    assert!(counts.eligible >= eligible, "{counts:?}");
    assert!(counts.opened * 100 >= counts.eligible * 99, "{counts:?}");
    assert!(counts.taken > 0 && counts.taken <= counts.opened, "{counts:?}");
}

#[test]
fn the_engine_opens_the_packets_of_a_transfer_and_seals_those_of_the_client() {
    for cipher in [Cipher::Aes128, Cipher::Aes256, Cipher::Chacha20] {
        let outcome = run(Setting { cipher, ..SETTING });
        assert_opened(&outcome.counts, 2_000);
        assert!(outcome.short_of_client > 10, "{:?}", outcome.counts);
        assert!(outcome.counts.sealed >= outcome.short_of_client, "{:?}", outcome.counts);
        assert_eq!(outcome.counts.sealed_in_software, 0);
        assert_eq!(outcome.entries.0, 1);
    }
}

#[test]
fn a_transfer_with_loss_and_reordering_is_opened_by_the_engine() {
    let outcome = run(Setting { lost: 10, late: 50, ..SETTING });
    assert_opened(&outcome.counts, 2_000);
}

#[test]
fn an_upload_leaves_sealed_by_the_engine() {
    let outcome = run(Setting {
        request: Request { download: 1, upload: 3_000_000 },
        lost: 10,
        late: 50,
        ..SETTING
    });
    assert!(outcome.counts.sealed > 2_000, "{:?}", outcome.counts);
    assert_eq!(outcome.counts.sealed_in_software, 0);
}

#[test]
fn key_updates_of_either_side_are_followed() {
    for (key_updates, server_updates) in [(3, 0), (0, 1), (2, 1)] {
        let outcome = run(Setting { key_updates, server_updates, lost: 5, late: 20, ..SETTING });
        assert_opened(&outcome.counts, 2_000);
        // quinn makes none before the one before it is acknowledged, so that few may be made.
        assert!(outcome.counts.updates >= 1, "{:?}", outcome.counts);
        assert_eq!(outcome.counts.sealed_in_software, 0);
    }
}

#[test]
fn connection_ids_that_are_replaced_are_followed() {
    // Without loss: a lost NEW_CONNECTION_ID frame is repeated in a form that peers refuse.
    let outcome = run(Setting { id_lifetime: Some(Duration::from_millis(10)), ..SETTING });
    assert_opened(&outcome.counts, 2_000);
    // Five are there without replacement.
    assert!(outcome.counts.ids > 5, "{:?}", outcome.counts);
    assert!(outcome.entries.1 <= 8);
}

#[test]
fn a_client_whose_address_changes_stays_offloaded() {
    let outcome = run(Setting { rebind_after: Some(60), ..SETTING });
    assert_opened(&outcome.counts, 2_000);
}

#[test]
fn forged_packets_are_opened_by_neither_and_change_nothing() {
    let outcome = run(Setting { forged: 200, ..SETTING });
    let counts = outcome.counts;
    assert!(outcome.packets >= 2_000);
    // Forged ones with a known id are eligible, and do not open.
    assert!(counts.opened >= 2_000 && counts.opened < counts.eligible, "{counts:?}");
    assert_eq!(counts.left_to_software, 0, "{counts:?}");
}

#[test]
fn a_driver_without_room_leaves_the_connection_to_software() {
    let outcome = run(Setting { connections_max: 0, ..SETTING });
    let counts = outcome.counts;
    assert_eq!((counts.eligible, counts.opened, counts.sealed), (0, 0, 0));
}

#[test]
fn a_client_that_moves_to_another_address_stays_offloaded() {
    let outcome = run(Setting { is_moving: true, ..SETTING });
    assert_opened(&outcome.counts, 2_000);
    assert_eq!(outcome.counts.sealed_in_software, 0);
}

#[test]
fn early_packets_are_quinns_and_the_rest_is_the_engines() {
    let mut world = World::new(Setting {
        is_early: true,
        request: Request { download: 1_000_000, upload: 5_000 },
        ..SETTING
    });
    world.transfer();
    assert_eq!(world.early, 0, "there is no session to resume yet");
    world.transfer();
    assert_eq!(world.early, 1, "the server has taken 0-RTT packets");
    let outcome = world.outcome();
    assert_eq!((outcome.counts.admitted, outcome.lost), (2, 0));
    assert_opened(&outcome.counts, 1_400);
}

#[test]
fn a_connection_that_is_refused_is_admitted_when_there_is_room() {
    let mut world = World::new(Setting {
        connections_max: 1,
        window: 40_000,
        request: Request { download: 300_000, upload: 0 },
        ..SETTING
    });
    world.transfer();
    let before = world.outcome().counts;
    assert_eq!((before.admitted, before.refused), (1, 0));
    // The first connection keeps its entry while it drains, which is in the second's transfer.
    world.set_download(8_000_000);
    world.transfer();
    let outcome = world.outcome();
    assert!(outcome.counts.refused > 10, "{:?}", outcome.counts);
    assert_eq!((outcome.counts.admitted, outcome.lost), (2, 0));
    let opened = outcome.counts.opened - before.opened;
    assert!(opened > 1_000 && opened < 6_000, "{opened}");
    assert_opened(&outcome.counts, 1_000);
}

#[test]
fn a_connection_is_admitted_when_it_has_had_bytes_enough_in_any_key_phase() {
    let outcome = run(Setting {
        policy: AdmissionPolicy { bytes_min: 1_500_000, evicted_after: None },
        // One comes before the entry, and one behind it; quinn makes none before the keys of the
        // one before are forgotten, for which a small window leaves the time.
        key_updates: 2,
        window: 12_000,
        ..SETTING
    });
    let counts = outcome.counts;
    assert_eq!((counts.admitted, outcome.lost), (1, 0));
    assert!(counts.refused > 500, "{counts:?}");
    assert!(counts.updates >= 1, "{counts:?}");
    assert_opened(&counts, 800);
    assert!(counts.opened < 1_500, "{counts:?}");
}

#[test]
fn entries_that_are_evicted_in_mid_transfer_cost_no_packet() {
    // One entry that two take from each other, and two that three do.
    for (connections, connections_max) in [(2, 1), (3, 2)] {
        let outcome = run(Setting {
            connections,
            connections_max,
            policy: AdmissionPolicy { bytes_min: 0, evicted_after: Some(0) },
            key_updates: 2,
            server_updates: 1,
            request: Request { download: 1_000_000, upload: 0 },
            ..SETTING
        });
        let counts = outcome.counts;
        assert!(counts.evicted > 10, "{counts:?}");
        assert_eq!(outcome.entries.0, connections_max as usize);
        assert_eq!(outcome.lost, 0, "{counts:?}");
        assert!(counts.opened_without_entry >= counts.evicted, "{counts:?}");
        assert_opened(&counts, 500);
    }
}

#[test]
fn ten_thousand_packets_open_as_the_library_opens_them() {
    let outcome = run(Setting {
        request: Request { download: 13_500_000, upload: 0 },
        lost: 10,
        late: 50,
        key_updates: 2,
        ..SETTING
    });
    assert_opened(&outcome.counts, 10_000);
}

/// The same for the number; docs/QUIC-NIC.md has the command.
#[test]
#[ignore = "a million packets"]
fn a_million_packets_open_as_the_library_opens_them() {
    let outcome = run(Setting {
        request: Request { download: 1_330_000_000, upload: 0 },
        lost: 10,
        late: 50,
        key_updates: 5,
        ..SETTING
    });
    assert_opened(&outcome.counts, 1_000_000);
    // quinn drops repetitions alone.
    assert!(outcome.counts.taken * 100 > outcome.counts.opened * 99);
}
