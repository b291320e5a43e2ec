// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes `vectors/records.json`, `key_schedule.json`, `padding.json` and `transcript.json`:
//! `cargo run -p smt-record --example make_vectors`.
//!
//! Deterministic: inputs are chosen here or come from a hash chain, outputs from the crate.
//! `tests/vectors.rs` checks the first three with a second AEAD library, `tests/transcript.rs` that
//! the last is the one made here, and `vectors/check.py` all of them with neither this crate nor
//! its libraries.

mod inputs;
mod key_schedule;
mod padding;
mod records;
mod transcript;

use std::fs;

fn main() -> std::io::Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");
    for (name, value) in [
        ("records", records::all()),
        ("key_schedule", key_schedule::all()),
        ("padding", padding::all()),
        ("transcript", transcript::all()),
    ] {
        fs::write(format!("{directory}/{name}.json"), format!("{value:#}\n"))?;
    }
    Ok(())
}
