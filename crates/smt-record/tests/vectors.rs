// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The crate gives the bytes of `vectors/`, and a second AEAD library agrees with them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod vector_file;

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use smt_record::{
    CryptoProvider, DirectionSecrets, Exporter, FrozenMessage, IdAllocator, IdLayout, IdWindow,
    ImportedIdentity, ImportedKey, IndexBits, KeyLimits, KeyLog, KeyLogContext, KeyLogEntry,
    OpenKeys, OutgoingId, Padding, SealKeys, SessionSecrets, Side, Suite, open_first, open_rest,
    parameter_hash,
};
use smt_wire::{
    Body, Control, Geometry, InnerHeader, MessageId, Packet, SessionIndex, VERSION, parse,
};
use vector_file::{Fields, RustCrypto, SoftCrypto, read};

/// The libraries that the crate works with: each gives the same bytes.
fn libraries() -> Vec<CryptoProvider> {
    vec![
        #[cfg(feature = "aws-lc")]
        CryptoProvider::aws_lc(),
        SoftCrypto::provider(),
    ]
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl KeyLog for Lines {
    fn log(&self, line: &KeyLogEntry<'_>) {
        self.0.lock().unwrap().push(line.to_string());
    }
}

/// Secrets whose every direction and purpose is this one.
fn secrets_of(suite: Suite, secret: &[u8]) -> DirectionSecrets {
    let secrets = SessionSecrets::from_exporter(suite, &[0; 32], |out, _, _| {
        out.copy_from_slice(secret);
        Ok::<(), ()>(())
    });
    secrets.unwrap().client
}

fn side(name: &str) -> Side {
    [Side::Client, Side::Server].into_iter().find(|side| side.to_string() == name).unwrap()
}

/// The right to seal the vector's message, got as a session would: a reply by its request.
fn outgoing(message: &Value) -> OutgoingId {
    let bits = |name| IndexBits::new(message.number(name) as u8).unwrap();
    let stripes_log2 = message.number("stripes_log2") as u8;
    let layout = IdLayout::new(bits("index_bits"), bits("peer_index_bits"), stripes_log2).unwrap();
    let (initiator, stripe) = (side(message.text("initiator")), message.number("stripe") as u16);
    let counter = message.number_64("counter");
    if message.text("initiator") == message.text("sender") {
        let mut ids = IdAllocator::starting_at(layout, initiator, stripe, counter);
        return ids.next(u64::MAX).unwrap();
    }
    let mut window = IdWindow::new(65_536, layout, initiator, stripe);
    for earlier in 0..counter {
        window.mark_seen(earlier).unwrap();
    }
    window.mark_seen(counter).unwrap().reply_right()
}

fn geometry(message: &Value) -> Geometry {
    let size = |name| u16::try_from(message.number(name)).unwrap();
    Geometry::new(size("first_record_size"), size("record_size")).unwrap()
}

fn inner_header(message: &Value) -> InnerHeader {
    let inner = message.bytes("inner_stream");
    InnerHeader::parse(inner[..40].try_into().unwrap()).unwrap()
}

mod records {
    use super::*;

    #[test]
    fn sealing_gives_the_records() {
        libraries().into_iter().for_each(seal_with);
    }

    fn seal_with(library: CryptoProvider) {
        for message in read("records").list("messages") {
            let (suite, name) = (message.suite(), message.text("name"));
            let secret = message.list("epochs")[0].bytes("secret");
            let limits = KeyLimits::default();
            let secrets = secrets_of(suite, &secret);
            let mut keys = SealKeys::with_provider(secrets, suite, limits, None, library.clone());
            let body = message.bytes("inner_stream")[40..].to_vec();
            let bits = IndexBits::new(message.number("index_bits") as u8).unwrap();
            let (id, header) = (outgoing(message), inner_header(message));
            assert_eq!(id.id(), MessageId(message.number_64("id")), "{name}");
            let mut frozen =
                FrozenMessage::new(id, &header, body.into(), geometry(message), bits).unwrap();
            assert_eq!(frozen.records() as usize, message.list("records").len());
            assert_eq!(u64::from(frozen.stream_length()), message.number("stream_length"));
            assert_eq!(u64::from(frozen.padded_length()), message.number("padded_length"));
            for record in message.list("records") {
                while u64::from(keys.epoch()) < record.number("epoch") {
                    keys.finish_previous();
                    keys.update();
                }
                let mut out = vec![0; 16_406];
                let index = record.number("index") as u32;
                let length = frozen.seal(index, &mut keys, &mut out).unwrap();
                assert_eq!(out[..length], record.bytes("record"), "{name}, record {index}");
                let sequence = bits.sequence(frozen.id(), index).unwrap();
                assert_eq!(sequence, record.number_64("sequence"));
            }
        }
    }

    #[test]
    fn opening_gives_the_inner_stream() {
        libraries().into_iter().for_each(open_with);
    }

    fn open_with(library: CryptoProvider) {
        for message in read("records").list("messages") {
            let (suite, name) = (message.suite(), message.text("name"));
            let secret = message.list("epochs")[0].bytes("secret");
            let limits = KeyLimits::default();
            let secrets = secrets_of(suite, &secret);
            let mut keys = OpenKeys::with_provider(secrets, suite, limits, None, library.clone());
            let (geometry, padded) = (geometry(message), message.number("padded_length") as u32);
            let true_inner = 40 + message.number("true_length") as u32;
            let (mut body, mut scratch) = (Vec::new(), Vec::new());
            for record in message.list("records") {
                let epoch = record.number("epoch") as u32;
                // Epochs in which the message has no record were heard of by other packets.
                while keys.epoch() < epoch {
                    keys.finish(keys.epoch().wrapping_sub(1));
                    let next = keys.epoch() + 1;
                    keys.data(next as u8).unwrap();
                    assert!(keys.opened(next));
                }
                let (_, aead) = keys.data(epoch as u8).unwrap();
                let (sequence, bytes) = (record.number_64("sequence"), record.bytes("record"));
                if record.number("index") == 0 {
                    let header =
                        open_first(aead, sequence, geometry, padded, &bytes, &mut body).unwrap();
                    assert_eq!(header, inner_header(message), "{name}");
                    continue;
                }
                let place = geometry.record(padded, record.number("index") as u32);
                assert_eq!(u64::from(place.stream_start), record.number("offset"));
                let start = body.len();
                body.resize(start + place.content(true_inner) + 1, 0);
                let content = &mut body[start..];
                open_rest(aead, sequence, &place, true_inner, &bytes, content, &mut scratch)
                    .unwrap();
                body.pop();
            }
            assert_eq!(body, message.bytes("inner_stream")[40..], "{name}");
        }
    }

    #[test]
    fn a_second_library_opens_and_seals_them() {
        for message in read("records").list("messages") {
            let inner = message.bytes("inner_stream");
            let mut start = 0;
            for record in message.list("records") {
                let epoch = &message.list("epochs")[record.number("epoch") as usize];
                let aead = RustCrypto::new(message.suite(), epoch);
                let bytes = record.bytes("record");
                let (aad, sealed) = bytes.split_at(5);
                let sequence = record.number_64("sequence");
                let plaintext = aead.open(sequence, aad, sealed).unwrap();
                let end = inner.len().min(start + plaintext.len() - 1);
                let mut expected = inner[start.min(end)..end].to_vec();
                expected.push(0x17);
                expected.resize(plaintext.len(), 0);
                assert_eq!(plaintext, expected);
                assert_eq!(aead.seal(sequence, aad, &plaintext), sealed);
                assert!(aead.open(sequence + 1, aad, sealed).is_none());
                start += plaintext.len() - 1;
            }
            assert_eq!(start as u64, message.number("padded_length"));
        }
    }
}

mod key_schedule {
    use super::*;

    /// Checks the secrets of epochs 0 to 2 by the key log, and the keys by what they seal.
    fn check(library: &CryptoProvider, vector: &Value, secrets: SessionSecrets) {
        let suite = secrets.suite;
        for (side, direction) in [(Side::Client, secrets.client), (Side::Server, secrets.server)] {
            let lines = Arc::new(Lines::default());
            let log: Arc<dyn KeyLog> = Arc::clone(&lines) as _;
            let log = Some(KeyLogContext { log, index: SessionIndex(5), side });
            let (limits, library) = (KeyLimits::default(), library.clone());
            let mut keys = SealKeys::with_provider(direction, suite, limits, log, library);
            for epoch in 0..3_u32 {
                for (purpose, aead) in
                    [("data", keys.data(epoch).unwrap()), ("control", keys.control().unwrap())]
                {
                    let expected =
                        &vector["secrets"].list(&format!("{side} {purpose}"))[epoch as usize];
                    let line = format!(
                        "SMT_SECRET 0000000000000005 {side} {purpose} {epoch} {:04x} {}",
                        suite.code(),
                        expected.text("secret"),
                    );
                    assert!(lines.0.lock().unwrap().contains(&line), "{line}");
                    let second = RustCrypto::new(suite, expected).seal(77, b"aad", b"");
                    assert_eq!(aead.seal(77, b"aad", &mut []).unwrap()[..], second);
                }
                keys.update();
                keys.finish_previous();
            }
        }
    }

    fn check_exported(library: &CryptoProvider, vector: &Value, exporter: &Exporter) {
        for exported in vector.list("exported") {
            let expected = exported.bytes("secret");
            let (label, context) = (exported.text("label"), exported.bytes("context"));
            let mut out = vec![0; expected.len()];
            let result = exporter.export(library.hash(), label, &context, &mut out);
            assert_eq!((result, out), (Ok(()), expected), "{label}");
        }
    }

    // SMT [6.3-21]
    #[test]
    fn parameter_hashes_agree() {
        for vector in read("key_schedule").list("parameter_hash") {
            let (client, server) = (vector.bytes("client"), vector.bytes("server"));
            for library in libraries() {
                let hash = parameter_hash(library.hash(), &client, &server);
                assert_eq!(hash[..], vector.bytes("hash"));
            }
        }
    }

    // SMT [7.1-1], [7.4-1]
    #[test]
    fn exporter_secrets_and_keys_agree() {
        for vector in read("key_schedule").list("exporter") {
            let hash = vector.bytes("parameter_hash").try_into().unwrap();
            for library in libraries() {
                let export = |out: &mut [u8], label: &str, _: &[u8]| {
                    // check.py computes the value that TLS's exporter gives for the master secret.
                    let name = label.strip_prefix("EXPORTER-smt-1 ").unwrap();
                    out.copy_from_slice(&match name {
                        "exporter" => vector.bytes("exporter_secret"),
                        _ => vector["secrets"].list(name)[0].bytes("secret"),
                    });
                    Ok::<(), ()>(())
                };
                let secrets = SessionSecrets::from_exporter(vector.suite(), &hash, export);
                let secrets = secrets.unwrap();
                check_exported(&library, vector, &secrets.exporter);
                check(&library, vector, secrets);
            }
        }
    }

    // SMT [7.2-1], [7.4-1]
    #[test]
    fn registered_secrets_and_keys_agree() {
        for vector in read("key_schedule").list("registered") {
            let hash = vector.bytes("parameter_hash").try_into().unwrap();
            let [key_name, client, server] =
                ["key_name", "client", "server"].map(|field| vector.bytes(field));
            let identity =
                ImportedIdentity { key_name: &key_name, client: &client, server: &server };
            let (suite, ikm) = (vector.suite(), vector.bytes("ikm"));
            for library in libraries() {
                let key = ImportedKey::new(library.hash(), suite, &ikm, &identity);
                let secrets = key.session_secrets(library.hash(), &hash);
                check_exported(&library, vector, &secrets.exporter);
                check(&library, vector, secrets);
            }
        }
    }

    // SMT [3.4-1]
    #[test]
    fn control_packets_seal_and_open() {
        for vector in read("key_schedule").list("control") {
            let packet = vector.bytes("packet");
            let (Packet::Control(control), []) = parse(VERSION, &packet).unwrap() else {
                panic!("{} is one control packet", vector.text("name"));
            };
            let Control { header, body, aad, sealed } = control;
            assert_eq!(
                (body.packet_type().to_string(), aad),
                (vector.text("name").to_owned(), &vector.bytes("aad")[..],)
            );
            assert_eq!(u64::from(header.number.stripe), vector.number("stripe"));
            assert_eq!(header.number.counter, vector.number_64("counter"));
            let number = header.number.to_u64();
            let suite = vector.suite();
            let iv = vector.bytes("iv").try_into().unwrap();
            let plaintext = vector.bytes("plaintext");
            assert_eq!(plaintext.len(), if body == Body::Confirm { 16 } else { 0 });
            let second = RustCrypto::new(suite, vector).open(number, aad, sealed);
            assert_eq!(second.as_ref(), Some(&plaintext));
            for library in libraries() {
                let cipher = library.aead(suite, &vector.bytes("key"), iv).unwrap();
                let mut text = plaintext.clone();
                let tag = cipher.seal(number, aad, &mut text).unwrap();
                assert_eq!([&text[..], &tag].concat(), sealed);
                let mut opened = sealed.to_vec();
                assert_eq!(cipher.open_in_place(number, aad, &mut opened), Ok(()));
                assert_eq!(opened[..plaintext.len()], plaintext);
            }
        }
    }
}

mod padding {
    use super::*;

    #[test]
    fn policies_give_the_padded_lengths() {
        for vector in read("padding").list("padding") {
            let policy = match vector.text("policy") {
                "none" => Padding::None,
                "padme" => Padding::Padme,
                "block" => Padding::Block(NonZeroU32::new(vector.number("block") as u32).unwrap()),
                other => panic!("policy {other}"),
            };
            let length = |name| u32::try_from(vector.number(name)).unwrap();
            let padded = policy.padded(length("true_inner"), length("max"));
            assert_eq!(padded, length("padded"), "{vector}");
        }
    }
}
