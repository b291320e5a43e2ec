// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device behind its rings, as a host has it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod a_device_does_not_believe_its_host;
mod an_engine_is_anybodys;
mod captured_ktls_segments;
mod esp;
mod interleavings;
mod nic_and_cpu_seal_alike;
mod packets_are_received;
mod psp;
mod ring_host;
mod support;
mod urgent_queues_are_served_first;
