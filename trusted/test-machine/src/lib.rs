// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A machine for tests of devices: a TPM in software ([`Tpm`]), the log of a boot ([`Firmware`]), a
//! [`Directory`]. Only tests and examples depend on this.
#![allow(clippy::unwrap_used, reason = "only tests use it, and they may panic")]
#![forbid(unsafe_code)]

mod directory;
mod firmware;
mod tpm;

pub use directory::Directory;
pub use firmware::Firmware;
pub use tpm::{Process, Tpm, left_out};
