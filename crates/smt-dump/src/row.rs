// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet as it is shown: in a line for people with the facts about its records below it, or as
//! one JSON object (`packet_json.rs`).

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use smt_record::OpenError;
use smt_wire::{
    FailureMark, InnerHeader, Kind, MemberHeader, MessageId, Packet, ParseError, PartMarks,
};

use crate::associations::Told;
use crate::datagram::CarrierKind;
use crate::ticket_flight::TicketFlight;

/// A packet, or bytes that are none, with what was found out about it.
pub(crate) struct Row<'a> {
    /// Since 1970, UTC.
    pub(crate) time: Duration,
    /// Where the packet begins in the payload of its frame.
    pub(crate) at: usize,
    pub(crate) carrier: CarrierKind,
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    /// The packet of PSP in which it is.
    pub(crate) psp: Option<RowPsp>,
    /// Whether it is of the plaintext version (SPEC §14), which nothing protects.
    pub(crate) is_plaintext: bool,
    pub(crate) packet: Result<Packet<'a>, Unread>,
    /// Bytes of the packet that the capture cut off.
    pub(crate) missing: usize,
    pub(crate) remark: Remark,
    pub(crate) facts: Vec<Fact>,
}

/// The numbers by which packets of PSP are told apart, and what this one has opened by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RowPsp {
    pub(crate) spi: u32,
    pub(crate) iv: u64,
    pub(crate) opened_by: Option<Told>,
}

/// Bytes that are shown as no packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Unread {
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// By PSP, and no header of DATA is clear.
    #[error("sealed packet")]
    Sealed,
}

/// One word about a packet as a whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Remark {
    None,
    /// The packet of PSP in which it is does not authenticate.
    IcvFailed,
    NoKey,
    /// DATA that came in no packet of PSP, in a session whose packets are sealed.
    NotInPsp,
    /// DATA under an association that was told in another session, or that two newer ones have
    /// replaced.
    OtherAssociation,
    TagFailed,
    TagOk,
    /// DATA that goes beyond its message.
    TooLong,
}

impl Remark {
    /// Whether a receiver takes such DATA up, as far as is known.
    pub(crate) const fn is_received(self) -> bool {
        matches!(self, Self::None | Self::NoKey)
    }
}

/// A fact that a DATA or HANDSHAKE packet has brought to light.
pub(crate) enum Fact {
    /// Bytes of a message that is whole already.
    Again(MessageId),
    /// A bundle is whole: this many members follow.
    Bundle(MessageId, Result<usize, ParseError>),
    /// Record 0, with what it says about its message.
    First(Result<InnerHeader, OpenError>),
    /// A message that has travelled in a bundle.
    Member(MemberHeader, Whole),
    /// Another record; its content's bytes.
    Rest(u32, Result<usize, OpenError>),
    /// A flight of a handshake by ticket is whole.
    Ticket(TicketFlight),
    Whole(Whole),
}

/// A message that is whole.
pub(crate) struct Whole {
    pub(crate) id: MessageId,
    pub(crate) kind: Kind,
    /// Bytes of metadata and body.
    pub(crate) length: usize,
    pub(crate) parts: PartMarks,
    /// The request of a part, if it names one.
    pub(crate) request: Option<MessageId>,
    /// The file that it was written to.
    pub(crate) path: Option<PathBuf>,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} > {} ", time_of_day(self.time), self.source, self.target)?;
        if self.carrier == CarrierKind::Native {
            f.write_str("natively ")?;
        }
        if let Some(RowPsp { spi, iv, .. }) = self.psp {
            write!(f, "in PSP spi 0x{spi:08x} iv {iv} ")?;
        }
        match &self.packet {
            Ok(packet) => write!(f, "{packet}")?,
            Err(error) => write!(f, "{error}")?,
        }
        if self.missing > 0 && matches!(self.packet, Ok(Packet::Data(_)) | Err(_)) {
            write!(f, " (the capture cut {} bytes off)", self.missing)?;
        }
        f.write_str(match self.remark {
            Remark::None => "",
            Remark::IcvFailed => " [ICV FAILED]",
            Remark::NoKey => " [no key]",
            Remark::NotInPsp => " [in no packet of PSP: a receiver drops it]",
            Remark::OtherAssociation => {
                " [under no association of its session: a receiver drops it]"
            }
            Remark::TagFailed => " [tag FAILED]",
            Remark::TagOk => " [tag ok]",
            Remark::TooLong if self.carrier != CarrierKind::Udp => " [more than the message has]",
            Remark::TooLong => {
                " [more than the message has: several datagrams of one send call that cannot be \
                 told apart; run the sender with --no-gso]"
            }
        })?;
        for fact in &self.facts {
            write!(f, "\n    {fact}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Again(id) => write!(f, "message {id} is whole already"),
            Self::Bundle(id, Ok(count)) => write!(f, "bundle {id} whole: {count} messages"),
            Self::Bundle(id, Err(error)) => write!(f, "bundle {id} FAILED: {error}"),
            Self::First(Ok(header)) => write!(f, "record 0 ok: {}", header_text(header)),
            Self::First(Err(error)) => write!(f, "record 0 FAILED: {error}"),
            Self::Member(header, whole) => {
                write!(f, "{whole}")?;
                if header.deadline_us > 0 {
                    write!(f, ", deadline {} us", header.deadline_us)?;
                }
                f.write_str(&failure_text(header.failure))?;
                f.write_str(metadata_text(header.has_metadata))
            }
            Self::Rest(index, Ok(length)) => write!(f, "record {index} ok: {length} bytes"),
            Self::Rest(index, Err(error)) => write!(f, "record {index} FAILED: {error}"),
            Self::Ticket(flight) => write!(f, "{flight}"),
            Self::Whole(whole) => write!(f, "{whole}"),
        }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, kind, length) = (self.id, self.kind.name(), self.length);
        write!(f, "message {id} whole: {kind} of {length} bytes")?;
        match self.request {
            Some(request) => write!(f, ", of request {request}")?,
            None if self.kind == Kind::Part => f.write_str(", without the id of its request")?,
            None => {}
        }
        f.write_str(&parts_text(self.kind, self.parts))?;
        match &self.path {
            Some(path) => write!(f, ", written to {}", path.display()),
            None => Ok(()),
        }
    }
}

fn header_text(header: &InnerHeader) -> String {
    let InnerHeader {
        true_length,
        padded_length,
        kind,
        deadline_us,
        reply_unscheduled: _,
        failure,
        has_metadata,
        parts,
        window,
        ack,
    } = header;
    let mut line = format!("{} of {true_length} bytes", kind.name());
    let padding = padded_length - true_length - InnerHeader::LEN as u32;
    if padding > 0 {
        line += &format!(", {padding} of padding");
    }
    if *deadline_us > 0 {
        line += &format!(", deadline {deadline_us} us");
    }
    line += &failure_text(*failure);
    line += metadata_text(*has_metadata);
    line += &parts_text(*kind, *parts);
    line += &format!(", window {window}");
    if let Some(ack) = ack {
        line += &format!(", ack base {} bits 0x{:x}", ack.base, ack.bits);
    }
    line
}

/// The part of a line that tells of a failure; empty for another message.
fn failure_text(failure: Option<FailureMark>) -> String {
    failure.map_or_else(String::new, |FailureMark { code, not_run }| {
        let execution = if not_run { ", did not run" } else { "" };
        format!(", failure code {code}{execution}")
    })
}

/// The part of a line that tells of parts of a call; empty where there are none.
fn parts_text(kind: Kind, parts: PartMarks) -> String {
    let PartMarks { reply_in_parts, more, number } = parts;
    let mut text = match kind {
        Kind::Part => format!(", number {number}"),
        Kind::Reply if number > 0 => format!(", of {number} parts"),
        _ => String::new(),
    };
    if more {
        text += ", parts follow";
    } else if kind == Kind::Part {
        text += ", the last";
    }
    if reply_in_parts {
        text += ", reply in parts";
    }
    text
}

/// The part of a line that tells that a message has metadata in front of its body.
fn metadata_text(has_metadata: bool) -> &'static str {
    match has_metadata {
        true => ", with metadata",
        false => "",
    }
}

/// UTC, to the microsecond.
pub(crate) fn time_of_day(time: Duration) -> String {
    let seconds = time.as_secs() % 86_400;
    format!(
        "{:02}:{:02}:{:02}.{:06}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        time.subsec_micros()
    )
}

#[cfg(test)]
mod tests {
    mod failure_text {
        use super::super::failure_text;
        use smt_wire::FailureMark;

        #[test]
        fn has_the_code_and_whether_the_request_ran() {
            let text = |code, not_run| failure_text(Some(FailureMark { code, not_run }));
            assert_eq!(text(7, false), ", failure code 7");
            assert_eq!(text(7, true), ", failure code 7, did not run");
            assert_eq!(failure_text(None), "");
        }
    }

    mod time_of_day {
        use super::super::time_of_day;
        use std::time::Duration;

        #[test]
        fn is_in_utc() {
            let time = Duration::new(86_400 * 3 + 3_600 * 13 + 60 * 7 + 9, 42_000);
            assert_eq!(time_of_day(time), "13:07:09.000042");
        }
    }
}
