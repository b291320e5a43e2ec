// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/tickets.json`: whole handshakes by ticket from fixed keys and randoms, and tickets that
//! are malformed. To write the file again:
//! `cargo test -p smt-handshake --lib ticket::vectors::make -- --ignored`.
//!
//! Client, server and verifier of this crate take part in each handshake before it is written.
//! `vectors/check.py` and the Go client of `interop/` derive the same from the specification alone.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod handshake;
mod inputs;
mod malformed;
mod played;

use serde_json::{Value, json};
use smt_record::Suite;

use crate::tls::algorithms::Group;
use handshake::Case;

const CASES: [Case; 6] = [
    Case {
        name: "P-256 with forward secrecy, and a client certificate",
        group: Group::P256,
        suite: Suite::Aes128Gcm,
        has_forward_secrecy: true,
        has_certificate: true,
        early_requests: 0,
    },
    Case {
        name: "P-256 without forward secrecy, and early data",
        group: Group::P256,
        suite: Suite::Aes128Gcm,
        has_forward_secrecy: false,
        has_certificate: false,
        early_requests: 1,
    },
    Case {
        name: "X25519 with forward secrecy",
        group: Group::X25519,
        suite: Suite::ChaCha20Poly1305,
        has_forward_secrecy: true,
        has_certificate: false,
        early_requests: 0,
    },
    Case {
        name: "X25519 without forward secrecy, and a client certificate",
        group: Group::X25519,
        suite: Suite::Aes256Gcm,
        has_forward_secrecy: false,
        has_certificate: true,
        early_requests: 0,
    },
    Case {
        name: "X25519MLKEM768 with forward secrecy, a client certificate and early data",
        group: Group::X25519MlKem768,
        suite: Suite::Aes256Gcm,
        has_forward_secrecy: true,
        has_certificate: true,
        early_requests: 2,
    },
    Case {
        name: "X25519MLKEM768 without forward secrecy",
        group: Group::X25519MlKem768,
        suite: Suite::Aes128Gcm,
        has_forward_secrecy: false,
        has_certificate: false,
        early_requests: 0,
    },
];

fn all() -> String {
    let value = json!({
        "credentials": inputs::credentials(),
        "handshakes": CASES.iter().map(Case::play).collect::<Vec<Value>>(),
        "malformed_tickets": malformed::all(),
    });
    format!("{value:#}\n")
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/tickets.json");

// SMT [6.7-1], [6.7-4], [6.7-14]
#[test]
fn the_file_is_what_is_made_here() {
    let text = std::fs::read_to_string(PATH).unwrap();
    let is_same = text == all();
    assert!(is_same, "write it again, as ticket/vectors.rs says");
}

// SMT [6.7-10]
#[test]
fn a_holder_of_the_tickets_key_adds_no_early_data_behind_a_certificate() {
    for case in &CASES {
        let answer = case.answer_to_added_early_data();
        match case.has_certificate {
            true => assert_eq!(answer.err().unwrap().alert, Some(vec![3]), "{}", case.name),
            false => assert!(answer.is_ok(), "{}", case.name),
        }
    }
}

#[test]
#[ignore = "it writes the file"]
fn make() {
    std::fs::write(PATH, all()).unwrap();
}
