// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How datagrams leave and arrive: the [`Carrier`] trait and the words it is spoken in.
//!
//! A carrier moves opaque datagrams between addresses and may lose, repeat or reorder them.
//!
//! 1. It says once what it can do ([`Capabilities`]), and the protocol core obeys.
//! 2. The core writes datagrams into one buffer and describes them with a [`Transmit`]. The buffer
//!    makes a [`Batch`] of both, and the carrier sends it, by one system call where it can.
//! 3. In the other direction a carrier hands over what has arrived together as an [`Arrival`], in
//!    memory of its own.
//! 4. A carrier with hardware that seals records has a [`KeyStore`]; batches then name records that
//!    it seals on the way ([`Unsealed`]), and may be one stream that it cuts
//!    ([`Layout::Segmented`]). In the other direction such a carrier may open records on the way,
//!    and says which ([`Opened`]).
//! 5. A carrier with hardware that seals whole packets has [`Associations`]; batches then name the
//!    one that their datagrams leave under, and arrivals the one that they came under.
//!
//! Not here: sockets (`smt-io`), the meaning of the bytes (`smt-wire`), any clock or thread.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod arrival;
mod associations;
mod batch;
mod capabilities;
mod carrier;
mod error;
mod keys;
pub mod limits;
mod path;
#[cfg(feature = "std")]
mod readiness;
mod transmit;

pub use arrival::{Arrival, Ecn, Marks};
pub use associations::{
    ASSOCIATION_KEY_BYTES, Association, AssociationHandle, AssociationKey, Associations,
    NotInstalled,
};
pub use batch::{Batch, FlowId, Layout, SEGMENT_HEADER_BYTES};
pub use capabilities::{Capabilities, HeaderCopy, Sealing};
pub use carrier::{Carrier, Wait};
pub use error::{ReceiveError, SendError};
pub use keys::{
    KeyHandle, KeyStore, NoRoom, Opened, ReceivingFlow, ReceivingKey, TAG_BYTES, Unsealed,
};
pub use path::Path;
#[cfg(feature = "std")]
pub use readiness::Readiness;
pub use transmit::Transmit;
