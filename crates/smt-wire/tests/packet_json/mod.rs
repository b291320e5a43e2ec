// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/packets.json`: fields to bytes, and bytes to fields (`vectors/README.md` names them).
//!
//! Shared by the example that writes the file and the test that reads it. u64 are 16 hex digits,
//! since JSON readers may round them; other integers are numbers; bytes are hex.

pub(crate) mod from_json;
pub(crate) mod to_json;

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of lower-case hex.
pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "hex has two digits per byte");
    (0..hex.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&hex[place..place + 2], 16).expect("hex digits"))
        .collect()
}
