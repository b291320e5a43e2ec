// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes `vectors/smt_wire.h` and `vectors/smt_offsets.json`:
//! `cargo run -p smt-wire --example make_offsets`.

#[path = "../tests/offset_files/mod.rs"]
mod offset_files;

fn main() -> std::io::Result<()> {
    std::fs::write(offset_files::HEADER, offset_files::header())?;
    std::fs::write(offset_files::JSON, offset_files::json())
}
