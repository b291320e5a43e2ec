// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trusted device as a process of its own.
//!
//! 1. [`Store::create`] makes a device: a directory with its keys, which a TPM seals if there is
//!    one.
//! 2. [`run`] opens it, takes the next epoch ([`Store::next_epoch`]), gives up all rights that it
//!    does not need ([`confinement`]), has its keys in memory that nobody else reads
//!    ([`SecretBox`]), and serves hosts over rings ([`Server`]).
//! 3. A device that remembers logs finds where they end ([`Store::open_logs`]), and seals each new
//!    end ([`SealedLogs`]).
//! 4. Hosts use it through `smt-device-client`.
//!
//! The host writes requests while the device reads them, stops when it likes, and owns the device's
//! files and the way to its TPM. All of that is refused, or ends its own connection.
//! `trusted/README.md` says what root can do.

pub mod confinement;
mod files;
mod keys_file;
mod process;
mod sealed_logs;
mod secret_memory;
mod server;
mod session;
mod store;
mod store_error;
pub mod tpm;

pub use files::{Files, Slot};
pub use process::{Core, RunError, RunOptions, run};
pub use sealed_logs::SealedLogs;
pub use secret_memory::{Secrecy, SecretBox, clear_stack};
pub use server::Server;
pub use session::Session;
pub use store::Store;
pub use store_error::StoreError;
