// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attestation kernel: the code that holds the keys of trusted messages.
//!
//! A device attests its host's messages. An attestation is 64 bytes beside the message ([`Header`]
//! has the layout): it names the stream, the device, the device's epoch and a counter, and its MAC
//! covers them with the message. The kernel gives each counter once, so a host that lies cannot
//! make two statements under one counter; a receiver takes counters without a gap, so the host can
//! neither hide nor reorder a statement.
//!
//! 1. The device starts in an epoch that it never had before ([`Kernel::start`]).
//! 2. It opens its stream of each replica group ([`Kernel::open`]), under the group's key.
//! 3. Its host has messages attested ([`Stream::attest`]), and sends them to all members alike.
//! 4. Each member takes them in order ([`Stream::accept`]), or checks a forwarded one without
//!    taking it ([`Stream::check`]).
//! 5. A device that has restarted is in a new epoch. The others admit it by votes
//!    ([`Stream::vote`], [`Stream::admit`]), and the same votes tell it where the streams of the
//!    others stand ([`Stream::synchronize`]).
//!
//! Everything here is the trusted computing base and counts against its limit (`trusted/size`).
//! Not here: where keys and epochs come from, memory that is shared with a hostile host, and
//! transmission.
#![no_std]
#![forbid(unsafe_code)]

mod attestation;
mod error;
mod kernel;
mod mac;
#[cfg(feature = "ed25519")]
mod signature;
mod stream;
mod vote;

pub use attestation::{
    ATTESTATION_LEN, Attestation, DeviceId, Epoch, HEADER_LEN, Header, Kind, MAC_LEN, StreamId,
};
pub use error::{Misuse, Refusal};
pub use kernel::Kernel;
pub use mac::{Algorithm, GroupSecret};
#[cfg(feature = "ed25519")]
pub use signature::{PUBLIC_KEY_LEN, SIGNATURE_LEN, SigningKey, verify_signature};
pub use stream::{Group, Member, Position, Progress, Stream};
pub use vote::{Ballot, Start, VOTE_LEN, Vote};
