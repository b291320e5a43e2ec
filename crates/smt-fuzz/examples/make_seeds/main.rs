// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes inputs to begin with, one folder per target: `cargo run -p smt-fuzz --example make_seeds
//! -- FOLDER`.
//!
//! Parsers begin with the vectors, credentials with certificates that are made here, captures
//! with what the simulator makes, scenarios with those that come along; targets whose
//! input is a script begin with bytes of a fixed generator, since any bytes are a script.
//! fuzz/README.md says how a corpus comes of them.
#![expect(clippy::unwrap_used, reason = "a tool fails by panicking")]

mod captures;

use std::path::Path;

use serde_json::Value;
use smt_pki::{CertificateAuthority, CertificatePlan, KeyKind, Purpose, SubjectName, Validity};
use smt_sim::lab::Named;

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let folder = Path::new(&folder);
    let vectors: Value =
        serde_json::from_str(include_str!("../../../../vectors/packets.json")).unwrap();
    let of = |groups: &[&str]| -> Vec<Vec<u8>> {
        let lists = groups.iter().map(|group| vectors[group].as_array().unwrap());
        lists.flatten().map(bytes).collect()
    };
    write(folder, "packet", of(&["packets", "malformed"]));
    write(folder, "bundle", of(&["bundles", "malformed_bundles"]));
    let params = of(&["params", "malformed_params"]);
    write(folder, "flight", params.iter().map(|params| flight(params)).collect());
    write(folder, "inner_header", of(&["inner_headers", "malformed_inner_headers"]));
    write(folder, "credentials", credentials());
    write(folder, "ticket", tickets());
    write(folder, "capture", captures::captures());
    let scenarios = Named::ALL.iter().map(|named| named.text.as_bytes().to_vec());
    write(folder, "scenario", scenarios.collect());
    for target in SCRIPTED {
        write(folder, target, scripts());
    }
}

fn write(folder: &Path, target: &str, seeds: Vec<Vec<u8>>) {
    let folder = folder.join(target);
    std::fs::create_dir_all(&folder).unwrap();
    for (number, seed) in seeds.into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed).unwrap();
    }
}

/// The bytes of a vector.
fn bytes(vector: &Value) -> Vec<u8> {
    let hex = vector["hex"].as_str().unwrap();
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// A flight's body with these parameters and some key exchange bytes.
fn flight(params: &[u8]) -> Vec<u8> {
    let length = u16::try_from(params.len()).unwrap().to_be_bytes();
    [&length, params, b"key exchange"].concat()
}

/// Tickets of the vectors, and malformed ones, behind the byte that says so; and changes.
fn tickets() -> Vec<Vec<u8>> {
    let vectors = include_str!("../../../../vectors/tickets.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let list = |name: &str| vectors[name].as_array().unwrap().clone();
    let good = list("handshakes");
    let good = good.iter().map(|handshake| bytes(&handshake["ticket"]));
    let malformed = list("malformed_tickets");
    let tickets = good.chain(malformed.iter().map(bytes));
    let tickets = tickets.map(|ticket| [&[0], &ticket[..]].concat());
    let changes = [&[1][..], &[1, 0, 12, 3], &[1, 0, 1, 1, 0, 30, 1], &[1, 9]];
    tickets.chain(changes.map(<[u8]>::to_vec)).collect()
}

/// PEM, DER and names, each behind the byte that says which.
fn credentials() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for key_kind in [KeyKind::EcdsaP256, KeyKind::Ed25519] {
        let validity = Validity::days(3_650).unwrap();
        let authority = CertificateAuthority::new("authority", validity, key_kind).unwrap();
        let names = ["*.a.example", "192.0.2.1", "2001:db8::1", "spiffe://a.example/b"];
        let plan = CertificatePlan {
            common_name: "leaf".to_owned(),
            names: names.map(|name| SubjectName::parse(name).unwrap()).to_vec(),
            purpose: Purpose::ServerAndClient,
            validity,
            key_kind,
        };
        let leaf = authority.issue(&plan).unwrap();
        let chain = leaf.certificate_pem.clone() + authority.certificate_pem();
        let root = authority.certificate_pem().to_owned() + &authority.key_pem();
        let identity = smt_handshake::Identity::from_pem(chain.as_bytes(), leaf.key_pem.as_bytes());
        let ders = identity.unwrap();
        let ders = ders.certificates().map(|der| [&[1], der].concat());
        seeds.extend(ders);
        seeds.push([&[0], chain.as_bytes(), leaf.key_pem.as_bytes()].concat());
        seeds.push([&[0], root.as_bytes()].concat());
        seeds.extend(names.map(|name| [&[2], name.as_bytes()].concat()));
    }
    seeds
}

/// Bytes of a fixed generator (SplitMix64), of several lengths.
fn scripts() -> Vec<Vec<u8>> {
    let mut state = 0_u64;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..40).map(|number| (0..40 + 20 * number).map(|_| next() as u8).collect()).collect()
}

/// Targets whose input is a script.
const SCRIPTED: [&str; 12] = [
    "connect",
    "endpoint",
    "epoch",
    "esp",
    "geometry",
    "hostile_peer",
    "key_exchange",
    "quic_engine",
    "record",
    "ticket_flight_1",
    "ticket_flight_2",
    "window",
];
