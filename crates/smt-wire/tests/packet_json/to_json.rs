// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parsed packets, as JSON.

use serde_json::{Value, json};
use smt_wire::{
    AssociationFields, Body, Control, Entry, FailureMark, InnerHeader, List, Members, MessageId,
    Packet, Params, PartMarks,
};

use super::hex;

/// The fields of a packet, without version and type.
pub(crate) fn fields_of(packet: &Packet<'_>) -> Value {
    match packet {
        Packet::Data(data) => json!({
            "epoch": data.header.epoch,
            "retransmit": data.header.retransmit,
            "session": number(data.header.session.0),
            "id": number(data.header.id.0),
            "message_length": data.header.message_length,
            "offset": data.header.offset,
            "payload": hex(data.payload),
        }),
        Packet::Control(control) => control_fields(control),
        Packet::Handshake(handshake) => json!({
            "destination": number(handshake.destination.0),
            "source": number(handshake.source.0),
            "flight": handshake.flight,
            "cookie": hex(handshake.cookie),
            "flight_length": handshake.flight_length,
            "offset": handshake.offset,
            "fragment": hex(handshake.fragment),
        }),
        Packet::Cookie(cookie) => json!({
            "destination": number(cookie.destination.0),
            "cookie": hex(cookie.cookie),
        }),
        Packet::VersionAnswer(answer) => json!({ "versions": answer.versions }),
        Packet::Reset(reset) => json!({
            "index": number(reset.index.0),
            "token": hex(&reset.token),
        }),
        Packet::Unavailable(unavailable) => json!({
            "destination": number(unavailable.destination.0),
            "code": unavailable.code,
        }),
    }
}

/// The members of a bundle.
pub(crate) fn members(bundle: &[u8]) -> Value {
    let members = Members::parse(bundle).expect("a vector can be parsed");
    let member = |(header, place): (smt_wire::MemberHeader, std::ops::Range<usize>)| {
        json!({
            "id": number(header.id.0),
            "kind": header.kind.name(),
            "body": hex(&bundle[place]),
            "deadline_us": header.deadline_us,
            "reply_unscheduled": header.reply_unscheduled,
            "failure": header.failure.map(failure),
            "has_metadata": header.has_metadata,
            "parts": part_marks(header.parts),
        })
    };
    members.map(member).collect()
}

/// The fields of an inner header.
pub(crate) fn inner_header_fields(header: &InnerHeader) -> Value {
    json!({
        "true_length": header.true_length,
        "padded_length": header.padded_length,
        "kind": header.kind.name(),
        "deadline_us": header.deadline_us,
        "reply_unscheduled": header.reply_unscheduled,
        "failure": header.failure.map(failure),
        "has_metadata": header.has_metadata,
        "parts": part_marks(header.parts),
        "window": header.window,
        "ack": header.ack.map(|ack| json!({ "base": number(ack.base.0), "bits": number(ack.bits) })),
    })
}

fn part_marks(marks: PartMarks) -> Value {
    if marks == PartMarks::default() {
        return Value::Null;
    }
    json!({ "reply_in_parts": marks.reply_in_parts, "more": marks.more, "number": marks.number })
}

fn failure(mark: FailureMark) -> Value {
    json!({ "code": mark.code, "not_run": mark.not_run })
}

/// The fields of parameters.
pub(crate) fn params_fields(params: &Params<'_>) -> Value {
    json!({
        "versions": params.versions,
        "key_exchange": params.key_exchange as u8,
        "index": number(params.index.0),
        "suites": params.suites.iter().collect::<Vec<u16>>(),
        "index_bits": params.index_bits,
        "record_size": params.record_size,
        "first_record_size": params.first_record_size,
        "window": params.window,
        "message_limit": params.message_limit,
        "unscheduled": params.unscheduled,
        "datagram_limit": params.datagram_limit,
        "stripes": params.stripes,
        "key_name": params.key_name.map(hex),
        "random": params.random.map(|random| hex(random)),
        "takes_bundles": params.takes_bundles,
        "part_window": params.part_window,
        "psp_versions": params.psp_versions,
    })
}

fn control_fields(control: &Control<'_>) -> Value {
    let header = &control.header;
    json!({
        "epoch": header.epoch,
        "session": number(header.session.0),
        "stripe": header.number.stripe,
        "counter": number(header.number.counter),
        "body": body_fields(&control.body),
        "sealed": hex(control.sealed),
    })
}

fn body_fields(body: &Body<'_>) -> Value {
    match *body {
        Body::Confirm | Body::WindowRequest => json!({}),
        Body::Grant(list) => entries(list, |grant| {
            json!({
                "id": number(grant.id.0),
                "granted": grant.granted,
                "received": grant.received,
                "priority": grant.priority,
            })
        }),
        Body::Resend(list) => entries(
            list,
            |resend| json!({ "id": number(resend.id.0), "offset": resend.offset, "length": resend.length }),
        ),
        Body::Ack(list) => {
            entries(list, |ack| json!({ "base": number(ack.base.0), "bits": number(ack.bits) }))
        }
        Body::Busy(ids)
        | Body::NeedAck(ids)
        | Body::Cancel(ids)
        | Body::Voided(ids)
        | Body::Seen(ids)
        | Body::NeverSeen(ids)
        | Body::SeenAndGone(ids)
        | Body::PartWindowRequest(ids) => entries(ids, |MessageId(id)| json!({ "id": number(id) })),
        Body::PartWindow(list) => entries(
            list,
            |window| json!({ "id": number(window.id.0), "limit": number(window.limit) }),
        ),
        Body::Abort(abort) => json!({ "id": number(abort.id.0), "code": abort.code }),
        Body::Window { limit } => json!({ "limit": number(limit) }),
        Body::KeyUpdateRequest { epoch } | Body::EpochDone { epoch } | Body::EpochAck { epoch } => {
            json!({ "epoch": epoch })
        }
        Body::Ping(value) | Body::Pong(value) => json!({ "value": number(value) }),
        Body::Probe { padding } => json!({ "padding": padding }),
        Body::ProbeAck { size } => json!({ "size": size }),
        Body::Close { code } => json!({ "code": code }),
        Body::Association(AssociationFields { serial, spi, version }) => {
            json!({ "serial": serial, "spi": spi, "version": version })
        }
        Body::AssociationAck { serial } | Body::AssociationRequest { serial } => {
            json!({ "serial": serial })
        }
    }
}

fn entries<T: Entry>(list: List<'_, T>, show: impl Fn(T) -> Value) -> Value {
    json!({ "entries": list.iter().map(show).collect::<Vec<_>>() })
}

fn number(value: u64) -> String {
    format!("{value:016x}")
}
