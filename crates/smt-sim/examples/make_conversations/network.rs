// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client, a server and the cable between them, in virtual time. One of the two is recorded.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use smt_wire::{Packet, VERSION, parse};

use crate::driven::Driven;
use crate::setup::{Setup, from_hex, hex};

/// The cable takes so long, in microseconds.
const LATENCY_US: u64 = 10;

/// The way that a datagram takes.
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// Arrives so many microseconds later.
    Late(u64),
}

/// Decides about each datagram: whether the client has sent it, and its bytes.
pub(crate) type Rule = Box<dyn FnMut(bool, &[u8]) -> Fate>;

/// A client (0) and a server (1).
pub(crate) struct Network {
    setups: [Setup; 2],
    ends: [Driven; 2],
    steps: [Vec<Value>; 2],
    /// Steps of each end before its session was live.
    steps_before: [usize; 2],
    pub(crate) rule: Rule,
    /// Bytes of the server's replies; none answers nothing.
    pub(crate) reply_length: Option<u64>,
    /// Whether each end takes the parts of a call as soon as they have come.
    pub(crate) takes_parts: bool,
    now_us: u64,
    on_way: BTreeMap<(u64, u64), (usize, String)>,
    serial: u64,
    /// Parameters of client and server, as their flights had them.
    params: [Vec<u8>; 2],
}

impl Network {
    pub(crate) fn new(client: Setup, server: Setup) -> Self {
        Self {
            ends: [Driven::new(&client), Driven::new(&server)],
            setups: [client, server],
            steps: [Vec::new(), Vec::new()],
            steps_before: [0; 2],
            rule: Box::new(|_, _| Fate::Arrives),
            reply_length: Some(200),
            takes_parts: true,
            now_us: 0,
            on_way: BTreeMap::new(),
            serial: 0,
            params: [Vec::new(), Vec::new()],
        }
    }

    /// A live session between two that have nothing special.
    pub(crate) fn connected() -> Self {
        Self::connected_with(Setup::new(false), Setup::new(true))
    }

    pub(crate) fn connected_with(client: Setup, server: Setup) -> Self {
        let server_name = client.server_name();
        let mut network = Self::new(client, server);
        let connect = json!({ "server_name": server_name, "deadline_us": 1_000_000 });
        network.commands(0, &[json!({ "connect": connect })]);
        network.run_for(1_000);
        for end in [0, 1] {
            assert!(network.ends[end].session().is_some(), "both ends are live");
            network.steps_before[end] = network.steps[end].len();
        }
        network
    }

    /// A call of the client, with a body of this start and length; and its id.
    pub(crate) fn call(&mut self, start: u8, length: u64) -> String {
        self.message("call", start, length)
    }

    pub(crate) fn one_way(&mut self, start: u8, length: u64) -> String {
        self.message("one_way", start, length)
    }

    fn message(&mut self, kind: &str, start: u8, length: u64) -> String {
        let body = json!({ "start": start, "length": length });
        let done = self.commands(0, &[json!({ kind: { "body": body } })]);
        let id = done[0][kind]["id"].as_str();
        id.expect("an id").to_owned()
    }

    /// A part of a call. Returns whether it was taken to be sent: else the window is full.
    pub(crate) fn part(&mut self, end: usize, part: Value) -> bool {
        let done = self.commands(end, &[json!({ "part": part })]);
        done[0]["part"]["window_is_full"] == false
    }

    /// One end takes the parts of a call that have come.
    pub(crate) fn take_parts(&mut self, end: usize, id: &Value) {
        self.commands(end, &[json!({ "take_parts": { "id": id } })]);
    }

    /// Commands of one end, which are given together; returns them with their ids.
    pub(crate) fn commands(&mut self, end: usize, commands: &[Value]) -> Vec<Value> {
        let done = self.step(end, json!({ "commands": commands }));
        done["commands"].as_array().expect("a list").clone()
    }

    /// The server process ends and comes again, with another boot number. Its conversation begins
    /// anew.
    pub(crate) fn restart_server(&mut self) {
        self.setups[1].config.boot += 1;
        self.ends[1] = Driven::new(&self.setups[1]);
        (self.steps[1], self.steps_before[1]) = (Vec::new(), 0);
    }

    pub(crate) fn run_for(&mut self, micros: u64) {
        let end_us = self.now_us + micros;
        loop {
            let arrival = self.on_way.first_key_value().map(|((at, _), _)| *at);
            let [client, server] = [0, 1].map(|end| self.ends[end].due_us());
            let due = [arrival, client, server].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= end_us) else {
                break;
            };
            self.now_us = self.now_us.max(due);
            if arrival == Some(due) {
                let (_, (end, datagram)) = self.on_way.pop_first().expect("it is on its way");
                self.step(end, json!({ "in": datagram }));
            } else {
                let end = usize::from(client != Some(due));
                self.step(end, json!({ "timer": true }));
            }
        }
        self.now_us = end_us;
    }

    fn step(&mut self, end: usize, mut input: Value) -> Value {
        input["at_us"] = self.now_us.into();
        let done = self.ends[end].step(&input);
        self.steps[end].push(done.clone());
        for datagram in done["out"].as_array().expect("a list") {
            self.send(end, &from_hex(datagram));
        }
        let events = done["events"].as_array().expect("a list");
        let requests: Vec<_> = events.iter().filter_map(|event| event.get("request")).collect();
        if let (Some(length), false) = (self.reply_length, requests.is_empty()) {
            let replies: Vec<_> = requests
                .iter()
                .map(|request| {
                    let body = json!({ "start": 100, "length": length });
                    json!({ "reply": { "id": request["id"], "body": body } })
                })
                .collect();
            self.commands(end, &replies);
        }
        let ready = events.iter().filter_map(|event| event.get("part_ready"));
        if self.takes_parts {
            for of in ready {
                self.take_parts(end, &of["id"]);
            }
        }
        done
    }

    fn send(&mut self, from: usize, datagram: &[u8]) {
        // A flight's parameters stand at its beginning, behind their length.
        if let Ok((Packet::Handshake(packet), _)) = parse(VERSION, datagram)
            && packet.offset == 0
            && usize::from(packet.flight) == from + 1
            && let Some((length, rest)) = packet.fragment.split_first_chunk()
        {
            let length = u16::from_be_bytes(*length);
            self.params[from] = rest[..usize::from(length)].to_vec();
        }
        let late = match (self.rule)(from == 0, datagram) {
            Fate::Arrives => 0,
            Fate::Lost => return,
            Fate::Late(micros) => micros,
        };
        self.serial += 1;
        let place = (self.now_us + LATENCY_US + late, self.serial);
        self.on_way.insert(place, (1 - from, hex(datagram)));
    }

    /// The conversation as the client has had it.
    pub(crate) fn of_client(self, about: &str) -> Value {
        self.of(0, about)
    }

    /// The conversation as the server has had it.
    pub(crate) fn of_server(self, about: &str) -> Value {
        self.of(1, about)
    }

    fn of(mut self, end: usize, about: &str) -> Value {
        let established = (self.steps_before[end] > 0).then(|| {
            json!({
                "steps": self.steps_before[end],
                "client_params": hex(&self.params[0]),
                "server_params": hex(&self.params[1]),
                "peer_reset_token": hex(&self.setups[1 - end].reset_token),
            })
        });
        json!({
            "about": about,
            "endpoint": self.setups[end].to_json(),
            "established": established,
            "key_log": self.ends[end].lines.take(),
            "steps": std::mem::take(&mut self.steps[end]),
        })
    }
}
