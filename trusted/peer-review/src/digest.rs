// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes, each with a domain of its own.

use sha2::{Digest as _, Sha256};

/// SHA-256.
pub type Digest = [u8; 32];

/// The hash of `parts` under a domain. Each part is preceded by its length.
pub(crate) fn digest(domain: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(b"SMT peer review ");
    hash.update((domain.len() as u64).to_be_bytes());
    hash.update(domain);
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
