// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The few commands of a TPM 2.0 that a device needs, over the TPM's own byte protocol (*TPM 2.0
//! Library Specification*, parts 1 to 3).
//!
//! The host owns the way to the TPM: it may drop, alter, repeat and invent commands and responses.
//! Therefore each command that matters is in a session whose key only this process and the TPM
//! know (`session.rs`): its salt is encrypted to a key inside the TPM. The TPM's answers have a MAC
//! over a nonce of this process, so a made-up or repeated one is refused, and secrets of the device
//! travel encrypted.
//!
//! The secret of a [`Credential`] comes back in clear. It keeps nothing from the host, which can
//! have the TPM open the credential itself: it proves to a manufacturer that a TPM with both keys
//! is within reach, and authenticates one claim of one connection.

mod buffer;
mod commands;
mod counter;
pub mod derivation;
mod endorsement_key;
mod nv;
mod quote;
mod quoting_template;
mod register;
mod seal;
mod session;
mod storage_key;
mod transport;

pub use counter::Counter;
pub use endorsement_key::{Activated, Credential, EndorsementKind, endorsement_certificate};
pub use quote::{Quote, Quoted, QuotingKey};
pub use quoting_template::{NAME_LEN, QuotingKeyFault, judge as judge_quoting_key, name_of};
pub use register::{Register, extended};
pub use seal::Sealed;
pub use storage_key::{POINT_LEN, StorageKey};
pub use transport::Transport;

use std::io;

/// Why a TPM does not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TpmError {
    /// Nothing answers there.
    #[error("no TPM answers at {path}")]
    Missing {
        /// The path or address.
        path: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The TPM refuses a command.
    #[error("the TPM refuses {command}: response code {code:#x} (`tpm2_rc_decode {code:#x}`)")]
    Refused {
        /// The command's name in the specification.
        command: &'static str,
        /// The response code.
        code: u32,
    },
    /// The response is none, or not that of this TPM to this command.
    #[error("the answer to {0} is not this TPM's: the host or something on the way has changed it")]
    Forged(&'static str),
    /// It is a TPM, but another one than the device was made with.
    #[error("this is not the TPM that the device was made with")]
    OtherTpm,
    /// The way to the TPM broke.
    #[error("the way to the TPM broke")]
    Transport(#[from] io::Error),
}
