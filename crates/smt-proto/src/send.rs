// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice of what leaves next (SPEC §9.1): queues of senders, messages and control packets, and
//! the batch that they fill.

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod control_queue;
pub(crate) mod flight_rest;
pub(crate) mod message_queue;
pub(crate) mod pending_acks;
pub(crate) mod ready_queue;
