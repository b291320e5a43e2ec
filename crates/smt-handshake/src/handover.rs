// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions that are agreed on in one process and used in another (SPEC §7.5).
//!
//! Flow: 1. two control processes have a session, and export one secret of it for the two processes
//!    that are to use it 2. each makes a [`Handover`] of it, and gives it to its process 3. that
//!    process has an [`Adopter`], which takes the value once, as the key exchange of its endpoint
//! 4. both adopters add a fresh random, and each confirms the other's by CONFIRM. No number is ever
//!    sealed under a key that another process has had.
//!
//! A value begins one session at most: it names the two adopters that it is for, each of which is
//! one run of one process, and the first CONFIRM uses it up.

mod adopted;
mod adopter;
mod value;
#[cfg(test)]
mod vectors;

pub use adopter::Adopter;
pub use value::{
    AdopterId, EXPORTED_LEN, HANDOVER_LABEL, HANDOVER_LEN_MAX, Handover, HandoverTerms,
};

use crate::external_psk::key::RegisteredKeyError;
use crate::limits::{HANDOVER_LIFE_MAX, HANDOVER_NAME_LEN_MAX};

/// Why a session was not handed over.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// A value begins one session: it was taken before.
    #[error(
        "caller: the session {name} was adopted before; have another one handed over, since a \
         value begins one session"
    )]
    AdoptedBefore {
        /// The value's name.
        name: String,
    },
    /// The value is too old to be adopted.
    #[error(
        "environment: the session {name} was to be adopted {late} s earlier; have another one \
         handed over, and look at the clocks of both hosts, or restart this process, if its clock \
         was ahead"
    )]
    Expired {
        /// The value's name.
        name: String,
        /// Seconds since its end.
        late: u64,
    },
    /// Too many values wait, or are remembered.
    #[error("limit: {count} adopted sessions are remembered already; adopt fewer a minute")]
    Full {
        /// How many.
        count: usize,
    },
    /// Too many values of one peer wait.
    #[error(
        "limit: {count} adopted sessions with {peer_name} wait for their handshake already; let it \
         begin those, or adopt fewer a minute"
    )]
    FullOfPeer {
        /// The name that the peer has proved.
        peer_name: String,
        /// How many.
        count: usize,
    },
    /// The bytes are no value.
    #[error("peer: the process that hands over sessions has sent no session: {what}")]
    Malformed {
        /// The fault, in words.
        what: &'static str,
    },
    /// The name of the peer is empty, too long, or has control characters.
    #[error(
        "caller: the peer's name is no line of 1 to {HANDOVER_NAME_LEN_MAX} bytes; give the name \
         that it has proved"
    )]
    Name,
    /// The session that a value is made of has ended, or has no secrets.
    #[error("{0}")]
    NoSecret(String),
    /// The value is for another process, or for an earlier run of this one.
    #[error(
        "caller: the session {name} is for the process {meant}, and this one is {own}; have one \
         handed over to this process"
    )]
    OtherProcess {
        /// The value's name.
        name: String,
        /// The adopter that it is for.
        meant: AdopterId,
        /// This adopter.
        own: AdopterId,
    },
    /// The system gives no random bytes.
    #[error("environment: the system gives no random bytes")]
    Random,
    /// The two adopters of a value are one.
    #[error("caller: a session is handed over to two ends that cannot have one: {0}")]
    Terms(#[from] RegisteredKeyError),
    /// The value could be adopted for too long.
    #[error(
        "caller: the session {name} could be adopted for {seconds} s; at most {HANDOVER_LIFE_MAX} \
         are permitted"
    )]
    TooLong {
        /// The value's name.
        name: String,
        /// Seconds until its end.
        seconds: u64,
    },
    /// The value has a version that this implementation does not know.
    #[error(
        "environment: the session that is handed over has version {found}, and this process knows \
         {known}; use the same release for both"
    )]
    Version {
        /// The version found.
        found: u8,
        /// The version known.
        known: u8,
    },
}
