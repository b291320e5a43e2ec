// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The name of a key that no certificate names.

use smt_record::{AwsLc, HashProvider};

/// SHA-256 of a public key (its SubjectPublicKeyInfo), in hexadecimal digits.
pub(crate) fn fingerprint(public_key: &[u8]) -> String {
    let hash = AwsLc.sha256(&[public_key]);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
