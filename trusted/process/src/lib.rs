// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members of a group as processes: what all systems have in common, whatever they agree on.
//!
//! 1. [`NewGroup`] makes keys, certificates and configuration files; [`Source`] and [`MemberFile`]
//!    read them.
//! 2. [`State`] is a member's directory: the epoch of its device, and the log of that epoch.
//! 3. A [`System`] is the state machine with its log, and [`Process`] runs it over SMT.
//! 4. A [`Caller`] makes requests as a client, and waits for answers.
#![forbid(unsafe_code)]

mod call_error;
mod caller;
mod calls;
mod client_bytes;
mod exit;
mod keys;
mod log;
mod member_file;
mod metrics_file;
mod new_group;
mod new_log;
mod own_secret;
mod process;
mod source;
mod state;
#[cfg(test)]
mod test_mesh;

pub use call_error::CallError;
pub use caller::{Caller, ClientProtocol, Terms};
pub use client_bytes::client_bytes;
pub use exit::failure;
pub use keys::{PublicKey, is_public_key, public_key};
pub use log::LogArguments;
pub use member_file::{MemberFile, Role, Serving, ServingAlone};
pub use new_group::{InitError, NewGroup};
pub use new_log::NewLog;
pub use own_secret::{DeviceEntry, OwnSecret, SecretField};
pub use process::{Process, ProcessError, System, Taken};
pub use smt_replica::Completion;
pub use source::{ClientEntry, ConfigError, Source, read_secret, refuse_count};
pub use state::{State, StateError, create, log_path, rename, replace};
