// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every committed input through its target's body, without a fuzzer.
//!
//! A new target is named here too; a corpus without one, and a target without a corpus, fail.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use smt_fuzz::{
    bundle, capture, credentials, epoch, esp, flight, geometry, handover, hostile_peer,
    inner_header, key_exchange, packet, quic_engine, record, scenario, script, ticket,
    ticket_flight, window,
};

type Body = fn(&[u8]);

/// Every target.
const TARGETS: [(&str, Body); 21] = [
    ("bundle", bundle::check),
    ("capture", capture::check),
    ("connect", |input| with(input, script::check_connect)),
    ("credentials", credentials::check),
    ("endpoint", |input| with(input, script::check_endpoint)),
    ("epoch", |input| with(input, epoch::check)),
    ("esp", |input| with(input, esp::check)),
    ("flight", flight::check),
    ("geometry", |input| with(input, geometry::check)),
    ("handover", handover::check),
    ("hostile_peer", |input| with(input, hostile_peer::check)),
    ("inner_header", inner_header::check),
    ("key_exchange", |input| with(input, key_exchange::check)),
    ("packet", packet::check),
    ("quic_engine", |input| with(input, quic_engine::check)),
    ("record", |input| with(input, record::check)),
    ("scenario", scenario::check),
    ("ticket", ticket::check),
    ("ticket_flight_1", |input| with(input, ticket_flight::check_first)),
    ("ticket_flight_2", |input| with(input, ticket_flight::check_second)),
    ("window", |input| with(input, window::check)),
];

/// Decodes an input as the fuzzer does; too short ones are passed over there too.
fn with<T: for<'a> Arbitrary<'a>>(input: &[u8], check: fn(&T)) {
    if let Ok(case) = T::arbitrary_take_rest(Unstructured::new(input)) {
        check(&case);
    }
}

/// The folder of targets and corpora.
fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_committed_input_passes() {
    let corpora = fuzz().join("corpus");
    for (target, check) in TARGETS {
        let paths = inputs(&corpora.join(target));
        assert!(!paths.is_empty(), "{target} has no corpus");
        for path in paths {
            // The name of the input that panics is the last one shown.
            println!("{}", path.display());
            check(&std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn every_corpus_and_every_target_is_named_here() {
    let root = fuzz();
    let named = |folder: &str| -> BTreeSet<String> {
        let paths = inputs(&root.join(folder));
        let names = paths.iter().map(|path| path.file_stem().unwrap());
        names.map(|name| name.to_str().unwrap().to_owned()).collect()
    };
    let expected: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(named("corpus"), expected);
    assert_eq!(named("fuzz_targets"), expected);
}
