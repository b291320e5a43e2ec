// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes as people read them, and the name of a key that no certificate names.

use smt_record::{AwsLc, HashProvider};

/// SHA-256 of a public key (its SubjectPublicKeyInfo), in hexadecimal digits.
pub(crate) fn fingerprint(public_key: &[u8]) -> String {
    hex(&AwsLc.sha256(&[public_key]))
}

/// The bytes of a hash in hexadecimal digits.
pub(crate) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
