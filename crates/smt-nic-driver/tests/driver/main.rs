// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver before the model of a NIC.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod keys_change_while_nothing_is_sent;
mod psp;
mod records_arrive_opened;
mod rig;

mod a_session_takes_one_context_a_queue;
mod urgent_messages_leave_first;
mod what_leaves_is_what_software_would_seal;
