// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fairness between peers (SPEC §9.2, §10): an honest peer's time beside one that takes all it can,
//! in virtual time.
//!
//! Every scenario has the production core and real handshakes at all honest hosts. Everything
//! repeats from [`SEED`].

mod addresses_that_have_one_session_each_leave_room;
mod handshakes_never_finished_keep_nobody_out;
mod one_address_leaves_room_for_others_of_its_network;
mod one_host_leaves_room_for_other_networks;
mod slow_messages_hold_up_no_upload;
mod support;

/// The seed of all randomness; a scenario that fails prints it.
const SEED: u64 = 1;
