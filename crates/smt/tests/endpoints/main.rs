// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients and servers over real sockets, as a user has them. One file per behaviour.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod a_carrier_may_fail;
mod a_carrier_may_seal_records;
mod a_deadline_holds;
mod a_lost_peer_is_replaced;
mod a_nic_may_seal_packets;
mod a_nic_may_seal_records;
mod a_pool_avoids_servers_that_are_down;
mod a_reply_leaves_before_the_end;
mod a_request_runs_at_most_once;
mod a_runtime_that_ends_leaves_nobody_waiting;
mod a_shutdown_finishes_what_runs;
mod a_state_file_has_one_server;
mod addresses_are_found_or_explained;
mod an_end_frees_the_address;
mod an_idle_endpoint_rests;
mod any_carrier_serves_every_kind_of_endpoint;
mod any_driver_serves_tasks;
mod both_sides_call;
mod calls_come_in_parts;
mod certificates_are_revoked;
mod certificates_decide;
mod choices_are_honoured;
mod closing_is_told_at_once;
mod credentials_are_replaced_while_a_server_runs;
mod dropping_cancels;
mod exported_secrets_begin_other_sessions;
mod failed_messages_are_sent_again;
mod handed_over_sessions_begin_once;
mod keys_are_renewed_under_load;
mod losses_are_repaired;
mod many_calls_run_once_each;
mod messages_of_every_size_arrive;
mod messages_that_nobody_takes_are_bounded;
mod one_endpoint_has_many_peers;
mod one_server_takes_several_kinds;
mod one_way_messages_arrive;
mod polled_endpoints_need_no_thread;
mod registered_keys_establish_sessions;
mod replies_that_nobody_acknowledges_are_bounded;
mod senders_of_parts_learn_how_the_call_ended;
mod servers_choose_messages;
mod servers_choose_their_clients;
mod sessions_are_resumed;
mod sessions_begin_by_tickets;
mod sessions_end_before_their_certificates;
mod sessions_export_secrets;
mod sessions_without_trust_end;
mod shards_work_side_by_side;
mod spiffe_ids_name_peers;
mod tasks_send_together;
mod too_many_callers_wait;
mod trust_is_replaced_while_endpoints_run;
