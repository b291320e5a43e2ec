// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes `vectors/packets.json`: `cargo run -p smt-wire --example make_packet_vectors`.
//!
//! Fields are chosen here, bytes come from `emit`, and the error of `parse` on malformed bytes is
//! noted. Deterministic. Tags are a pattern; real ones are in `vectors/key_schedule.json`.

#[path = "../tests/packet_json/mod.rs"]
#[expect(dead_code, reason = "the reading half is the test's")]
mod packet_json;

use packet_json::from_json::{bundle_bytes, bytes_from, inner_header_bytes, params_bytes};
use packet_json::hex;
use serde_json::{Value, json};
use smt_wire::{InnerHeader, Members, MetadataEntries, PLAINTEXT_VERSION, Params, VERSION, parse};

fn main() -> std::io::Result<()> {
    let packets: Vec<_> = packets().into_iter().map(with_bytes).collect();
    let malformed: Vec<_> = malformed().into_iter().map(with_error).collect();
    let inner_headers: Vec<_> = inner_headers().into_iter().chain(inner_headers_of_parts()).map(|(name, fields)| {
        json!({ "name": name, "hex": hex(&inner_header_bytes(&fields)), "fields": fields })
    }).collect();
    let params: Vec<_> = params().into_iter().map(|(name, fields)| {
        json!({ "name": name, "hex": hex(&params_bytes(&fields)), "fields": fields })
    }).collect();
    let bundles: Vec<_> = bundles().into_iter().map(|(name, members)| {
        json!({ "name": name, "hex": hex(&bundle_bytes(&members)), "members": members })
    }).collect();
    let file = json!({
        "packets": packets,
        "inner_headers": inner_headers,
        "params": params,
        "bundles": bundles,
        "metadata": metadata(),
        "malformed": malformed,
        "malformed_inner_headers": malformed_inner_headers(),
        "malformed_params": malformed_params(),
        "malformed_bundles": malformed_bundles(),
        "malformed_metadata": malformed_metadata(),
    });
    let text = format!("{file:#}\n");
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/packets.json"), text)
}

fn packets() -> Vec<Value> {
    let mut vectors: Vec<_> = data().into();
    vectors.extend(handshake());
    vectors.extend(lists());
    vectors.extend(single_bodies());
    vectors
}

fn data() -> [Value; 4] {
    let whole = json!({
        "epoch": 0, "retransmit": false, "session": "0000000100000001", "id": "000000000000000c",
        "message_length": 104, "offset": 0, "payload": pattern(126),
    });
    let again = json!({
        "epoch": 255, "retransmit": true, "session": "fffefdfcfbfaf9f8", "id": "0000ffffffffffff",
        "message_length": 67_108_904, "offset": 16_777_216, "payload": "ff",
    });
    [
        json!({ "name": "whole message to the datagram's end", "type": "DATA", "version": VERSION, "fields": &whole }),
        json!({
            "name": "whole message of a stated length", "type": "DATA", "version": VERSION, "length_stated": true,
            "fields": &whole,
        }),
        json!({ "name": "retransmission", "type": "DATA", "version": VERSION, "fields": again }),
        json!({ "name": "plaintext version", "type": "DATA", "version": PLAINTEXT_VERSION, "fields": whole }),
    ]
}

fn handshake() -> [Value; 7] {
    let first = json!({
        "destination": "0000000000000000", "source": "0000000700000001", "flight": 1, "cookie": "",
        "flight_length": 2, "offset": 0, "fragment": "0000",
    });
    [
        json!({ "name": "flight 1 without padding", "type": "HANDSHAKE", "version": VERSION, "fields": &first }),
        json!({
            "name": "flight 1 padded to 64", "type": "HANDSHAKE", "version": VERSION, "padded_to": 64, "fields": first,
        }),
        json!({
            "name": "second fragment of flight 3 with a cookie", "type": "HANDSHAKE", "version": VERSION,
            "fields": {
                "destination": "0000000900000002", "source": "0000000700000001", "flight": 3, "cookie": pattern(24),
                "flight_length": 65_536, "offset": 65_528, "fragment": "0102030405060708",
            },
        }),
        json!({
            "name": "cookie", "type": "COOKIE", "version": VERSION,
            "fields": { "destination": "0000000700000001", "cookie": pattern(24) },
        }),
        json!({
            "name": "version answer", "type": "VERSION", "version": 0, "fields": { "versions": [1, 2] },
        }),
        json!({
            "name": "reset", "type": "RESET", "version": VERSION,
            "fields": { "index": "0000000700000001", "token": pattern(16) },
        }),
        json!({
            "name": "unavailable", "type": "UNAVAILABLE", "version": VERSION,
            "fields": { "destination": "0000000700000001", "code": 1 },
        }),
    ]
}

fn lists() -> Vec<Value> {
    let ids = json!([{ "id": "000000000000000c" }, { "id": "0000ffffffffffff" }]);
    let most: Vec<_> =
        (0..64).map(|counter| json!({ "id": format!("{:016x}", counter << 1) })).collect();
    let mut vectors = vec![
        control(
            "GRANT",
            json!({ "entries": [
                { "id": "000000000000000c", "granted": 120_000, "received": 60_000, "priority": 7 },
                { "id": "0000000000000010", "granted": 4_294_967_295_u32, "received": 0, "priority": 0 },
            ]}),
        ),
        control(
            "RESEND",
            json!({ "entries": [
                { "id": "000000000000000c", "offset": 1_164, "length": 16_406 },
                { "id": "0000000000000010", "offset": 0, "length": 4_294_967_295_u32 },
            ]}),
        ),
        control(
            "ACK",
            json!({ "entries": [
                { "base": "000000000000000c", "bits": "0000000000000001" },
                { "base": "0000000000000100", "bits": "8000000000000001" },
            ]}),
        ),
        control(
            "PART_WINDOW",
            json!({ "entries": [
                { "id": "000000000000000c", "limit": "0000000000010000" },
                { "id": "0000000000000010", "limit": "0000000100000000" },
            ]}),
        ),
        control("BUSY", json!({ "entries": most })),
    ];
    for ty in [
        "BUSY",
        "NEED_ACK",
        "CANCEL",
        "VOIDED",
        "SEEN",
        "NEVER_SEEN",
        "SEEN_AND_GONE",
        "PART_WINDOW_REQUEST",
    ] {
        vectors.push(control(ty, json!({ "entries": &ids })));
    }
    vectors
}

fn single_bodies() -> Vec<Value> {
    [
        ("CONFIRM", json!({})),
        ("ABORT", json!({ "id": "000000000000000c", "code": 1 })),
        ("ABORT", json!({ "id": "000000000000000c", "code": 2 })),
        ("ABORT", json!({ "id": "000000000000000c", "code": 3 })),
        ("ABORT", json!({ "id": "000000000000000c", "code": 4 })),
        ("ABORT", json!({ "id": "000000000000000c", "code": 5 })),
        // Unknown: taken as 2.
        ("ABORT", json!({ "id": "000000000000000c", "code": 6 })),
        ("WINDOW", json!({ "limit": "0000000100001000" })),
        ("WINDOW_REQUEST", json!({})),
        ("KEY_UPDATE_REQUEST", json!({ "epoch": 16_909_060 })),
        ("EPOCH_DONE", json!({ "epoch": 255 })),
        ("EPOCH_ACK", json!({ "epoch": 256 })),
        ("PING", json!({ "value": "0123456789abcdef" })),
        ("PONG", json!({ "value": "0123456789abcdef" })),
        ("PROBE", json!({ "padding": 20 })),
        ("PROBE_ACK", json!({ "size": 8_972 })),
        ("CLOSE", json!({ "code": 2 })),
        ("ASSOCIATION", json!({ "serial": 1, "spi": 0x8000_0007_u32, "version": 1 })),
        ("ASSOCIATION_ACK", json!({ "serial": 1 })),
        ("ASSOCIATION_REQUEST", json!({ "serial": 1 })),
    ]
    .map(|(ty, body)| control(ty, body))
    .into()
}

fn control(ty: &str, body: Value) -> Value {
    let name = match body["entries"].as_array().map(Vec::len) {
        Some(entries) => format!("{ty} of {entries}"),
        None if ty == "ABORT" => format!("{ty} with code {}", body["code"]),
        None => ty.to_owned(),
    };
    json!({
        "name": name, "type": ty, "version": VERSION,
        "fields": {
            "epoch": 2, "session": "0000000700000001", "stripe": 3, "counter": "0000010203040506", "body": body,
            "sealed": pattern(match ty { "CONFIRM" => 32, "ASSOCIATION" => 48, _ => 16 }),
        },
    })
}

fn inner_headers() -> [(&'static str, Value); 7] {
    [
        (
            "request with an acknowledgement",
            json!({
                "true_length": 64, "padded_length": 128, "kind": "REQUEST", "deadline_us": 1_500_000,
                "reply_unscheduled": 60_000, "failure": null, "has_metadata": true, "parts": null, "window": 4_096,
                "ack": { "base": "000000000000000c", "bits": "8000000000000001" },
            }),
        ),
        (
            "empty reply",
            json!({
                "true_length": 0, "padded_length": 40, "kind": "REPLY", "deadline_us": 0, "reply_unscheduled": 0,
                "failure": null, "has_metadata": false, "parts": null, "window": 4_294_967_295_u32, "ack": null,
            }),
        ),
        (
            "failure that may have run",
            json!({
                "true_length": 9, "padded_length": 49, "kind": "REPLY", "deadline_us": 0, "reply_unscheduled": 0,
                "failure": { "code": 4_294_967_295_u32, "not_run": false }, "has_metadata": false, "parts": null, "window": 4_096, "ack": null,
            }),
        ),
        (
            "failure that did not run",
            json!({
                "true_length": 0, "padded_length": 40, "kind": "REPLY", "deadline_us": 0, "reply_unscheduled": 0,
                "failure": { "code": 5, "not_run": true }, "has_metadata": false, "parts": null, "window": 4_096, "ack": null,
            }),
        ),
        (
            "largest one-way message",
            json!({
                "true_length": 4_294_967_255_u32, "padded_length": 4_294_967_295_u32, "kind": "ONE_WAY", "deadline_us": 0,
                "reply_unscheduled": 0, "failure": null, "has_metadata": false, "parts": null, "window": 0, "ack": null,
            }),
        ),
        (
            "one-way message with a deadline",
            json!({
                "true_length": 3, "padded_length": 43, "kind": "ONE_WAY", "deadline_us": 250,
                "reply_unscheduled": 0, "failure": null, "has_metadata": false, "parts": null, "window": 4_096, "ack": null,
            }),
        ),
        (
            "bundle",
            json!({
                "true_length": 168, "padded_length": 208, "kind": "BUNDLE", "deadline_us": 0,
                "reply_unscheduled": 0, "failure": null, "has_metadata": false, "parts": null, "window": 4_096, "ack": null,
            }),
        ),
    ]
}

/// Inner headers that say something of parts.
fn inner_headers_of_parts() -> [(&'static str, Value); 4] {
    [
        (
            "request whose reply may come in parts, and of which parts follow",
            json!({
                "true_length": 3, "padded_length": 43, "kind": "REQUEST", "deadline_us": 0,
                "reply_unscheduled": 60_000, "failure": null, "has_metadata": false,
                "parts": { "reply_in_parts": true, "more": true, "number": 0 }, "window": 4_096, "ack": null,
            }),
        ),
        (
            "part",
            json!({
                "true_length": 12, "padded_length": 52, "kind": "PART", "deadline_us": 0,
                "reply_unscheduled": 0, "failure": null, "has_metadata": false,
                "parts": { "reply_in_parts": false, "more": true, "number": 258 }, "window": 4_096, "ack": null,
            }),
        ),
        (
            "last part",
            json!({
                "true_length": 8, "padded_length": 48, "kind": "PART", "deadline_us": 0,
                "reply_unscheduled": 0, "failure": null, "has_metadata": false,
                "parts": { "reply_in_parts": false, "more": false, "number": 1 }, "window": 4_096, "ack": null,
            }),
        ),
        (
            "failure behind parts",
            json!({
                "true_length": 0, "padded_length": 40, "kind": "REPLY", "deadline_us": 0,
                "reply_unscheduled": 0, "failure": { "code": 5, "not_run": false }, "has_metadata": false,
                "parts": { "reply_in_parts": false, "more": false, "number": 259 }, "window": 4_096, "ack": null,
            }),
        ),
    ]
}

fn bundles() -> [(&'static str, Value); 3] {
    let reply = json!({
        "id": "0000000000000003", "kind": "REPLY", "body": "", "deadline_us": 0, "reply_unscheduled": 0,
        "failure": null, "has_metadata": false, "parts": null,
    });
    let failed = json!({
        "id": "0000000000000005", "kind": "REPLY", "body": hex(b"no such file"), "deadline_us": 0,
        "reply_unscheduled": 0, "failure": { "code": 2, "not_run": true }, "has_metadata": true, "parts": null,
    });
    [
        (
            "one of each kind",
            json!([
                {
                    "id": "0000000000000010", "kind": "REQUEST", "body": hex(b"request"), "deadline_us": 1_500_000,
                    "reply_unscheduled": 60_000, "failure": null, "has_metadata": false, "parts": null,
                },
                reply,
                {
                    "id": "0000000000000012", "kind": "ONE_WAY", "body": hex(b"one way"), "deadline_us": 20_000,
                    "reply_unscheduled": 0, "failure": null, "has_metadata": false, "parts": null,
                },
                {
                    "id": "0000000000000014", "kind": "PART", "body": hex(b"\0\0\0\0\0\0\0\x05part"),
                    "deadline_us": 0, "reply_unscheduled": 0, "failure": null, "has_metadata": false,
                    "parts": { "reply_in_parts": false, "more": true, "number": 7 },
                },
            ]),
        ),
        ("a reply and a failure", json!([reply, failed])),
        ("a lone empty reply", json!([reply])),
    ]
}

/// An entry of metadata.
fn entry(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u16).to_be_bytes();
    [&[name.len() as u8], name, &length, value].concat()
}

/// Application bytes that begin with these entries.
fn behind_entries(entries: &[u8], body: &[u8]) -> Vec<u8> {
    [&(entries.len() as u16).to_be_bytes(), entries, body].concat()
}

/// Application bytes that begin with metadata.
fn metadata() -> Vec<Value> {
    let entries =
        [entry(b"trace-parent", &[0, 255]), entry(b"a.b_c-0", b""), entry(b"trace-parent", b"2")]
            .concat();
    [
        ("three entries, two of one name", entries, &b"body"[..]),
        ("no entry", vec![], b"body"),
        ("most bytes, no body", entry(b"a", &[7; 4_092]), b""),
        ("most entries", entry(b"a", b"").repeat(64), b"body"),
    ]
    .into_iter()
    .map(|(name, entries, body)| {
        let bytes = behind_entries(&entries, body);
        let (entries, end) = MetadataEntries::split(&bytes).expect(name);
        let entries: Vec<_> =
            entries.map(|(name, value)| json!({ "name": name, "value": hex(value) })).collect();
        json!({ "name": name, "hex": hex(&bytes), "entries": entries, "body": hex(&bytes[end..]) })
    })
    .collect()
}

/// Application bytes whose metadata is to be refused.
fn malformed_metadata() -> Vec<Value> {
    let good = behind_entries(&entry(b"a", b"1"), b"");
    [
        ("nothing", vec![]),
        ("half a length", vec![0]),
        ("cut short", good[..good.len() - 1].to_vec()),
        ("length within an entry", [&[0, 4], &good[2..]].concat()),
        ("empty name", behind_entries(&entry(b"", b"1"), b"body")),
        ("name with a capital", behind_entries(&entry(b"A", b"1"), b"body")),
        ("name that is no ASCII", behind_entries(&entry("é".as_bytes(), b"1"), b"body")),
        ("a byte too many", behind_entries(&entry(b"a", &[7; 4_093]), b"")),
        ("an entry too many", behind_entries(&entry(b"a", b"").repeat(65), b"")),
    ]
    .into_iter()
    .map(|(name, bytes)| {
        let error = MetadataEntries::split(&bytes).expect_err(name);
        json!({ "name": name, "hex": hex(&bytes), "error": error.to_string() })
    })
    .collect()
}

/// Application bytes of bundles that are to be refused as a whole.
fn malformed_bundles() -> Vec<Value> {
    let (_, members) = &bundles()[0];
    let bytes = bundle_bytes(members);
    let with_kind = |kind: u8| {
        let mut bytes = bytes.clone();
        bytes[8] = kind;
        bytes
    };
    let with_flags = |flags: u8| {
        let mut bytes = bytes.clone();
        bytes[9] = flags;
        bytes
    };
    [
        ("nothing", vec![]),
        ("last member cut short", bytes[..bytes.len() - 1].to_vec()),
        ("a byte behind the last member", [&bytes[..], &[0]].concat()),
        ("member of kind 0", with_kind(0)),
        ("bundle in a bundle", with_kind(4)),
        ("member with an unknown flag", with_flags(0x80)),
    ]
    .into_iter()
    .map(|(name, bytes)| {
        let error = Members::parse(&bytes).expect_err(name);
        json!({ "name": name, "hex": hex(&bytes), "error": error.to_string() })
    })
    .collect()
}

fn params() -> [(&'static str, Value); 7] {
    let client = json!({
        "versions": [1], "key_exchange": 0, "index": "0000000700000001", "suites": [0x1301, 0x1302, 0x1303],
        "index_bits": 16, "record_size": 16_384, "first_record_size": 1_142, "window": 4_096,
        "message_limit": 67_108_864, "unscheduled": 60_000, "datagram_limit": 8_972, "stripes": 4, "key_name": null,
        "random": null, "takes_bundles": false, "part_window": null, "psp_versions": null,
    });
    let mut server = client.clone();
    server["index"] = json!("0000000900000002");
    server["record_size"] = json!(8_192);
    server["first_record_size"] = json!(64);
    server["index_bits"] = json!(17);
    server["stripes"] = json!(0);
    let mut registered = client.clone();
    registered["key_exchange"] = json!(1);
    registered["suites"] = json!([0x1302]);
    registered["key_name"] = json!(hex(b"rack 12"));
    registered["random"] = json!(pattern(32));
    let mut bundles = client.clone();
    bundles["takes_bundles"] = json!(true);
    let mut parts = client.clone();
    parts["part_window"] = json!(65_536);
    let mut psp = client.clone();
    psp["psp_versions"] = json!([1, 0]);
    let mut plaintext = client.clone();
    plaintext["key_exchange"] = json!(PLAINTEXT_VERSION);
    plaintext["versions"] = json!([PLAINTEXT_VERSION]);
    plaintext["suites"] = json!([0]);
    [
        ("client", client),
        ("server", server),
        ("registered keys", registered),
        ("plaintext", plaintext),
        ("client that takes bundles", bundles),
        ("client that takes parts", parts),
        ("client that would seal packets", psp),
    ]
}

/// Bytes that no receiver of version 1 accepts: each with the one rule that it breaks.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let sample = |ty: &str| {
        let vector = packets().into_iter().find(|vector| vector["type"] == ty);
        bytes_from(&vector.expect("every type has a vector"))
    };
    let changed = |ty: &str, place: usize, value: &[u8]| {
        let mut bytes = sample(ty);
        bytes[place..place + value.len()].copy_from_slice(value);
        bytes
    };
    let mut early_data = sample("PING");
    early_data[1] = 0x14;
    let mut versions = changed("VERSION", 6, &[1, 12]);
    versions.resize(268, 1);
    vec![
        ("nothing", vec![]),
        ("prefix cut short", sample("PING")[..11].to_vec()),
        ("control packet cut short", sample("PING")[..51].to_vec()),
        ("another version", changed("PING", 0, &[2])),
        ("the reserved type 0x14", early_data),
        ("header words of another type", changed("PING", 4, &[0xB0])),
        ("DATA with the header words of another type", changed("DATA", 4, &[0x50])),
        ("length 0 in a control packet", changed("PING", 6, &[0, 0])),
        ("length below the prefix", changed("PING", 6, &[0, 11])),
        ("DATA without a payload", sample("DATA")[..36].to_vec()),
        ("body shorter than its type's", changed("PING", 6, &[0, 51])),
        ("list without an entry", changed("NEED_ACK", 6, &[0, 44])),
        ("list with half an entry", changed("NEED_ACK", 6, &[0, 56])),
        ("HANDSHAKE with source index 0", changed("HANDSHAKE", 20, &[0; 8])),
        ("HANDSHAKE of flight 0", changed("HANDSHAKE", 28, &[0])),
        ("HANDSHAKE of flight 8", changed("HANDSHAKE", 28, &[8])),
        ("HANDSHAKE with a fragment past the packet", changed("HANDSHAKE", 30, &[0, 3])),
        ("HANDSHAKE with a fragment past its flight", changed("HANDSHAKE", 36, &[0, 0, 0, 1])),
        ("HANDSHAKE of a flight above 65,536 bytes", changed("HANDSHAKE", 32, &[0, 1, 0, 1])),
        ("COOKIE without a byte", changed("COOKIE", 6, &[0, 20])),
        ("VERSION without a version", changed("VERSION", 6, &[0, 12])),
        ("VERSION with 256 versions", versions),
        ("VERSION with version byte 1", changed("VERSION", 0, &[1])),
        ("RESET one byte short", changed("RESET", 6, &[0, 35])),
        ("UNAVAILABLE one byte short", changed("UNAVAILABLE", 6, &[0, 21])),
    ]
}

fn malformed_inner_headers() -> Vec<Value> {
    let (_, fields) = &inner_headers()[0];
    let bytes = inner_header_bytes(fields);
    [
        ("kind 0", 8, &[0][..]),
        ("kind 6", 8, &[6]),
        ("request with the flag of a failure", 9, &[1]),
        ("request with an unknown flag", 9, &[0x80]),
        ("reply that is no failure and did not run", 8, &[2, 2]),
        ("padded length below 40 + true length", 4, &[0, 0, 0, 103]),
        ("true length that would wrap", 0, &[0xFF; 4]),
    ]
    .into_iter()
    .map(|(name, place, value)| {
        let mut bytes = bytes;
        bytes[place..place + value.len()].copy_from_slice(value);
        let error = InnerHeader::parse(&bytes).expect_err(name);
        json!({ "name": name, "hex": hex(&bytes), "error": error.to_string() })
    })
    .collect()
}

fn malformed_params() -> Vec<Value> {
    let (_, fields) = &params()[0];
    let changed = |field: &str, value: Value| {
        let mut fields = fields.clone();
        fields[field] = value;
        params_bytes(&fields)
    };
    let bytes = params_bytes(fields);
    [
        ("nothing", vec![]),
        ("stripes missing", bytes[..bytes.len() - 3].to_vec()),
        ("stripes cut short", bytes[..bytes.len() - 1].to_vec()),
        ("stripes twice", [&bytes[..], &[12, 1, 4]].concat()),
        ("index 0", changed("index", json!("0000000000000000"))),
        ("18 index bits", changed("index_bits", json!(18))),
        ("first record above 1,142", changed("first_record_size", json!(1_143))),
        ("first record above the record size", changed("record_size", json!(1_141))),
        ("window 63", changed("window", json!(63))),
        ("unscheduled below the first record", changed("unscheduled", json!(1_163))),
        ("datagram limit 1,199", changed("datagram_limit", json!(1_199))),
        ("2^9 stripes", changed("stripes", json!(9))),
        ("registered keys without a name", changed("key_exchange", json!(1))),
    ]
    .into_iter()
    .map(|(name, bytes)| {
        let error = Params::parse(&bytes).expect_err(name);
        json!({ "name": name, "hex": hex(&bytes), "error": error.to_string() })
    })
    .collect()
}

fn with_bytes(mut vector: Value) -> Value {
    let bytes = bytes_from(&vector);
    let version = vector["version"].as_u64().expect("a version") as u8;
    let (packet, _) = parse(version, &bytes).expect("what is emitted can be parsed");
    vector["line"] = json!(packet.to_string());
    vector["hex"] = json!(hex(&bytes));
    vector
}

fn with_error((name, bytes): (&str, Vec<u8>)) -> Value {
    let error = parse(VERSION, &bytes).expect_err(name);
    json!({ "name": name, "version": VERSION, "hex": hex(&bytes), "error": error.to_string() })
}

/// Bytes that differ from their neighbours, so that a byte out of place is seen.
fn pattern(length: u8) -> String {
    hex(&(0..length).map(|place| place ^ 0xA5).collect::<Vec<_>>())
}
