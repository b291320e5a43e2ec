// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies the kernel's sources once for each rule, without that rule. The shipped kernel has no
//! switch that turns a rule off.

use std::path::PathBuf;
use std::{env, fs};

const SOURCES: [&str; 6] = ["attestation", "error", "kernel", "mac", "stream", "vote"];

/// Name of the copy, and what it has instead of which text of `stream.rs`. Each text occurs once.
const BROKEN: &[(&str, &[(&str, &str)])] = &[
    ("skips", &[("if header.counter != expected {", "if header.counter == 0 {")]),
    (
        "takes_any_order",
        &[
            ("if header.counter <= received {", "if header.counter == 0 {"),
            ("if header.counter != expected {", "if header.counter == 0 {"),
        ],
    ),
    (
        "ignores_the_mac",
        &[("if is_genuine.into() {", "if bool::from(is_genuine) || header.length > 0 {")],
    ),
    (
        "moves_on_a_bad_mac",
        &[(
            "let header = self.check(attestation, message)?;\n        let position",
            "let checked = self.check(attestation, message);
            if checked.is_err() && let Some(claim) = attestation.claim() {
                if let Some(position) = self.peer_mut(claim.device) {
                    if let Progress::Taken(counter) = position.progress {
                        position.progress = Progress::Taken(counter + 1);
                    }
                }
            }
            let header = checked?;\n        let position",
        )],
    ),
    ("gives_a_counter_twice", &[("        self.sent = counter;\n", "")]),
    (
        "admits_an_epoch_again",
        &[("|| newcomer.epoch <= known.epoch {", "|| newcomer.epoch < known.epoch {")],
    ),
    ("admits_without_quorum", &[("if ballots.len() < self.quorum {", "if ballots.is_empty() {")]),
    ("restarts_at_zero", &[("own.epoch == first.epoch {", "own.epoch >= first.epoch {")]),
    (
        "takes_votes_in_advance",
        &[(
            "vote.newcomer.nonce == self.own.nonce",
            "vote.newcomer.nonce.len() == self.own.nonce.len()",
        )],
    ),
    (
        "states_a_replaced_epoch",
        &[(
            "matches!(position.progress, Progress::Taken(_)).then_some(position.epoch)",
            "(position.progress != Progress::Unknown).then_some(position.epoch)",
        )],
    ),
    (
        "synchronizes_again",
        &[(
            "if known.progress != Progress::Unknown ||",
            "if known.progress == Progress::Taken(0) ||",
        )],
    ),
];

fn main() {
    let sources = PathBuf::from("../attestation/src");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", sources.display());
    let mut all = String::new();
    for (name, changes) in BROKEN {
        all += &format!("pub mod {name} {{\n");
        for source in SOURCES {
            let text = fs::read_to_string(sources.join(format!("{source}.rs"))).expect("a source");
            let changes = if source == "stream" { *changes } else { &[] };
            all += &format!("pub mod {source} {{\n{}\n}}\n", copy(&text, changes));
        }
        all += "}\n";
    }
    fs::write(out.join("broken.rs"), all).expect("the build's folder is writable");
}

/// The source as a nested module, without comments, tests and what is optional.
fn copy(source: &str, changes: &[(&str, &str)]) -> String {
    let code = source.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut code = lines.collect::<Vec<_>>().join("\n") + "\n";
    for (from, to) in changes {
        assert_eq!(code.matches(from).count(), 1, "the rule is not where it was: {from}");
        code = code.replace(from, to);
    }
    code.replace("crate::", "super::").replace("#[cfg(feature = \"blake3\")]", "#[cfg(any())]")
}
