// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes of this system.

use smt_replica::Digest;

/// The name of this system in hashes and journals.
pub(crate) const SYSTEM: &str = "peer review";

/// The hash of `parts` under a domain.
pub(crate) fn digest(domain: &str, parts: &[&[u8]]) -> Digest {
    smt_replica::digest(SYSTEM, domain, parts)
}
