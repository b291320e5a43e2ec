// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes, each with a system and a domain of its own.

use sha2::{Digest as _, Sha256};

/// SHA-256.
pub type Digest = [u8; 32];

/// The hash of `parts` under a domain of a system. Each part is preceded by its length, so that no
/// two lists of parts have one input.
pub fn digest(system: &str, domain: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(b"SMT ");
    hash.update(system);
    hash.update(b" ");
    hash.update((domain.len() as u64).to_be_bytes());
    hash.update(domain);
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
