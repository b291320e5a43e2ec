// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets to be sent, from JSON.

use serde_json::Value;
use smt_wire::{
    Abort, Ack, AssociationFields, Body, ControlHeader, ControlNumber, Cookie, DataHeader,
    FailureMark, Grant, Handshake, InnerHeader, KeyExchange, Kind, MemberHeader, MessageId, Params,
    PartMarks, PartWindow, Resend, Reset, SessionIndex, Unavailable, VersionAnswer,
};

use super::unhex;

/// The bytes of one vector's packet, by its `type`, `version`, `fields`, and `padded_to` or
/// `length_stated` where it has them.
pub(crate) fn bytes_from(vector: &Value) -> Vec<u8> {
    let version = small(vector, "version");
    let fields = &vector["fields"];
    let mut out = vec![0; 65_535];
    let length = match text(vector, "type") {
        "DATA" => return data_bytes(version, fields, vector["length_stated"] == true),
        "HANDSHAKE" => {
            let (cookie, fragment) = (bytes(fields, "cookie"), bytes(fields, "fragment"));
            let padded_to = vector["padded_to"].as_u64().unwrap_or(0) as usize;
            Handshake {
                destination: SessionIndex(long(fields, "destination")),
                source: SessionIndex(long(fields, "source")),
                flight: small(fields, "flight"),
                cookie: &cookie,
                flight_length: small(fields, "flight_length"),
                offset: small(fields, "offset"),
                fragment: &fragment,
            }
            .emit(version, padded_to, &mut out)
        }
        "COOKIE" => {
            let destination = SessionIndex(long(fields, "destination"));
            Cookie { destination, cookie: &bytes(fields, "cookie") }.emit(version, &mut out)
        }
        "VERSION" => VersionAnswer { versions: &list(fields, "versions", byte) }.emit(&mut out),
        "RESET" => {
            let token = bytes(fields, "token").try_into().expect("a token has 16 bytes");
            let out = out.first_chunk_mut().expect("the buffer is larger than RESET");
            Reset { index: SessionIndex(long(fields, "index")), token }.emit(version, out);
            Reset::LEN
        }
        "UNAVAILABLE" => {
            let out = out.first_chunk_mut().expect("the buffer is larger than UNAVAILABLE");
            Unavailable {
                destination: SessionIndex(long(fields, "destination")),
                code: small(fields, "code"),
            }
            .emit(version, out);
            Unavailable::LEN
        }
        control => control_len(version, control, fields, &mut out),
    };
    out.truncate(length);
    out
}

/// The application bytes of a bundle.
pub(crate) fn bundle_bytes(members: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for member in members.as_array().expect("a list of members") {
        let body = bytes(member, "body");
        let header = MemberHeader {
            id: MessageId(long(member, "id")),
            kind: kind(member),
            length: body.len() as u16,
            deadline_us: small(member, "deadline_us"),
            reply_unscheduled: small(member, "reply_unscheduled"),
            failure: failure(member),
            has_metadata: member["has_metadata"] == true,
            parts: part_marks(member),
        };
        let mut place = [0; MemberHeader::LEN];
        header.emit(&mut place);
        out.extend_from_slice(&place);
        out.extend_from_slice(&body);
    }
    out
}

fn kind(fields: &Value) -> Kind {
    match text(fields, "kind") {
        "REQUEST" => Kind::Request,
        "REPLY" => Kind::Reply,
        "ONE_WAY" => Kind::OneWay,
        "BUNDLE" => Kind::Bundle,
        "PART" => Kind::Part,
        other => panic!("unknown kind {other}"),
    }
}

fn part_marks(fields: &Value) -> PartMarks {
    let Some(marks) = Some(&fields["parts"]).filter(|marks| !marks.is_null()) else {
        return PartMarks::default();
    };
    PartMarks {
        reply_in_parts: marks["reply_in_parts"] == true,
        more: marks["more"] == true,
        number: small(marks, "number"),
    }
}

fn failure(fields: &Value) -> Option<FailureMark> {
    let mark = Some(&fields["failure"]).filter(|mark| !mark.is_null())?;
    Some(FailureMark {
        code: small(mark, "code"),
        not_run: mark["not_run"].as_bool().expect("a boolean"),
    })
}

/// The bytes of an inner header.
pub(crate) fn inner_header_bytes(fields: &Value) -> [u8; InnerHeader::LEN] {
    let kind = kind(fields);
    let header = InnerHeader {
        true_length: small(fields, "true_length"),
        padded_length: small(fields, "padded_length"),
        kind,
        deadline_us: small(fields, "deadline_us"),
        reply_unscheduled: small(fields, "reply_unscheduled"),
        failure: failure(fields),
        has_metadata: fields["has_metadata"] == true,
        parts: part_marks(fields),
        window: small(fields, "window"),
        ack: Some(&fields["ack"]).filter(|ack| !ack.is_null()).map(ack),
    };
    let mut out = [0xFF; InnerHeader::LEN];
    header.emit(&mut out);
    out
}

/// The bytes of parameters.
pub(crate) fn params_bytes(fields: &Value) -> Vec<u8> {
    let suites = list(fields, "suites", |suite| suite.as_u64().expect("a suite") as u16);
    let optional = |name: &str| fields[name].as_str().map(unhex);
    let (key_name, random) = (optional("key_name"), optional("random"));
    let psp_versions = Some(&fields["psp_versions"])
        .filter(|versions| !versions.is_null())
        .map(|_| list(fields, "psp_versions", byte));
    let params = Params {
        versions: &list(fields, "versions", byte),
        key_exchange: match small::<u8>(fields, "key_exchange") {
            0 => KeyExchange::Tls13,
            1 => KeyExchange::Registered,
            0xF1 => KeyExchange::Plaintext,
            other => panic!("unknown key exchange {other}"),
        },
        index: SessionIndex(long(fields, "index")),
        suites: suites.as_slice().into(),
        index_bits: small(fields, "index_bits"),
        record_size: small(fields, "record_size"),
        first_record_size: small(fields, "first_record_size"),
        window: small(fields, "window"),
        message_limit: small(fields, "message_limit"),
        unscheduled: small(fields, "unscheduled"),
        datagram_limit: small(fields, "datagram_limit"),
        stripes: small(fields, "stripes"),
        key_name: key_name.as_deref(),
        random: random.as_deref().map(|random| random.try_into().expect("32 bytes")),
        takes_bundles: fields.get("takes_bundles").is_some_and(|takes| takes == true),
        part_window: Some(&fields["part_window"])
            .filter(|window| !window.is_null())
            .map(|_| small(fields, "part_window")),
        psp_versions: psp_versions.as_deref(),
    };
    let mut out = vec![0xFF; Params::LEN_MAX];
    let length = params.emit(&mut out);
    out.truncate(length);
    out
}

fn data_bytes(version: u8, fields: &Value, length_stated: bool) -> Vec<u8> {
    let payload = bytes(fields, "payload");
    let header = DataHeader {
        epoch: small(fields, "epoch"),
        retransmit: fields["retransmit"].as_bool().expect("retransmit is a boolean"),
        session: SessionIndex(long(fields, "session")),
        id: MessageId(long(fields, "id")),
        message_length: small(fields, "message_length"),
        offset: small(fields, "offset"),
    };
    let mut out = [0xFF; DataHeader::LEN];
    if length_stated {
        header.emit_sized(version, payload.len(), &mut out);
    } else {
        header.emit(version, &mut out);
    }
    [&out, payload.as_slice()].concat()
}

fn control_len(version: u8, ty: &str, fields: &Value, out: &mut [u8]) -> usize {
    let header = ControlHeader {
        epoch: small(fields, "epoch"),
        session: SessionIndex(long(fields, "session")),
        number: ControlNumber { stripe: small(fields, "stripe"), counter: long(fields, "counter") },
    };
    let sealed = bytes(fields, "sealed");
    let mut emit = |body: Body<'_>| {
        let aad_len = header.emit(version, &body, out);
        let packet_len = ControlHeader::packet_len(&body);
        out[aad_len..packet_len].copy_from_slice(&sealed);
        packet_len
    };
    let body = &fields["body"];
    match ty {
        "GRANT" => emit(Body::Grant(list(body, "entries", grant).as_slice().into())),
        "RESEND" => emit(Body::Resend(list(body, "entries", resend).as_slice().into())),
        "BUSY" => emit(Body::Busy(list(body, "entries", id).as_slice().into())),
        "ACK" => emit(Body::Ack(list(body, "entries", ack).as_slice().into())),
        "NEED_ACK" => emit(Body::NeedAck(list(body, "entries", id).as_slice().into())),
        "CANCEL" => emit(Body::Cancel(list(body, "entries", id).as_slice().into())),
        "VOIDED" => emit(Body::Voided(list(body, "entries", id).as_slice().into())),
        "SEEN" => emit(Body::Seen(list(body, "entries", id).as_slice().into())),
        "NEVER_SEEN" => emit(Body::NeverSeen(list(body, "entries", id).as_slice().into())),
        "SEEN_AND_GONE" => emit(Body::SeenAndGone(list(body, "entries", id).as_slice().into())),
        "PART_WINDOW" => {
            emit(Body::PartWindow(list(body, "entries", part_window).as_slice().into()))
        }
        "PART_WINDOW_REQUEST" => {
            emit(Body::PartWindowRequest(list(body, "entries", id).as_slice().into()))
        }
        other => emit(single(other, body)),
    }
}

/// A body that is no list.
fn single(ty: &str, body: &Value) -> Body<'static> {
    match ty {
        "ABORT" => Body::Abort(abort(body)),
        "WINDOW" => Body::Window { limit: long(body, "limit") },
        "CONFIRM" => Body::Confirm,
        "WINDOW_REQUEST" => Body::WindowRequest,
        "KEY_UPDATE_REQUEST" => Body::KeyUpdateRequest { epoch: small(body, "epoch") },
        "EPOCH_DONE" => Body::EpochDone { epoch: small(body, "epoch") },
        "EPOCH_ACK" => Body::EpochAck { epoch: small(body, "epoch") },
        "PING" => Body::Ping(long(body, "value")),
        "PONG" => Body::Pong(long(body, "value")),
        "PROBE" => Body::Probe { padding: small::<u16>(body, "padding").into() },
        "PROBE_ACK" => Body::ProbeAck { size: small(body, "size") },
        "ASSOCIATION" => Body::Association(AssociationFields {
            serial: small(body, "serial"),
            spi: small(body, "spi"),
            version: small(body, "version"),
        }),
        "ASSOCIATION_ACK" => Body::AssociationAck { serial: small(body, "serial") },
        "ASSOCIATION_REQUEST" => Body::AssociationRequest { serial: small(body, "serial") },
        "CLOSE" => Body::Close { code: small(body, "code") },
        other => panic!("unknown type {other}"),
    }
}

fn id(entry: &Value) -> MessageId {
    MessageId(long(entry, "id"))
}

fn grant(entry: &Value) -> Grant {
    Grant {
        id: id(entry),
        granted: small(entry, "granted"),
        received: small(entry, "received"),
        priority: small(entry, "priority"),
    }
}

fn part_window(entry: &Value) -> PartWindow {
    PartWindow { id: id(entry), limit: long(entry, "limit") }
}

fn resend(entry: &Value) -> Resend {
    Resend { id: id(entry), offset: small(entry, "offset"), length: small(entry, "length") }
}

fn ack(entry: &Value) -> Ack {
    Ack { base: MessageId(long(entry, "base")), bits: long(entry, "bits") }
}

fn abort(body: &Value) -> Abort {
    let code = small(body, "code");
    Abort { id: id(body), code }
}

fn byte(value: &Value) -> u8 {
    value.as_u64().and_then(|value| u8::try_from(value).ok()).expect("a byte")
}

fn list<T>(value: &Value, name: &str, read: impl Fn(&Value) -> T) -> Vec<T> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} is no list")).iter().map(read).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is no text"))
}

fn bytes(value: &Value, name: &str) -> Vec<u8> {
    unhex(text(value, name))
}

/// A u64, written as 16 hex digits.
fn long(value: &Value, name: &str) -> u64 {
    let digits = text(value, name);
    assert_eq!(digits.len(), 16, "{name} has 16 digits");
    u64::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{name} is no hex"))
}

/// An integer of at most 32 bits, written as a number.
fn small<T: TryFrom<u64>>(value: &Value, name: &str) -> T {
    let number = value[name].as_u64().and_then(|number| T::try_from(number).ok());
    number.unwrap_or_else(|| panic!("{name} is no number of its size"))
}
