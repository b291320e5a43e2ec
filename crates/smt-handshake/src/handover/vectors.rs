// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/handover.json`: from an exporter secret to the values of both sides (SPEC §7.5). To
//! write the file again:
//! `cargo test -p smt-handshake --lib handover::vectors::make -- --ignored`.
//!
//! `vectors/check.py` derives the same from the specification alone.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::{Value, json};
use smt_proto::WallTime;
use smt_record::{AwsLc, Exporter, SessionSecrets, Side, Suite};
use zeroize::Zeroizing;

use super::value::{AdopterId, EXPORTED_LEN, HANDOVER_LABEL, Handover, HandoverTerms};

/// The exporter of a control session: its secret is the byte, again and again.
fn exporter(suite: Suite, byte: u8) -> Exporter {
    let secrets = SessionSecrets::from_exporter(suite, &[0; 32], |out, _, _| {
        out.fill(byte);
        Ok::<_, ()>(())
    });
    secrets.unwrap().exporter
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Case {
    control: Suite,
    suite: Suite,
    side: Side,
    number: u64,
    peer_name: &'static str,
    credentials_end: Option<u64>,
}

const CASES: [Case; 3] = [
    Case {
        control: Suite::Aes128Gcm,
        suite: Suite::Aes256Gcm,
        side: Side::Client,
        number: 0,
        peer_name: "store.example",
        credentials_end: Some(1_900_000_000),
    },
    Case {
        control: Suite::Aes256Gcm,
        suite: Suite::Aes128Gcm,
        side: Side::Server,
        number: 1,
        peer_name: "w",
        credentials_end: None,
    },
    Case {
        control: Suite::ChaCha20Poly1305,
        suite: Suite::ChaCha20Poly1305,
        side: Side::Server,
        number: u64::MAX,
        peer_name: "spiffe://prod.example/søk",
        credentials_end: Some(1),
    },
];

impl Case {
    fn play(&self) -> Value {
        let terms = HandoverTerms {
            client: AdopterId(core::array::from_fn(|place| place as u8)),
            server: AdopterId([0xB5; 16]),
            suite: self.suite,
            valid_until: WallTime::from_secs(1_800_000_060),
            number: self.number,
        };
        let secret = 0xE0 | self.control.code() as u8;
        let mut exported = Zeroizing::new([0; EXPORTED_LEN]);
        exporter(self.control, secret)
            .export(&AwsLc, HANDOVER_LABEL, &terms.context(), &mut exported[..])
            .unwrap();
        let end = self.credentials_end.map(WallTime::from_secs);
        let value = Handover::new(self.side, terms, self.peer_name, end, &exported).unwrap();
        // Both sides read what they wrote, and make a key of it.
        let bytes = value.to_bytes();
        let key = Handover::from_bytes(&bytes).unwrap().key().unwrap();
        let ends = key.ends();
        let (client, server) = match self.side {
            Side::Client => (ends.own, ends.peer),
            Side::Server => (ends.peer, ends.own),
        };
        json!({
            "control_suite": format!("{:04x}", self.control.code()),
            "exporter_secret": hex(&vec![secret; self.control.hash_len()]),
            "suite": format!("{:04x}", self.suite.code()),
            "valid_until": terms.valid_until.as_secs(),
            "number": format!("{:016x}", self.number),
            "client_adopter": hex(&terms.client.0),
            "server_adopter": hex(&terms.server.0),
            "context": hex(&terms.context()),
            "side": self.side.to_string(),
            "peer_name": self.peer_name,
            "credentials_end": self.credentials_end,
            "value": hex(&bytes),
            "key_name": hex(key.name()),
            "ikm": hex(&exported[16..]),
            "client": client,
            "server": server,
        })
    }
}

fn all() -> String {
    let handovers: Vec<Value> = CASES.iter().map(Case::play).collect();
    format!("{:#}\n", json!({ "handovers": handovers }))
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/handover.json");

// SMT [7.5-2], [7.5-3]
#[test]
fn the_file_is_what_is_made_here() {
    let text = std::fs::read_to_string(PATH).unwrap();
    assert!(text == all(), "write it again, as handover/vectors.rs says");
}

#[test]
#[ignore = "it writes the file"]
fn make() {
    std::fs::write(PATH, all()).unwrap();
}
