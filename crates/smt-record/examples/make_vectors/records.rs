// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `records.json`: messages and their records.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::{Value, json};
use smt_record::{
    FrozenMessage, IdAllocator, IdLayout, IdWindow, IndexBits, KeyLimits, OutgoingId, Padding,
    SealKeys, SessionSecrets, Side, Suite,
};
use smt_wire::{Ack, Geometry, InnerHeader, Kind, MessageId};

use crate::inputs::{Lines, array, bytes, code, from_hex, hex, key_and_iv};

/// The parameters chosen for one message; the rest follows from them.
struct Choice {
    name: &'static str,
    suite: Suite,
    sender: Side,
    kind: Kind,
    /// The index bits of the sender and of the peer.
    index_bits: (u8, u8),
    stripes_log2: u8,
    stripe: u16,
    counter: u64,
    sizes: (u16, u16),
    length: usize,
    padding: Padding,
    /// The index of the first record that is sealed under the next epoch, repeatedly.
    updates: &'static [u32],
}

pub(crate) fn all() -> Value {
    let messages: Vec<_> = [by_length(), by_padding(), by_numbers(), by_epochs()]
        .iter()
        .flatten()
        .map(message)
        .collect();
    json!({ "messages": messages })
}

/// A request of 0 bytes; the others differ from it where they say.
const EMPTY: Choice = Choice {
    name: "request of 0 bytes",
    suite: Suite::Aes128Gcm,
    sender: Side::Client,
    kind: Kind::Request,
    index_bits: (16, 16),
    stripes_log2: 0,
    stripe: 0,
    counter: 0,
    sizes: (1_142, 16_384),
    length: 0,
    padding: Padding::None,
    updates: &[],
};

fn by_length() -> Vec<Choice> {
    let request = |name, counter, length| Choice { name, counter, length, ..EMPTY };
    vec![
        EMPTY,
        request("request of one record", 1, 100),
        request("request that fills record 0", 2, 1_102),
        request("request with one byte in record 1", 3, 1_103),
        request("request with a full record 1", 4, 1_102 + 16_384),
        Choice {
            sender: Side::Server,
            kind: Kind::Reply,
            sizes: (64, 100),
            ..request("reply, three records", 1, 200)
        },
    ]
}

fn by_padding() -> Vec<Choice> {
    let block = |bytes| Padding::Block(NonZeroU32::new(bytes).expect("not 0"));
    vec![
        Choice {
            name: "AES-256, padding within a record, stripe 2 of 4",
            suite: Suite::Aes256Gcm,
            stripes_log2: 2,
            stripe: 2,
            counter: 77,
            sizes: (64, 128),
            length: 150,
            padding: block(128),
            ..EMPTY
        },
        Choice {
            name: "AES-256, one way by the server, records of padding only",
            suite: Suite::Aes256Gcm,
            sender: Side::Server,
            kind: Kind::OneWay,
            counter: 5,
            sizes: (64, 64),
            length: 30,
            padding: block(300),
            ..EMPTY
        },
        Choice {
            name: "ChaCha20, Padmé, 8 index bits against 17",
            suite: Suite::ChaCha20Poly1305,
            index_bits: (8, 17),
            counter: 1_000_000,
            sizes: (200, 256),
            length: 1_000,
            padding: Padding::Padme,
            ..EMPTY
        },
    ]
}

fn by_numbers() -> Vec<Choice> {
    vec![
        Choice {
            name: "ChaCha20, reply, 17 index bits",
            suite: Suite::ChaCha20Poly1305,
            sender: Side::Server,
            kind: Kind::Reply,
            index_bits: (17, 8),
            counter: 60,
            sizes: (64, 512),
            length: 1_500,
            ..EMPTY
        },
        Choice {
            name: "largest id of 8 stripe bits",
            sender: Side::Server,
            index_bits: (17, 16),
            stripes_log2: 8,
            stripe: 255,
            counter: (1 << 38) - 1,
            sizes: (64, 64),
            length: 90,
            ..EMPTY
        },
    ]
}

fn by_epochs() -> Vec<Choice> {
    vec![
        Choice {
            name: "key update within a message",
            suite: Suite::Aes256Gcm,
            counter: 9,
            sizes: (64, 100),
            length: 350,
            updates: &[2],
            ..EMPTY
        },
        Choice {
            name: "third epoch, ChaCha20, 12 index bits",
            suite: Suite::ChaCha20Poly1305,
            index_bits: (12, 16),
            counter: 10,
            sizes: (64, 100),
            length: 250,
            updates: &[0, 0],
            ..EMPTY
        },
    ]
}

fn message(choice: &Choice) -> Value {
    let Choice { name, suite, sender, kind, stripe, counter, .. } = *choice;
    let bits = |bits| IndexBits::new(bits).expect("8 to 17");
    let (own, peer) = (bits(choice.index_bits.0), bits(choice.index_bits.1));
    let layout = IdLayout::new(own, peer, choice.stripes_log2).expect("at most 8");
    let geometry = Geometry::new(choice.sizes.0, choice.sizes.1).expect("sizes in range");
    let body = bytes(name, choice.length);
    let header = header(choice, geometry.padded_max(own.bits()));
    let mut inner = [0; InnerHeader::LEN];
    header.emit(&mut inner);
    let mut message =
        FrozenMessage::new(outgoing(choice, layout), &header, body.clone().into(), geometry, own)
            .expect("numbers fit");
    let lines = Arc::new(Lines::default());
    let mut keys = seal_keys(choice, &lines);
    let records = seal(choice, &mut message, &mut keys);
    let secrets = lines.secrets("data");
    let epochs: Vec<_> = secrets.iter().map(|secret| epoch(suite, secret)).collect();
    let initiator = if kind == Kind::Reply { sender.peer() } else { sender };
    json!({
        "name": name,
        "suite": code(suite),
        "sender": sender.to_string(),
        "epochs": epochs,
        "initiator": initiator.to_string(),
        "counter": format!("{counter:016x}"),
        "stripe": stripe,
        "stripes_log2": choice.stripes_log2,
        "index_bits": own.bits(),
        "peer_index_bits": peer.bits(),
        "id": format!("{:016x}", message.id().0),
        "first_record_size": geometry.first,
        "record_size": geometry.rest,
        "true_length": choice.length,
        "padded_length": header.padded_length,
        "inner_stream": hex(&[&inner[..], &body].concat()),
        "stream_length": message.stream_length(),
        "records": records,
    })
}

fn epoch(suite: Suite, secret: &str) -> Value {
    let (key, iv) = key_and_iv(suite, &from_hex(secret));
    json!({ "secret": secret, "key": hex(&key), "iv": hex(&iv) })
}

fn header(choice: &Choice, padded_max: u32) -> InnerHeader {
    let true_length = u32::try_from(choice.length).expect("short messages");
    let is_request = choice.kind == Kind::Request;
    InnerHeader {
        true_length,
        padded_length: choice.padding.padded(40 + true_length, padded_max),
        kind: choice.kind,
        deadline_us: if is_request { 250_000 } else { 0 },
        reply_unscheduled: if is_request { 60_000 } else { 0 },
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
        window: 4_096,
        ack: (choice.length % 100 == 50)
            .then_some(Ack { base: MessageId(1), bits: 0x8000_0000_0000_0005 }),
    }
}

/// Replies take the right that the first sight of their request gives, as in a session.
fn outgoing(choice: &Choice, layout: IdLayout) -> OutgoingId {
    let Choice { sender, stripe, counter, .. } = *choice;
    if choice.kind != Kind::Reply {
        let mut ids = IdAllocator::starting_at(layout, sender, stripe, counter);
        return ids.next(u64::MAX).expect("counter in range");
    }
    let mut window = IdWindow::new(64, layout, sender.peer(), stripe);
    for earlier in 0..counter {
        window.mark_seen(earlier);
    }
    window.mark_seen(counter).expect("unseen").reply_right()
}

fn seal_keys(choice: &Choice, lines: &Arc<Lines>) -> SealKeys {
    let Choice { suite, sender, .. } = *choice;
    let secrets =
        SessionSecrets::from_exporter(suite, &array(choice.name), |out, label, context| {
            let input = format!("{label} {}", hex(context));
            out.copy_from_slice(&bytes(&input, out.len()));
            Ok::<(), std::convert::Infallible>(())
        });
    let Ok(secrets) = secrets;
    let direction = match sender {
        Side::Client => secrets.client,
        Side::Server => secrets.server,
    };
    SealKeys::new(direction, suite, KeyLimits::default(), lines.context(sender))
}

fn seal(choice: &Choice, message: &mut FrozenMessage, keys: &mut SealKeys) -> Vec<Value> {
    let own = IndexBits::new(choice.index_bits.0).expect("8 to 17");
    let mut offset = 0;
    let mut records = Vec::new();
    for index in 0..message.records() {
        for _ in choice.updates.iter().filter(|update| **update == index) {
            keys.finish_previous();
            keys.update();
        }
        let mut out = vec![0; 16_406];
        let length = message.seal(index, keys, &mut out).expect("in order, under the limits");
        let sequence = own.sequence(message.id(), index).expect("numbers fit");
        records.push(json!({
            "index": index,
            "epoch": message.epoch_of(index),
            "sequence": format!("{sequence:016x}"),
            "offset": offset,
            "record": hex(&out[..length]),
        }));
        offset += length;
    }
    records
}
