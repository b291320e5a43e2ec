// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP between a TUN device and sockets (Linux): the driver of `smt-esp`.
//!
//! 1. A [`Config`] is read from a file; what is wrong in it is told with line and field.
//! 2. [`Tunnel::open`] makes the TUN device and the sockets under ESP, and gives each worker the
//!    associations of its SPIs.
//! 3. A worker ([`Tunnel::run`]) reads super-packets from its queue of the device, cuts and seals
//!    them, and sends the packets by one call; it opens what its socket gets, coalesces it and
//!    writes super-packets to the device. A flow stays on its worker by its SPI.
//! 4. [`control`] answers on a Unix socket: statistics by the names of `ip -s xfrm`, and
//!    associations that come, are replaced and go while packets flow.
//!
//! Not here: agreement on keys, but for its messages ([`agreement`]).
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod agreement;
mod association;
mod config;
pub mod control;
mod event;
mod icmp;
mod setup;
mod socket_file;
mod statistics;
mod tunnel;
mod underlay;
mod used_keys;
mod worker;

pub use association::{
    AgreedAssociation, AssociationError, AssociationSpec, Direction, LifetimeSpec, ModeName,
    SuiteName, random_spi,
};
pub use config::{Config, ConfigError, PolicySpec, read_associations};
pub use event::{Event, EventLog};
pub use setup::SetupError;
pub use socket_file::bind_alone;
pub use statistics::{AssociationCounts, NamedCount, TunnelStatistics, WorkerCounts};
pub use tunnel::{HandleError, OpenTunnelError, Tunnel, TunnelHandle};
pub use used_keys::UsedKeysError;
