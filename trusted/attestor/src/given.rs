// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attestations, signatures and votes of a device, as a log has them.

use serde::{Deserialize, Serialize};
use smt_attestation::Attestation;

/// An attestation in the log: header and MAC.
pub(crate) type Halves = [[u8; 32]; 2];
/// A signature in two halves.
pub type SignatureHalves = [[u8; 32]; 2];

/// Something that a device has given, for the log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Given {
    /// The attestation of a statement.
    Statement([[u8; 32]; 2]),
    /// The attestation of a statement, and the signature of it.
    Signed([[u8; 32]; 2], SignatureHalves),
    /// A vote with the epoch that the device has filled in; nothing if it had no vote.
    Vote(Option<([[u8; 32]; 2], u64)>),
}

pub(crate) fn halves(attestation: &Attestation) -> Halves {
    [attestation.header_bytes(), attestation.mac()]
}

pub(crate) fn whole(halves: &Halves) -> Attestation {
    Attestation::new(&halves[0], &halves[1])
}
