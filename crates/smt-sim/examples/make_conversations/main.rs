// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes `vectors/conversations/*.json`: `cargo run -p smt-sim --example make_conversations`.
//!
//! Each file has what one endpoint was given and what it then sent and told, step by step
//! (`vectors/README.md`). Nothing is random: the registered-key exchange has randoms from the file,
//! and TLS has all that it draws from a seed.
//! `tests/conversations.rs` plays the files to fresh endpoints.

mod driven;
mod network;
mod scripts;
mod setup;

use std::fs;

fn main() -> std::io::Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/conversations");
    fs::create_dir_all(directory)?;
    for (name, conversation) in scripts::all() {
        fs::write(format!("{directory}/{name}.json"), format!("{conversation:#}\n"))?;
    }
    Ok(())
}
