// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `key_schedule.json`: parameter hashes, exporter and registered secrets to keys of three
//! epochs, and sealed control packets.

use std::sync::Arc;

use aws_lc_rs::digest::{self, digest};
use serde_json::{Value, json};
use smt_record::{
    Aead, AeadProvider, AwsLc, DirectionSecrets, Exporter, ImportedIdentity, ImportedKey,
    KeyLimits, Prk, SealKeys, SessionSecrets, Side, Suite, parameter_hash,
};
use smt_wire::{
    Ack, Body, ControlHeader, ControlNumber, Grant, MessageId, Resend, SessionIndex, TO_THE_END,
    VERSION,
};

use crate::inputs::{ALWAYS, Lines, array, bytes, code, from_hex, hex, key_and_iv};

pub(crate) fn all() -> Value {
    json!({
        "parameter_hash": hashes(),
        "exporter": Suite::ALL.map(exporter),
        "registered": registered(),
        "control": Suite::ALL.into_iter().flat_map(control_packets).collect::<Vec<_>>(),
    })
}

fn hashes() -> Vec<Value> {
    [(0, 0), (1, 0), (0, 1), (60, 58), (61, 57), (255, 300)]
        .into_iter()
        .map(|(client, server)| {
            let (client, server) = (bytes("client params", client), bytes("server params", server));
            json!({
                "client": hex(&client),
                "server": hex(&server),
                "hash": hex(&parameter_hash(&AwsLc, &client, &server)),
            })
        })
        .collect()
}

/// RFC 8446 §7.5: HKDF-Expand-Label(Derive-Secret(master, label, ""), "exporter", Hash(context)).
fn exporter(suite: Suite) -> Value {
    let master = bytes(&format!("exporter master secret {suite}"), suite.hash_len());
    let hash = array(&format!("parameter hash {suite}"));
    let algorithm = match suite {
        Suite::Aes256Gcm => &digest::SHA384,
        Suite::Aes128Gcm | Suite::ChaCha20Poly1305 => &digest::SHA256,
    };
    let tls_export = |out: &mut [u8], label: &str, context: &[u8]| {
        let mut derived = vec![0; suite.hash_len()];
        let no_context = digest(algorithm, b"");
        let master = Prk::new(&AwsLc, suite, &master);
        master.expand_label(label, no_context.as_ref(), &mut derived);
        let context = digest(algorithm, context);
        let derived = Prk::new(&AwsLc, suite, &derived);
        derived.expand_label("exporter", context.as_ref(), out);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(secrets) = SessionSecrets::from_exporter(suite, &hash, tls_export);
    let mut exporter_secret = vec![0; suite.hash_len()];
    let [.., label] = SessionSecrets::EXPORTER_LABELS;
    let Ok(()) = tls_export(&mut exporter_secret, label, &hash);
    json!({
        "suite": code(suite),
        "exporter_master_secret": hex(&master),
        "parameter_hash": hex(&hash),
        "exporter_secret": hex(&exporter_secret),
        "exported": exported(&secrets.exporter),
        "secrets": epochs(secrets),
    })
}

/// Secrets that an application may ask for: labels, contexts and lengths of all sorts.
fn exported(exporter: &Exporter) -> Vec<Value> {
    let longest = "l".repeat(249);
    [
        ("EXPORTER-example", &b""[..], 32),
        ("EXPORTER-example", b"a context", 32),
        ("EXPORTER-example", b"a context", 1),
        ("exporter", &[0; 300], 48),
        (&longest, b"a context", 100),
    ]
    .into_iter()
    .map(|(label, context, length)| {
        let mut secret = vec![0; length];
        let export = exporter.export(&AwsLc, label, context, &mut secret);
        export.expect("labels and lengths are within bounds");
        json!({ "label": label, "context": hex(context), "secret": hex(&secret) })
    })
    .collect()
}

fn registered() -> Vec<Value> {
    let mut vectors = Vec::new();
    for suite in Suite::ALL {
        let tls_keys = 2 * (suite.key_len() + 12);
        let longest = ["x".repeat(255), "y".repeat(255)];
        // A secret; the same turned around, and with a byte moved from one identity to the other;
        // kTLS-style keys; the same keys in another session; the shortest name and the longest
        // identities.
        for (name, length, session, (key_name, client, server)) in [
            ("a secret", 32, 1, ("rack 12", "web-1", "store-1")),
            ("a secret", 32, 1, ("rack 12", "store-1", "web-1")),
            ("a secret", 32, 1, ("rack 12", "web-", "1store-1")),
            ("TLS keys", tls_keys, 1, ("rack 12", "web-1", "store-1")),
            ("TLS keys", tls_keys, 2, ("rack 12", "web-1", "store-1")),
            ("a secret", 16, 2, ("", &longest[0][..], &longest[1][..])),
        ] {
            let ikm = bytes(&format!("{name} {suite}"), length);
            let hash = array(&format!("session {session}"));
            let identity = ImportedIdentity {
                key_name: key_name.as_bytes(),
                client: client.as_bytes(),
                server: server.as_bytes(),
            };
            let key = ImportedKey::new(&AwsLc, suite, &ikm, &identity);
            let secrets = key.session_secrets(&AwsLc, &hash);
            vectors.push(json!({
                "name": format!("{name}, session {session}, {client:.8} calls {server:.8}"),
                "suite": code(suite),
                "ikm": hex(&ikm),
                "key_name": hex(key_name.as_bytes()),
                "client": hex(client.as_bytes()),
                "server": hex(server.as_bytes()),
                "parameter_hash": hex(&hash),
                "exported": exported(&secrets.exporter),
                "secrets": epochs(secrets),
            }));
        }
    }
    vectors
}

/// Secret, key and IV of epochs 0 to 2, by direction and purpose.
fn epochs(secrets: SessionSecrets) -> Value {
    let suite = secrets.suite;
    let mut by_name = serde_json::Map::new();
    for (side, direction) in [(Side::Client, secrets.client), (Side::Server, secrets.server)] {
        let lines = logged(suite, side, direction);
        for purpose in ["data", "control"] {
            let epochs: Vec<_> = lines
                .secrets(purpose)
                .iter()
                .map(|secret| {
                    let (key, iv) = key_and_iv(suite, &from_hex(secret));
                    json!({ "secret": secret, "key": hex(&key), "iv": hex(&iv) })
                })
                .collect();
            by_name.insert(format!("{side} {purpose}"), epochs.into());
        }
    }
    by_name.into()
}

/// The secrets come out by the key log, as they would in an application.
fn logged(suite: Suite, side: Side, direction: DirectionSecrets) -> Arc<Lines> {
    let lines = Arc::new(Lines::default());
    let mut keys = SealKeys::new(direction, suite, KeyLimits::default(), lines.context(side));
    for _ in 0..2 {
        keys.update();
        keys.finish_previous();
    }
    lines
}

fn control_packets(suite: Suite) -> Vec<Value> {
    let secret = bytes(&format!("control secret {suite}"), suite.hash_len());
    let (key, iv) = key_and_iv(suite, &secret);
    let aead = AwsLc.aead(suite, &key, iv).expect(ALWAYS);
    let token = bytes("reset token", 16);
    let grants = [
        Grant { id: MessageId(12), granted: 60_000, received: 1_164, priority: 6 },
        Grant { id: MessageId(16), granted: 122_880, received: 0, priority: 0 },
    ];
    let resend = [Resend { id: MessageId(12), offset: 0, length: TO_THE_END }];
    let acks = [Ack { base: MessageId(0), bits: u64::MAX }];
    let ids: Vec<_> = (0..64).map(|counter| MessageId(counter << 4 | 7)).collect();
    [
        (Body::Confirm, 0, 0, 0),
        (Body::Grant(grants[..].into()), 0, 0, 1),
        (Body::Resend(resend[..].into()), 1, 2, 1_024),
        (Body::Ack(acks[..].into()), 2, 0, 0xFFFF_FFFF_FFFF),
        (Body::NeverSeen(ids[..].into()), 255, 7, 3),
        (Body::WindowRequest, 0, 255, 0x0123_4567_89AB),
        (Body::EpochDone { epoch: 256 }, 1, 0, 9),
        (Body::Ping(0x0102_0304_0506_0708), 0, 0, 10),
        (Body::Close { code: 2 }, 0, 0, 11),
    ]
    .into_iter()
    .map(|(body, epoch, stripe, counter)| {
        let number = ControlNumber { stripe, counter };
        let header = ControlHeader { epoch, session: SessionIndex::new(3, 9), number };
        let (aad, sealed) = seal(&*aead, &header, &body, &token);
        json!({
            "name": body.packet_type().to_string(),
            "suite": code(suite),
            "secret": hex(&secret),
            "key": hex(&key),
            "iv": hex(&iv),
            "stripe": stripe,
            "counter": format!("{counter:016x}"),
            "plaintext": if body == Body::Confirm { hex(&token) } else { String::new() },
            "aad": hex(&aad),
            "packet": hex(&[aad, sealed].concat()),
        })
    })
    .collect()
}

/// AAD, and the bytes behind it: CONFIRM's token and the tag, else the tag.
fn seal(
    aead: &dyn Aead,
    header: &ControlHeader,
    body: &Body<'_>,
    token: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let mut packet = vec![0; ControlHeader::packet_len(body)];
    let length = header.emit(VERSION, body, &mut packet);
    packet.truncate(length);
    let mut sealed = if *body == Body::Confirm { token.to_vec() } else { Vec::new() };
    let tag = aead.seal(header.number.to_u64(), &packet, &mut sealed);
    let tag = tag.expect(ALWAYS);
    sealed.extend_from_slice(&tag);
    (packet, sealed)
}
