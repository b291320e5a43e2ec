// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `transcript.json`: a session from flight 1 to an acknowledged bundle, datagram by datagram.
//!
//! The exporter's secrets are inputs, and patterns stand where TLS's bytes would: a real handshake
//! is different each time. All other bytes are those that the two sides would send.

use std::convert::Infallible;

use serde_json::{Value, json};
use smt_record::{
    AwsLc, DirectionSecrets, FrozenMessage, IdAllocator, IdLayout, IdWindow, IndexBits, KeyLimits,
    OutgoingId, SealKeys, SessionSecrets, Side, Suite, parameter_hash,
};
use smt_wire::{
    Ack, Body, ControlHeader, ControlNumber, DataHeader, FlightBody, Geometry, Handshake,
    InnerHeader, KeyExchange, Kind, MemberHeader, MessageId, Params, SessionIndex, VERSION,
};

use crate::inputs::{ALWAYS, bytes, code, hex, key_and_iv};

const SUITE: Suite = Suite::Aes128Gcm;
const DATAGRAM: usize = 1_200;
const W: u32 = 4_096;
const UNSCHEDULED: u32 = 60_000;
const CLIENT: SessionIndex = SessionIndex::new(7, 1);
const SERVER: SessionIndex = SessionIndex::new(9, 2);

pub(crate) fn all() -> Value {
    let (client, server) = (params(CLIENT, 17), params(SERVER, 16));
    let flights = [
        (Side::Client, client.as_slice(), 260),
        (Side::Server, server.as_slice(), 1_300),
        (Side::Client, &[], 58),
    ]
    .into_iter()
    .zip(1..)
    .map(|((sender, params, length), number)| Flight::new(sender, number, params, length))
    .collect::<Vec<_>>();
    let mut datagrams = Vec::new();
    handshake(&flights, &mut datagrams);
    messages(&mut datagrams);
    json!({
        "suite": code(SUITE),
        "client_params": hex(&client),
        "server_params": hex(&server),
        "parameter_hash": hex(&parameter_hash(&AwsLc, &client, &server)),
        "flights": flights.iter().map(Flight::json).collect::<Vec<_>>(),
        "secrets": secrets_json(),
        "reset_tokens": { "client": hex(&token(Side::Client)), "server": hex(&token(Side::Server)) },
        "datagrams": datagrams,
    })
}

fn params(index: SessionIndex, index_bits: u8) -> Vec<u8> {
    let suites: &[u16] = &[SUITE.code()];
    let params = Params {
        versions: &[VERSION],
        key_exchange: KeyExchange::Tls13,
        index,
        suites: suites.into(),
        index_bits,
        record_size: 16_384,
        first_record_size: 1_142,
        window: W,
        message_limit: 1 << 20,
        unscheduled: UNSCHEDULED,
        datagram_limit: 1_200,
        stripes: 0,
        key_name: None,
        random: None,
        takes_bundles: true,
        part_window: None,
        psp_versions: None,
    };
    let mut out = vec![0; Params::LEN_MAX];
    let length = params.emit(&mut out);
    out.truncate(length);
    out
}

/// A flight's body, and the bytes that stand for TLS's.
struct Flight {
    sender: Side,
    number: u8,
    key_exchange: Vec<u8>,
    body: Vec<u8>,
}

impl Flight {
    fn new(sender: Side, number: u8, params: &[u8], length: usize) -> Self {
        let key_exchange = bytes(&format!("TLS bytes of flight {number}"), length);
        let flight = FlightBody { params, key_exchange: &key_exchange };
        let mut body = vec![0; flight.flight_len()];
        flight.emit(&mut body);
        Self { sender, number, body, key_exchange }
    }

    fn json(&self) -> Value {
        json!({
            "flight": self.number,
            "sender": self.sender.to_string(),
            "key_exchange": hex(&self.key_exchange),
            "body": hex(&self.body),
        })
    }

    /// Its packets, each of at most a datagram, with zeros up to `padded_to`.
    fn packets(&self, padded_to: usize) -> Vec<Vec<u8>> {
        let (destination, source) = match (self.sender, self.number) {
            (Side::Client, 1) => (SessionIndex(0), CLIENT),
            (Side::Client, _) => (SERVER, CLIENT),
            (Side::Server, _) => (CLIENT, SERVER),
        };
        let fragment_max = DATAGRAM - Handshake::HEADER_LEN;
        let fragments = self.body.chunks(fragment_max).enumerate();
        fragments
            .map(|(index, fragment)| {
                let packet = Handshake {
                    destination,
                    source,
                    flight: self.number,
                    cookie: &[],
                    flight_length: self.body.len() as u32,
                    offset: (index * fragment_max) as u32,
                    fragment,
                };
                let mut out = vec![0; DATAGRAM];
                let length = packet.emit(VERSION, padded_to, &mut out);
                out.truncate(length);
                out
            })
            .collect()
    }
}

fn handshake(flights: &[Flight], out: &mut Vec<Value>) {
    let confirm = |side| control(side, 0, &Body::Confirm);
    let [first, second, third] = flights else {
        unreachable!("three flights are made");
    };
    let mut put = |name: &str, sender, packets: &[Vec<u8>]| {
        out.push(datagram(name, sender, &packets.concat()));
    };
    for packet in first.packets(DATAGRAM) {
        put("flight 1", Side::Client, &[packet]);
    }
    for packet in second.packets(0) {
        put("a fragment of flight 2", Side::Server, &[packet]);
    }
    let confirm_of_client = confirm(Side::Client);
    let padded_to = DATAGRAM - confirm_of_client.len();
    let mut packets = third.packets(padded_to);
    packets.push(confirm_of_client);
    put("flight 3 and CONFIRM", Side::Client, &packets);
    put("CONFIRM", Side::Server, &[confirm(Side::Server)]);
}

fn messages(out: &mut Vec<Value>) {
    let mut ids = IdAllocator::new(layout(), Side::Client, 0);
    let mut next = || ids.next(W.into()).expect("few ids");
    let (request, member, one_way, bundle) = (next(), next(), next(), next());
    let (rpc, bundle_id) = (request.id(), bundle.id());
    let mut window = IdWindow::new(W, layout(), Side::Client, 0);
    let reply = window.mark_seen(0).expect("unseen").reply_right();
    let members = [
        member_bytes(member.id(), Kind::Request, b"request"),
        member_bytes(one_way.id(), Kind::OneWay, b"one way"),
    ]
    .concat();
    let acked = |base: MessageId| [Ack { base, bits: 1 }];
    let mut put = |name: &str, sender, packets: Vec<Vec<u8>>| {
        for packet in packets {
            out.push(datagram(name, sender, &packet));
        }
    };
    let (client, server) = (Side::Client, Side::Server);
    let request_body = bytes("request", 100);
    let reply_body = bytes("reply", 1_200);
    put("request", client, data(client, request, Kind::Request, request_body));
    put("a packet of its reply", server, data(server, reply, Kind::Reply, reply_body));
    let asked = [rpc];
    let need_ack = control(server, 1, &Body::NeedAck(asked[..].into()));
    put("NEED_ACK of the reply", server, vec![need_ack]);
    let ack = control(client, 1, &Body::Ack(acked(rpc)[..].into()));
    put("ACK of the reply", client, vec![ack]);
    put(
        "bundle of a request and a one-way message",
        client,
        data(client, bundle, Kind::Bundle, members),
    );
    let ack = control(server, 2, &Body::Ack(acked(bundle_id)[..].into()));
    put("ACK of the bundle", server, vec![ack]);
}

fn member_bytes(id: MessageId, kind: Kind, body: &[u8]) -> Vec<u8> {
    let header = MemberHeader {
        id,
        kind,
        length: body.len() as u16,
        deadline_us: 250_000,
        reply_unscheduled: UNSCHEDULED,
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
    };
    let mut out = [0; MemberHeader::LEN];
    header.emit(&mut out);
    [&out[..], body].concat()
}

/// The packets of a message, each a datagram.
fn data(sender: Side, id: OutgoingId, kind: Kind, body: Vec<u8>) -> Vec<Vec<u8>> {
    let is_request = kind == Kind::Request;
    let header = InnerHeader {
        true_length: body.len() as u32,
        padded_length: InnerHeader::LEN as u32 + body.len() as u32,
        kind,
        deadline_us: if is_request { 250_000 } else { 0 },
        reply_unscheduled: if is_request { UNSCHEDULED } else { 0 },
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
        window: W,
        ack: None,
    };
    let message_id = id.id();
    let geometry = Geometry::new(1_142, 16_384).expect("sizes in range");
    let message = FrozenMessage::new(id, &header, body.into(), geometry, index_bits(sender));
    let mut message = message.expect("numbers fit");
    let mut keys = SealKeys::new(secrets(sender), SUITE, KeyLimits::default(), None);
    let mut stream = Vec::new();
    for index in 0..message.records() {
        let mut out = vec![0; 16_406];
        let length = message.seal(index, &mut keys, &mut out);
        stream.extend_from_slice(&out[..length.expect("in order, under the limits")]);
    }
    let payload_max = DATAGRAM - DataHeader::LEN;
    let payloads = stream.chunks(payload_max).enumerate();
    payloads
        .map(|(index, payload)| {
            let packet = DataHeader {
                epoch: 0,
                retransmit: false,
                session: index_of_receiver(sender),
                id: message_id,
                message_length: header.padded_length,
                offset: (index * payload_max) as u32,
            };
            let mut out = [0; DataHeader::LEN];
            packet.emit(VERSION, &mut out);
            [&out[..], payload].concat()
        })
        .collect()
}

fn control(sender: Side, counter: u64, body: &Body<'_>) -> Vec<u8> {
    let number = ControlNumber { stripe: 0, counter };
    let header = ControlHeader { epoch: 0, session: index_of_receiver(sender), number };
    let mut packet = vec![0; ControlHeader::packet_len(body)];
    let length = header.emit(VERSION, body, &mut packet);
    packet.truncate(length);
    let mut sealed = match body {
        Body::Confirm => token(sender),
        _ => Vec::new(),
    };
    let keys = SealKeys::new(secrets(sender), SUITE, KeyLimits::default(), None);
    let cipher = keys.control().expect(ALWAYS);
    let tag = cipher.seal(number.to_u64(), &packet, &mut sealed);
    let tag = tag.expect(ALWAYS);
    [packet, sealed, tag.to_vec()].concat()
}

fn datagram(name: &str, sender: Side, bytes: &[u8]) -> Value {
    json!({ "name": name, "sender": sender.to_string(), "hex": hex(bytes) })
}

fn index_of_receiver(sender: Side) -> SessionIndex {
    match sender {
        Side::Client => SERVER,
        Side::Server => CLIENT,
    }
}

fn index_bits(sender: Side) -> IndexBits {
    let bits = match sender {
        Side::Client => 17,
        Side::Server => 16,
    };
    IndexBits::new(bits).expect("8 to 17")
}

fn layout() -> IdLayout {
    let (client, server) = (index_bits(Side::Client), index_bits(Side::Server));
    IdLayout::new(client, server, 0).expect("at most 8")
}

/// The reset token that CONFIRM carries.
fn token(sender: Side) -> Vec<u8> {
    bytes(&format!("reset token of the {sender}"), 16)
}

/// The secret that the exporter gives for a label of SPEC §7.1: an input here.
fn exported(label: &str) -> Vec<u8> {
    bytes(&format!("transcript {label}"), SUITE.hash_len())
}

fn secrets(sender: Side) -> DirectionSecrets {
    let exported = |out: &mut [u8], label: &str, _: &[u8]| {
        out.copy_from_slice(&exported(label));
        Ok::<(), Infallible>(())
    };
    let Ok(secrets) = SessionSecrets::from_exporter(SUITE, &[0; 32], exported);
    match sender {
        Side::Client => secrets.client,
        Side::Server => secrets.server,
    }
}

fn secrets_json() -> Value {
    let mut by_name = serde_json::Map::new();
    // Nothing is exported in it, so the last label is left out.
    for label in &SessionSecrets::EXPORTER_LABELS[..4] {
        let secret = exported(label);
        let (key, iv) = key_and_iv(SUITE, &secret);
        let name = label.trim_start_matches("EXPORTER-smt-1 ");
        let value = json!({ "secret": hex(&secret), "key": hex(&key), "iv": hex(&iv) });
        by_name.insert(name.to_owned(), value);
    }
    by_name.into()
}
