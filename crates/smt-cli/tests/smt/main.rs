// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The real program, run as processes: its output, its files, and its exit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod access_log;
mod bad_input;
mod caller_identity;
mod capture;
mod deadlines;
mod dump;
mod forwarder;
mod handing_over;
mod interrupting;
mod keys;
mod large_files;
mod live_key_log;
mod logs;
mod measuring;
mod misuses;
mod openssl;
mod program;
mod reloading;
mod round_trip;
mod sealed_capture;
mod serving;
mod sim;
mod sim_capture;
mod sim_report;
mod sim_scenario;
mod standard_output;
mod texts;
