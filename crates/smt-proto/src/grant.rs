// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiver-driven scheduling (SPEC §9.2, §9.10): which incoming messages may send more.
//!
//! `scheduler` knows the messages that need grants and shows them to a `policy`: Homa's shortest
//! remaining first (`srpt`) or NDP's pulls (`ndp`).
//! A GRANT is written by `session::send::transmit`, after the policy's decision.

pub(crate) mod ndp;
pub(crate) mod policy;
pub(crate) mod scheduler;
pub(crate) mod srpt;
