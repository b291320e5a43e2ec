// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The real program, run as processes: its output, its files, and its exit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod bad_input;
mod capture;
mod dump;
mod forwarder;
mod interrupting;
mod keys;
mod measuring;
mod program;
mod round_trip;
mod serving;
mod sim;
mod sim_capture;
mod sim_report;
mod sim_scenario;
mod texts;
