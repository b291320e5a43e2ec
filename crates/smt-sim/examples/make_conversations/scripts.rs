// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The conversations: what happens in each, and whose it is.

use serde_json::{Value, json};
use smt_record::KeyLimits;

use crate::network::{Fate, Network};
use crate::setup::Setup;

/// All of them, by the names of their files.
pub(crate) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("call_and_reply_at_client", call_and_reply().of_client(CALL)),
        ("call_and_reply_at_server", call_and_reply().of_server(CALL)),
        ("tls_at_client", tls().of_client(TLS)),
        ("tls_at_server", tls().of_server(TLS)),
        ("long_request_at_client", long_request().of_client(LONG)),
        ("long_request_at_server", long_request().of_server(LONG)),
        ("lost_packet_at_sender", lost_packet().of_client(LOST)),
        ("lost_packet_at_receiver", lost_packet().of_server(LOST)),
        ("reordered_packets", reordered_packets()),
        ("bundle_at_client", bundle().of_client(BUNDLE)),
        ("bundle_at_server", bundle().of_server(BUNDLE)),
        ("reply_in_parts_at_client", reply_in_parts().of_client(REPLY_IN_PARTS)),
        ("reply_in_parts_at_server", reply_in_parts().of_server(REPLY_IN_PARTS)),
        ("request_in_parts_at_client", request_in_parts().of_client(REQUEST_IN_PARTS)),
        ("request_in_parts_at_server", request_in_parts().of_server(REQUEST_IN_PARTS)),
        ("cancel_at_client", cancel().of_client(CANCEL)),
        ("cancel_at_server", cancel().of_server(CANCEL)),
        ("key_update", key_update()),
        ("one_way_at_client", one_way().of_client(ONE_WAY)),
        ("one_way_at_server", one_way().of_server(ONE_WAY)),
        ("reset_at_client", reset().of_client(RESET)),
        ("reset_at_server", reset().of_server(RESET)),
        ("close_at_client", close().of_client(CLOSE)),
        ("close_at_server", close().of_server(CLOSE)),
    ]
}

const CALL: &str = "A handshake, a call, its reply, and the question whether the reply is there";

fn call_and_reply() -> Network {
    let mut network = Network::connected();
    network.call(1, 100);
    network.run_for(1_000_000);
    network
}

const TLS: &str = "A handshake of TLS 1.3 with certificates of both sides, a call and its reply";

fn tls() -> Network {
    let [client, server] = [false, true].map(|is_server| Setup::new(is_server).with_tls());
    let mut network = Network::connected_with(client, server);
    network.call(14, 100);
    network.run_for(1_000_000);
    network
}

const LONG: &str = "A request of 100 KB: 60,000 bytes at once, the rest after grants";

fn long_request() -> Network {
    let mut network = Network::connected();
    network.call(2, 100_000);
    network.run_for(5_000);
    network
}

const LOST: &str = "One packet of a request is lost, asked for, and sent again";

fn lost_packet() -> Network {
    let mut network = Network::connected();
    let mut are_lost = 1;
    network.rule = Box::new(move |is_client, datagram| {
        if are_lost > 0 && is_client && is_data(datagram) && offset(datagram) > 2_000 {
            are_lost -= 1;
            return Fate::Lost;
        }
        Fate::Arrives
    });
    network.call(3, 5_000);
    network.run_for(100_000);
    network
}

fn reordered_packets() -> Value {
    let mut network = Network::connected();
    network.rule = Box::new(|is_client, datagram| match offset(datagram) {
        0 if is_client && is_data(datagram) => Fate::Late(50),
        1..=3_000 if is_client && is_data(datagram) => Fate::Late(20),
        _ => Fate::Arrives,
    });
    network.call(4, 5_000);
    network.run_for(5_000);
    network.of_server("Packets of a request come in another order, and record 0 last")
}

const BUNDLE: &str = "Three small calls and a one-way message leave in one packet";

fn bundle() -> Network {
    let mut network = Network::connected();
    let mut commands: Vec<_> = [(5, 100), (6, 50), (7, 0)]
        .map(|(start, length)| json!({ "call": { "body": body(start, length) } }))
        .into();
    commands.push(json!({ "one_way": { "body": body(8, 20) } }));
    network.commands(0, &commands);
    network.run_for(5_000);
    network
}

const REPLY_IN_PARTS: &str = "A reply in parts: one is lost, one overtaken, and the last two share a packet with the reply, \
    which waits for the lost one";

fn reply_in_parts() -> Network {
    let mut network = Network::connected();
    network.reply_length = None;
    let id = call_in_parts(&mut network, 15, "reply_in_parts");
    network.run_for(1_000);
    for (start, length, fate) in [
        (16, 100, Fate::Arrives),
        (17, 5_000, Fate::Arrives),
        (18, 200, Fate::Lost),
        (19, 300, Fate::Late(500)),
        (20, 400, Fate::Arrives),
    ] {
        let mut fate = Some(fate);
        network.rule = Box::new(move |is_client, datagram| match is_client || !is_data(datagram) {
            true => Fate::Arrives,
            false => fate.take().unwrap_or(Fate::Arrives),
        });
        assert!(network.part(1, part(&id, start, length, true)));
        network.run_for(100);
    }
    let end: Vec<_> = [
        json!({ "part": part(&id, 21, 10, true) }),
        json!({ "part": part(&id, 0, 0, true) }),
        json!({ "reply": { "id": id, "body": body(22, 20) } }),
    ]
    .into();
    network.commands(1, &end);
    network.run_for(1_000_000);
    network
}

const REQUEST_IN_PARTS: &str = "A request in parts, of which two fit the server's window: it opens late, is asked for, is full, \
    and its growth is lost once";

fn request_in_parts() -> Network {
    let mut server = Setup::new(true);
    server.config.part_window = 4_096;
    let mut network = Network::connected_with(Setup::new(false), server);
    network.reply_length = None;
    network.takes_parts = false;
    let id = call_in_parts(&mut network, 23, "more");
    network.run_for(1_000);
    assert!(!network.part(0, part(&id, 24, 1_500, true)), "no window yet");
    // The client asks, and the server has nothing to tell until its application looks.
    network.run_for(10_000);
    network.take_parts(1, &id);
    network.run_for(1_000);
    assert!(network.part(0, part(&id, 24, 1_500, true)));
    assert!(network.part(0, part(&id, 25, 1_500, true)));
    assert!(!network.part(0, part(&id, 26, 1_000, true)), "full");
    network.run_for(1_000);
    let mut is_lost = true;
    network.rule = Box::new(move |_, datagram| {
        match datagram[1] == PART_WINDOW && std::mem::take(&mut is_lost) {
            true => Fate::Lost,
            false => Fate::Arrives,
        }
    });
    network.take_parts(1, &id);
    network.run_for(20_000);
    assert!(network.part(0, part(&id, 26, 1_000, true)));
    assert!(network.part(0, part(&id, 0, 0, false)), "the end alone");
    network.run_for(1_000);
    network.take_parts(1, &id);
    network.commands(1, &[json!({ "reply": { "id": id, "body": body(27, 50) } })]);
    network.run_for(1_000_000);
    network
}

/// A call of the client with one of the marks of parts; and its id.
fn call_in_parts(network: &mut Network, start: u8, mark: &str) -> Value {
    let of = json!({
        "body": body(start, 100),
        "reply_in_parts": mark == "reply_in_parts",
        "more": mark == "more",
    });
    let done = network.commands(0, &[json!({ "call_in_parts": of })]);
    done[0]["call_in_parts"]["id"].clone()
}

fn part(id: &Value, start: u8, length: u64, more: bool) -> Value {
    json!({ "id": id, "body": body(start, length), "more": more })
}

const CANCEL: &str = "A call is cancelled while the server works on it, another before it is there";

fn cancel() -> Network {
    let mut network = Network::connected();
    network.reply_length = None;
    let id = network.call(9, 100);
    network.run_for(1_000);
    network.commands(0, &[json!({ "cancel": { "id": id } })]);
    network.run_for(1_000);
    let mut are_lost = true;
    network.rule = Box::new(move |is_client, datagram| {
        match is_client && is_data(datagram) && std::mem::take(&mut are_lost) {
            true => Fate::Lost,
            false => Fate::Arrives,
        }
    });
    let id = network.call(10, 100);
    network.commands(0, &[json!({ "cancel": { "id": id } })]);
    network.run_for(50_000);
    network
}

fn key_update() -> Value {
    let mut client = Setup::new(false);
    client.config.key_limits = KeyLimits::new(64, 12, 1 << 20).expect("within bounds");
    let mut network = Network::connected_with(client, Setup::new(true));
    for number in 0..14 {
        network.call(number, 100);
        network.run_for(1_000);
    }
    network.run_for(100_000);
    network.of_client("The client renews its keys after 12 records, and finishes the old epoch")
}

const ONE_WAY: &str = "A one-way message, and that it was accepted for delivery";

fn one_way() -> Network {
    let mut network = Network::connected();
    network.one_way(11, 3_000);
    network.run_for(100_000);
    network
}

const RESET: &str = "The server restarts, and answers a packet of the session by RESET";

fn reset() -> Network {
    let mut server = Setup::new(true);
    server.config.durable_boot = true;
    let mut network = Network::connected_with(Setup::new(false), server);
    network.restart_server();
    network.call(12, 100);
    network.run_for(1_000);
    network
}

const CLOSE: &str = "The client closes the session while a call is in progress";

fn close() -> Network {
    let mut network = Network::connected();
    network.reply_length = None;
    network.call(13, 100);
    network.run_for(1_000);
    network.commands(0, &[json!({ "close": { "code": 0 } })]);
    network.run_for(1_000);
    network
}

fn body(start: u8, length: u64) -> Value {
    json!({ "start": start, "length": length })
}

/// The type of PART_WINDOW.
const PART_WINDOW: u8 = 0x36;

fn is_data(datagram: &[u8]) -> bool {
    datagram[1] == 1
}

/// The offset of a DATA packet.
fn offset(datagram: &[u8]) -> u32 {
    let bytes = datagram.get(32..36).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_be_bytes)
}
