// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Behaviours of the protocol core, one per file, with virtual time and a network that obeys rules.
//!
//! One binary, so that it is linked once. Random tests print their seed; `SMT_SEED=` repeats it.
#![cfg(test)]

mod support;

mod a_body_behind_a_backlog_holds_no_other;
mod a_bundle_is_judged_by_its_members;
mod a_call_can_be_given_up;
mod a_client_that_acknowledges_nothing_gets_its_share;
mod a_cookie_shows_an_address;
mod a_forged_packet_never_kills_a_message;
mod a_full_window_blocks_and_unblocks;
mod a_handshake_survives_an_attacker;
mod a_library_that_cannot_try_loses_packets;
mod a_lost_call_is_asked_about_soon;
mod a_message_is_never_cut_short;
mod a_packet_from_elsewhere_is_of_no_session;
mod a_peer_that_breaks_the_rules_gains_nothing;
mod a_request_runs_at_most_once;
mod a_server_that_takes_no_client_says_so;
mod a_silent_peer_is_asked_a_bounded_number_of_times;
mod an_acknowledgement_ends_what_is_kept;
mod an_attacker_on_the_path_achieves_nothing;
mod an_idle_endpoint_sets_no_timers;
mod calls_of_every_size_are_answered;
mod ciphers_tables_are_kept_for_few_sessions;
mod control_packets_are_authentic;
mod control_packets_of_each_stripe_are_numbered_apart;
mod datagram_sizes_are_discovered;
mod flights_are_taken_in_turn;
mod grants_let_short_messages_overtake;
mod keys_are_renewed_under_load;
mod memory_is_bounded;
mod messages_arrive_exactly_once_through_loss;
mod messages_lost_together_are_not_repeated_together;
mod messages_of_equal_length_share_batches;
mod messages_that_stay_lost_are_repeated_ever_more_rarely;
mod messages_wait_until_they_are_accepted;
mod other_geometries_work;
mod padding_hides_lengths;
mod pulls_keep_to_the_pace_of_the_link;
mod sessions_are_shared_between_networks;
mod sessions_do_not_mix;
mod sessions_end_in_order;
mod sessions_export_secrets;
mod shards_answer_for_themselves_alone;
mod slow_messages_of_one_peer_hold_up_no_other;
mod small_calls_take_one_datagram_each_way;
mod small_messages_end_whatever_becomes_of_their_bundles;
mod small_messages_that_wait_leave_together;
mod the_carriers_abilities_are_obeyed;
mod trimmed_packets_are_asked_for_at_once;
mod unauthenticated_packets_cost_little;
