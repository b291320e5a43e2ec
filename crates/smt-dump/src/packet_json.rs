// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet as a JSON object on one line. Its fields are described in docs/DUMP.md.

use serde_json::{Map, Value, json};
use smt_record::OpenError;
use smt_wire::{Body, InnerHeader, Packet};

use crate::row::{Fact, Remark, Row, RowPsp, Whole};
use crate::ticket_flight::{TicketFlight, short};

/// Version of the objects: changed when a field changes its meaning or goes.
pub(crate) const SCHEMA: u32 = 1;

/// The object of a row.
pub(crate) fn object(row: &Row<'_>, stripes_log2: u8) -> Value {
    let mut object = json!({
        "schema": SCHEMA,
        "kind": "packet",
        "time_ns": row.time.as_nanos() as u64,
        "carrier": row.carrier.name(),
        "source": row.source.to_string(),
        "target": row.target.to_string(),
    });
    if let Some(RowPsp { spi, iv, opened_by }) = row.psp {
        object["spi"] = json!(format!("{spi:08x}"));
        object["iv"] = json!(iv);
        object["opened"] = json!(opened_by.is_some());
    }
    match &row.packet {
        Ok(packet) => {
            object["type"] = json!(packet.packet_type().name());
            object["text"] = json!(packet.to_string());
            extend(&mut object, fields(packet, stripes_log2));
        }
        Err(error) => object["error"] = json!(error.to_string()),
    }
    if row.missing > 0 {
        object["bytes_cut_off"] = json!(row.missing);
    }
    let remark = match row.remark {
        Remark::None => None,
        Remark::IcvFailed => Some("icv_failed"),
        Remark::NoKey => Some("no_key"),
        Remark::NotInPsp => Some("not_in_psp"),
        Remark::OtherAssociation => Some("other_association"),
        Remark::TagFailed => Some("tag_failed"),
        Remark::TagOk => Some("tag_ok"),
        Remark::TooLong => Some("too_long"),
    };
    if let Some(remark) = remark {
        object["remark"] = json!(remark);
    }
    if !row.facts.is_empty() {
        object["facts"] = row.facts.iter().map(fact).collect();
    }
    object
}

fn extend(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

fn fields(packet: &Packet<'_>, stripes_log2: u8) -> Value {
    match packet {
        Packet::Data(data) => {
            let header = data.header;
            json!({
                "epoch": header.epoch,
                "session": header.session.to_string(),
                "id": header.id.0,
                "message_length": header.message_length,
                "offset": header.offset,
                "payload": data.payload.len(),
                "retransmit": header.retransmit,
            })
        }
        Packet::Control(control) => {
            let mut object = json!({
                "epoch": control.header.epoch,
                "session": control.header.session.to_string(),
                "number": control.header.number.to_u64(),
            });
            let ids = ids(&control.body, stripes_log2);
            if !ids.is_empty() {
                object["ids"] = json!(ids);
            }
            if let Body::Abort(abort) = &control.body {
                object["code"] = json!(abort.code);
            }
            if let Body::Close { code } = &control.body {
                object["code"] = json!(code);
            }
            object
        }
        Packet::Handshake(handshake) => json!({
            "session": handshake.destination.to_string(),
            "sender_session": handshake.source.to_string(),
            "flight": handshake.flight,
            "flight_length": handshake.flight_length,
            "offset": handshake.offset,
            "payload": handshake.fragment.len(),
        }),
        Packet::Cookie(cookie) => json!({"session": cookie.destination.to_string()}),
        Packet::Reset(reset) => json!({"session": reset.index.to_string()}),
        Packet::Unavailable(unavailable) => json!({
            "session": unavailable.destination.to_string(),
            "code": unavailable.code,
        }),
        Packet::VersionAnswer(answer) => json!({"versions": answer.versions}),
    }
}

/// The messages that a control packet names.
pub(crate) fn ids(body: &Body<'_>, stripes_log2: u8) -> Vec<u64> {
    match body {
        Body::Grant(list) => list.iter().map(|grant| grant.id.0).collect(),
        Body::Resend(list) => list.iter().map(|resend| resend.id.0).collect(),
        Body::Ack(list) => {
            let acks = list.iter().flat_map(|ack| ack.ids(stripes_log2));
            acks.map(|id| id.0).collect()
        }
        Body::Busy(list)
        | Body::NeedAck(list)
        | Body::Cancel(list)
        | Body::Voided(list)
        | Body::Seen(list)
        | Body::NeverSeen(list)
        | Body::SeenAndGone(list)
        | Body::PartWindowRequest(list) => list.iter().map(|id| id.0).collect(),
        Body::PartWindow(list) => list.iter().map(|window| window.id.0).collect(),
        Body::Abort(abort) => vec![abort.id.0],
        _ => Vec::new(),
    }
}

fn fact(fact: &Fact) -> Value {
    match fact {
        Fact::Again(id) => json!({"fact": "again", "id": id.0}),
        Fact::Bundle(id, Ok(count)) => json!({"fact": "bundle", "id": id.0, "members": count}),
        Fact::Bundle(id, Err(error)) => {
            json!({"fact": "bundle", "id": id.0, "error": error.to_string()})
        }
        Fact::First(Ok(header)) => {
            let mut object = record(0, header.true_length as usize);
            extend(&mut object, inner_header(header));
            object
        }
        Fact::First(Err(error)) => record_failed(0, error),
        Fact::Member(header, message) => {
            let mut object = whole(message);
            object["bundled"] = json!(true);
            object["deadline_us"] = json!(header.deadline_us);
            object
        }
        Fact::Rest(index, Ok(length)) => record(*index, *length),
        Fact::Rest(index, Err(error)) => record_failed(*index, error),
        Fact::Ticket(flight) => ticket(flight),
        Fact::Whole(message) => whole(message),
    }
}

fn ticket(flight: &TicketFlight) -> Value {
    match flight {
        TicketFlight::Client { suite, ticket, has_forward_secrecy, sealed } => json!({
            "fact": "ticket_offered",
            "ticket": short(ticket),
            "suite": format!("{suite:04x}"),
            "forward_secrecy": has_forward_secrecy,
            "sealed": sealed,
        }),
        TicketFlight::Taken { takes_early } => {
            json!({"fact": "ticket_taken", "early_data": takes_early})
        }
        TicketFlight::Refused(code) => json!({"fact": "ticket_refused", "code": code}),
    }
}

fn record(index: u32, length: usize) -> Value {
    json!({"fact": "record", "record": index, "ok": true, "length": length})
}

fn record_failed(index: u32, error: &OpenError) -> Value {
    json!({"fact": "record", "record": index, "ok": false, "error": error.to_string()})
}

/// Record 0's `length` is the message's.
fn inner_header(header: &InnerHeader) -> Value {
    json!({
        "message": header.kind.name(),
        "deadline_us": header.deadline_us,
        "failure_code": header.failure.map(|failure| failure.code),
        "did_not_run": header.failure.map(|failure| failure.not_run),
        "has_metadata": header.has_metadata,
        "parts": {
            "number": header.parts.number,
            "more": header.parts.more,
            "reply_in_parts": header.parts.reply_in_parts,
        },
    })
}

fn whole(whole: &Whole) -> Value {
    let mut object = Map::new();
    object.insert("fact".to_owned(), json!("whole"));
    object.insert("id".to_owned(), json!(whole.id.0));
    object.insert("message".to_owned(), json!(whole.kind.name()));
    object.insert("length".to_owned(), json!(whole.length));
    if let Some(request) = whole.request {
        object.insert("request".to_owned(), json!(request.0));
        object.insert("part".to_owned(), json!(whole.parts.number));
    }
    if let Some(path) = &whole.path {
        object.insert("file".to_owned(), json!(path.display().to_string()));
    }
    Value::Object(object)
}
