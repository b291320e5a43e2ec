// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames between members.

use serde::{Deserialize, Serialize};
use smt_attestation::{ATTESTATION_LEN, Attestation};
use smt_device_client::MESSAGE_LEN_MAX;

use crate::memory::{Denied, Region, RegionKey};

/// A message with its attestation, as it travels: 64 bytes, and the message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attested {
    /// The attestation.
    pub attestation: Attestation,
    /// The attested bytes.
    pub message: Vec<u8>,
}

impl Attested {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.attestation.0[..], &self.message].concat()
    }

    /// Reads what [`Attested::encode`] wrote; `None` also if it is more than any device attests.
    /// Verifies nothing.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (attestation, message) = bytes.split_first_chunk::<ATTESTATION_LEN>()?;
        if message.len() > MESSAGE_LEN_MAX {
            return None;
        }
        Some(Self { attestation: Attestation(*attestation), message: message.to_vec() })
    }
}

/// The content of an attested message.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Operation {
    /// The device of the member that it is for; all members without one.
    pub(crate) to: Option<u32>,
    pub(crate) action: Action,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Action {
    Message(Vec<u8>),
    Announce(Vec<Region>),
    Read { ticket: u64, key: RegionKey, offset: u64, length: u64 },
    Write { ticket: u64, key: RegionKey, offset: u64, bytes: Vec<u8> },
    ReadDone { ticket: u64, result: Result<Vec<u8>, Denied> },
    WriteDone { ticket: u64, result: Result<(), Denied> },
}
