// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How datagrams leave and arrive: the [`Carrier`] trait and the words it is spoken in.
//!
//! A carrier moves opaque datagrams between addresses and may lose, repeat or reorder them. The
//! protocol core writes a batch of equal-size datagrams into one buffer and describes it with a
//! [`Transmit`]; a carrier sends the batch, by one system call where it can. In the other direction
//! a carrier fills one buffer with a batch that [`Received`] describes and cuts apart again.
//!
//! Not here: sockets (`smt-io`), the meaning of the bytes (`smt-wire`), any clock or thread.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrival;
mod capabilities;
mod carrier;
mod error;
pub mod limits;
mod path;
mod received;
mod transmit;

pub use arrival::{Arrival, Ecn, Marks};
pub use capabilities::{Capabilities, HeaderCopy, Sealing};
pub use carrier::{Carrier, Wait};
pub use error::{ReceiveError, SendError};
pub use path::Path;
pub use received::Received;
pub use transmit::Transmit;
