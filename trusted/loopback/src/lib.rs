// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Groups of replicas in one process, over SMT on the loopback, for measurements and tests: no key
//! of them outlives the process, and none is secret.
//!
//! 1. [`Places`] are the certificates and addresses of a group.
//! 2. A [`Machine`] is a replica as bytes and ticks; [`Running`] is its thread and endpoint.
//! 3. One member speaks for all clients ([`Places::clients`]): requests and replies are signed, and
//!    name theirs. [`send`] and [`for_client`] put the client's number before a reply.
//! 4. A [`DeviceProcess`] is a device with the group's secret, in a process of its own.
#![forbid(unsafe_code)]

mod device_process;
mod machine;
mod places;
mod running;

pub use device_process::{DeviceProcess, GivenSecret, first_line, run_device};
pub use machine::{Machine, Sender};
pub use places::{Places, PlacesError};
pub use running::{EndError, Running, StartError, for_client, send};
