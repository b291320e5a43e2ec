// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint that is driven step by step: the same code makes a conversation and plays it.
//!
//! One step: 1. a datagram, commands of the application, or the timer goes in 2. what the endpoint
//! has to tell comes out 3. then what it has to send, until that is all.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use smt_carrier::{Arrival, Path};
use smt_proto::{
    CallError, CallFailure, CallOptions, CloseCode, Endpoint, Event, OneWayOutcome, PartMarks,
    Refused, RpcId, SessionEnd, TakenPart, Time, TransmitBuffer,
};
use smt_wire::{MessageId, SessionIndex};

use crate::setup::{Lines, Setup, from_hex, hex};

/// An endpoint, and the one session that it has.
pub(crate) struct Driven {
    endpoint: Endpoint,
    path: Path,
    session: Option<SessionIndex>,
    buffer: TransmitBuffer,
    pub(crate) lines: Lines,
}

impl Driven {
    pub(crate) fn new(setup: &Setup) -> Self {
        let lines = Lines::default();
        let [client, server] = ["192.0.2.1", "192.0.2.2"];
        let (own, peer) = if setup.is_server { (server, client) } else { (client, server) };
        let peer = format!("{peer}:4433").parse().expect("an address");
        Self {
            endpoint: setup.endpoint(&lines),
            path: Path::between(peer, own.parse().expect("an address")),
            session: None,
            buffer: TransmitBuffer::default(),
            lines,
        }
    }

    /// When the endpoint wants a step without input, in whole microseconds: not before it is due.
    pub(crate) fn due_us(&self) -> Option<u64> {
        let (due, _) = self.endpoint.poll_timeout()?;
        Some(due.as_nanos().div_ceil(1_000))
    }

    pub(crate) fn session(&self) -> Option<SessionIndex> {
        self.session
    }

    /// Takes a step whose input is given; returns it with all that came of it.
    pub(crate) fn step(&mut self, step: &Value) -> Value {
        let at_us = step["at_us"].as_u64().expect("at_us");
        let now = Time::from_nanos(at_us * 1_000);
        let mut done = Map::new();
        done.insert("at_us".to_owned(), at_us.into());
        if let Some(commands) = step.get("commands") {
            let commands = commands.as_array().expect("a list");
            let commands = commands.iter().map(|command| self.command(now, command));
            done.insert("commands".to_owned(), commands.collect());
        } else if let Some(datagram) = step.get("in") {
            let bytes = from_hex(datagram);
            self.endpoint.handle_arrival(now, Arrival::datagram(self.path, &bytes));
            done.insert("in".to_owned(), datagram.clone());
        } else {
            self.endpoint.handle_timeout(now);
            done.insert("timer".to_owned(), true.into());
        }
        let mut events = Vec::new();
        while let Some(event) = self.endpoint.poll_event() {
            events.push(self.event(event));
        }
        done.insert("events".to_owned(), events.into());
        let mut out = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
            out.extend(transmit.segments(&self.buffer).map(hex));
        }
        done.insert("out".to_owned(), out.into());
        done.into()
    }

    /// Carries out a command; returns it with the id that it gave.
    fn command(&mut self, now: Time, command: &Value) -> Value {
        let (name, of) =
            command.as_object().and_then(|command| command.iter().next()).expect("one command");
        let deadline = of.get("deadline_us").and_then(Value::as_u64);
        let deadline = deadline.map(Duration::from_micros);
        let session = self.session.unwrap_or_default();
        let mut done = of.clone();
        match name.as_str() {
            "connect" => {
                let (path, name) = (self.path, of["server_name"].as_str().expect("a name"));
                let deadline = deadline.expect("a deadline");
                let begun = self.endpoint.connect(now, path, name, deadline);
                begun.expect("an attempt");
            }
            "call" => {
                let body = body(&of["body"]);
                let rpc = self.endpoint.call(now, session, body, deadline);
                done["id"] = id_text(rpc.expect("taken").id);
            }
            "call_in_parts" => {
                let flag = |name: &str| of[name].as_bool().expect(name);
                let parts = PartMarks {
                    reply_in_parts: flag("reply_in_parts"),
                    more: flag("more"),
                    number: 0,
                };
                let (body, options) = (body(&of["body"]), CallOptions { deadline, parts });
                let rpc = self.endpoint.call_in_parts(now, session, body, options);
                done["id"] = id_text(rpc.expect("taken").id);
            }
            "part" => {
                let (bytes, more) = (body(&of["body"]), of["more"].as_bool().expect("more"));
                let outcome = self.endpoint.send_part(now, self.rpc(of), bytes, more);
                let is_full = outcome == Err(Refused::PartWindowFull);
                assert!(outcome.is_ok() || is_full, "{outcome:?}");
                done["window_is_full"] = is_full.into();
            }
            "take_parts" => {
                let (parts, is_end) = self.take_parts(of);
                done["parts"] = parts.into();
                done["end"] = is_end.into();
            }
            "one_way" => {
                let body = body(&of["body"]);
                let rpc = self.endpoint.send_one_way(now, session, body, deadline);
                done["id"] = id_text(rpc.expect("taken").id);
            }
            "reply" => {
                let reply = self.endpoint.reply(now, self.rpc(of), body(&of["body"]));
                reply.expect("taken");
            }
            "cancel" => assert!(self.endpoint.cancel(now, self.rpc(of)), "in progress"),
            "close" => self.endpoint.close(session, CloseCode::Done),
            other => panic!("{other} is no command"),
        }
        json!({ name: done })
    }

    /// Takes the parts of a call that have come; whether the end of a request has come too.
    fn take_parts(&mut self, of: &Value) -> (Vec<Value>, bool) {
        let rpc = self.rpc(of);
        let mut parts = Vec::new();
        // The last part of a reply ends the call, and there is nothing more to ask for.
        while let Ok(Some(taken)) = self.endpoint.take_part(rpc) {
            match taken {
                TakenPart::Part(bytes) => parts.push(described(&bytes)),
                TakenPart::End => return (parts, true),
            }
        }
        (parts, false)
    }

    fn rpc(&self, of: &Value) -> RpcId {
        let text = of["id"].as_str().expect("an id");
        RpcId {
            session: self.session.expect("a session"),
            id: MessageId(u64::from_str_radix(text, 16).expect("an id")),
        }
    }

    fn event(&mut self, event: Event) -> Value {
        match event {
            Event::Connected { session, .. } => {
                self.session = Some(session);
                json!({ "connected": { "index": format!("{:016x}", session.0) } })
            }
            Event::Accepted { session, .. } => {
                self.session = Some(session);
                json!({ "accepted": { "index": format!("{:016x}", session.0) } })
            }
            Event::Request { rpc, body, parts, .. } => {
                let mut of = json!({ "id": id_text(rpc.id), "body": described(&body) });
                if parts != PartMarks::default() {
                    of["reply_in_parts"] = parts.reply_in_parts.into();
                    of["more"] = parts.more.into();
                }
                json!({ "request": of })
            }
            Event::PartReady(rpc) => json!({ "part_ready": { "id": id_text(rpc.id) } }),
            Event::PartsLeft { rpc, parts } => {
                let parts: Vec<_> = parts.iter().map(described).collect();
                json!({ "parts_left": { "id": id_text(rpc.id), "parts": parts } })
            }
            Event::PartWindowRaised(rpc) => {
                json!({ "part_window_raised": { "id": id_text(rpc.id) } })
            }
            Event::Reply { rpc, body, .. } => {
                json!({ "reply": { "id": id_text(rpc.id), "body": described(&body) } })
            }
            Event::OneWay { rpc, body, .. } => {
                json!({ "one_way": { "id": id_text(rpc.id), "body": described(&body) } })
            }
            Event::OneWayDone { rpc, outcome } => {
                assert_eq!(outcome, OneWayOutcome::Delivered);
                json!({ "delivered": { "id": id_text(rpc.id) } })
            }
            Event::Cancelled(rpc) => json!({ "cancelled": { "id": id_text(rpc.id) } }),
            Event::CallFailed { rpc, error } => {
                json!({ "call_failed": { "id": id_text(rpc.id), "reason": reason(&error) } })
            }
            Event::SessionEnded { end, .. } => json!({ "session_ended": ending(&end) }),
            other => panic!("{other:?} belongs to no conversation"),
        }
    }
}

/// A body as files describe it: byte i is (start + i) modulo 251.
fn body(described: &Value) -> Bytes {
    let number = |name: &str| described[name].as_u64().expect(name);
    let (start, length) = (number("start"), number("length"));
    (start..start + length).map(|value| (value % 251) as u8).collect()
}

fn described(bytes: &Bytes) -> Value {
    let start = bytes.first().copied().unwrap_or(0);
    let value = json!({ "start": start, "length": bytes.len() });
    assert!(*bytes == body(&value), "a body of the conversation");
    value
}

fn id_text(id: MessageId) -> Value {
    format!("{:016x}", id.0).into()
}

fn reason(error: &CallError) -> &'static str {
    match &error.reason {
        CallFailure::Cancelled => "cancelled",
        CallFailure::SessionEnded(end) => ending(end),
        other => panic!("{other:?} belongs to no conversation"),
    }
}

fn ending(end: &SessionEnd) -> &'static str {
    match end {
        SessionEnd::ClosedHere => "closed here",
        SessionEnd::ClosedByPeer(_) => "closed by the peer",
        SessionEnd::Reset => "reset",
        other => panic!("{other:?} belongs to no conversation"),
    }
}
