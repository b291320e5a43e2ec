// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values as bytes (postcard).

use serde::{Deserialize, Serialize};

/// Bytes of a value of these systems. Memory is all that it can lack.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Reads a value, and refuses bytes after it.
pub fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}
