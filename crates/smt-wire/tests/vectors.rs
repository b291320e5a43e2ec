// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets of `vectors/packets.json`, in both directions.
//!
//! The file is written by `cargo run -p smt-wire --example make_packet_vectors`.

mod packet_json;

use packet_json::from_json::{bundle_bytes, bytes_from, inner_header_bytes, params_bytes};
use packet_json::to_json::{fields_of, inner_header_fields, members, params_fields};
use packet_json::{hex, unhex};
use serde_json::{Value, json};
use smt_wire::{InnerHeader, Members, MetadataEntries, PacketType, Params, parse};

fn vectors(section: &str) -> Vec<Value> {
    let file: Value =
        serde_json::from_str(include_str!("../../../vectors/packets.json")).expect("JSON");
    let vectors = file[section].as_array().expect("a section is a list").clone();
    assert!(!vectors.is_empty(), "{section} is empty");
    vectors
}

fn bytes_of(vector: &Value) -> Vec<u8> {
    unhex(vector["hex"].as_str().expect("hex"))
}

fn version_of(vector: &Value) -> u8 {
    vector["version"].as_u64().and_then(|version| version.try_into().ok()).expect("a version")
}

mod packets {
    use super::*;

    #[test]
    fn fields_give_the_bytes() {
        for vector in vectors("packets") {
            assert_eq!(hex(&bytes_from(&vector)), vector["hex"], "{}", vector["name"]);
        }
    }

    #[test]
    fn bytes_give_the_fields_and_the_line() {
        for vector in vectors("packets") {
            let bytes = bytes_of(&vector);
            let (packet, rest) =
                parse(version_of(&vector), &bytes).expect("a vector can be parsed");
            assert_eq!(fields_of(&packet), vector["fields"], "{}", vector["name"]);
            assert_eq!(packet.packet_type().name(), vector["type"]);
            assert_eq!(packet.to_string(), vector["line"]);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn every_type_is_there() {
        let vectors = vectors("packets");
        for ty in PacketType::ALL {
            assert!(vectors.iter().any(|vector| vector["type"] == ty.name()), "{ty} has no vector");
        }
    }
}

mod inner_headers {
    use super::*;

    #[test]
    fn fields_give_the_bytes() {
        for vector in vectors("inner_headers") {
            assert_eq!(hex(&inner_header_bytes(&vector["fields"])), vector["hex"]);
        }
    }

    #[test]
    fn bytes_give_the_fields() {
        for vector in vectors("inner_headers") {
            let bytes = bytes_of(&vector).try_into().expect("40 bytes");
            let header = InnerHeader::parse(&bytes).expect("a vector can be parsed");
            assert_eq!(inner_header_fields(&header), vector["fields"]);
        }
    }
}

mod params {
    use super::*;

    #[test]
    fn fields_give_the_bytes() {
        for vector in vectors("params") {
            assert_eq!(hex(&params_bytes(&vector["fields"])), vector["hex"]);
        }
    }

    #[test]
    fn bytes_give_the_fields() {
        for vector in vectors("params") {
            let bytes = bytes_of(&vector);
            let params = Params::parse(&bytes).expect("a vector can be parsed");
            assert_eq!(params_fields(&params), vector["fields"]);
        }
    }
}

mod metadata {
    use super::*;

    #[test]
    fn entries_and_body_are_those_named() {
        for vector in vectors("metadata") {
            let bytes = bytes_of(&vector);
            let (entries, end) = MetadataEntries::split(&bytes).expect("well formed");
            let entries: Value =
                entries.map(|(name, value)| json!({ "name": name, "value": hex(value) })).collect();
            assert_eq!(entries, vector["entries"], "{}", vector["name"]);
            assert_eq!(hex(&bytes[end..]), vector["body"], "{}", vector["name"]);
        }
    }
}

mod bundles {
    use super::*;

    #[test]
    fn members_give_the_bytes() {
        for vector in vectors("bundles") {
            assert_eq!(hex(&bundle_bytes(&vector["members"])), vector["hex"]);
        }
    }

    #[test]
    fn bytes_give_the_members() {
        for vector in vectors("bundles") {
            assert_eq!(members(&bytes_of(&vector)), vector["members"]);
        }
    }
}

mod malformed {
    use super::*;

    #[test]
    fn bundles_are_refused_for_the_reason_named() {
        for vector in vectors("malformed_bundles") {
            let error = Members::parse(&bytes_of(&vector)).expect_err("malformed");
            assert_eq!(error.to_string(), vector["error"], "{}", vector["name"]);
        }
    }

    #[test]
    fn metadata_is_refused_for_the_reason_named() {
        for vector in vectors("malformed_metadata") {
            let error = MetadataEntries::split(&bytes_of(&vector)).expect_err("malformed");
            assert_eq!(error.to_string(), vector["error"], "{}", vector["name"]);
        }
    }

    #[test]
    fn packets_are_refused_for_the_reason_named() {
        for vector in vectors("malformed") {
            let bytes = bytes_of(&vector);
            let error = parse(version_of(&vector), &bytes).expect_err("malformed");
            assert_eq!(error.to_string(), vector["error"], "{}", vector["name"]);
        }
    }

    #[test]
    fn inner_headers_are_refused_for_the_reason_named() {
        for vector in vectors("malformed_inner_headers") {
            let bytes = bytes_of(&vector).try_into().expect("40 bytes");
            let error = InnerHeader::parse(&bytes).expect_err("malformed");
            assert_eq!(error.to_string(), vector["error"], "{}", vector["name"]);
        }
    }

    #[test]
    fn params_are_refused_for_the_reason_named() {
        for vector in vectors("malformed_params") {
            let error = Params::parse(&bytes_of(&vector)).expect_err("malformed").to_string();
            assert_eq!(error, vector["error"], "{}", vector["name"]);
        }
    }
}
