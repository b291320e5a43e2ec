// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/transcript.json` is the transcript that the crate makes of its inputs.
//! `vectors/check.py` reads it with another library.

#[path = "../examples/make_vectors/inputs.rs"]
#[expect(dead_code, reason = "the other vectors need more of it")]
mod inputs;
#[path = "../examples/make_vectors/transcript.rs"]
mod transcript;

#[test]
fn the_file_is_what_the_example_makes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/transcript.json");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text == format!("{:#}\n", transcript::all()),
        "write it again: cargo run -p smt-record --example make_vectors"
    );
}
