// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams to rows: each packet, and what a key log brings to light about it.

mod sealed_packets;

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use smt_record::Purpose;
use smt_wire::{
    Body, Control, Data, MessageId, PLAINTEXT_VERSION, Packet, ParseError, SessionIndex, TAG_LEN,
    VERSION, parse,
};
use zeroize::Zeroizing;

use crate::Wishes;
use crate::associations::Associations;
use crate::datagram::Datagram;
use crate::decrypted_capture::DecryptedCapture;
use crate::error::DumpError;
use crate::messages::{Finding, Messages};
use crate::row::{Fact, Remark, Row, RowPsp, Whole};
use crate::rpcs::{Ends, Piece};
use crate::segments;
use crate::terms::{Direction, Handshakes, Sealed, Terms};
use crate::view::View;
use crate::whole_message::WholeMessage;

/// The state of a whole capture.
pub(crate) struct Dissection {
    wishes: Wishes,
    view: View,
    handshakes: Handshakes,
    associations: Associations,
    messages: Messages,
    /// If it is to be written.
    decrypted: Option<DecryptedCapture>,
    /// Names that were written, and how often: an index is of another session after a restart.
    written: HashMap<String, u32>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    datagrams: u64,
    packets: u64,
    opened: u64,
    failed: u64,
    whole: u64,
    /// DATA whose handshake was not captured.
    assumed: u64,
}

/// A datagram of the capture.
#[derive(Clone, Copy)]
struct Origin<'a> {
    time: Duration,
    datagram: &'a Datagram<'a>,
    psp: Option<RowPsp>,
}

impl Origin<'_> {
    /// The row of a packet that begins here in the payload of its frame.
    fn row<'a>(&self, at: usize) -> Row<'a> {
        Row {
            time: self.time,
            at,
            carrier: self.datagram.carrier,
            source: self.datagram.source,
            target: self.datagram.target,
            psp: self.psp,
            is_plaintext: false,
            packet: Err(ParseError::Empty.into()),
            missing: self.datagram.cut_off,
            remark: Remark::None,
            facts: Vec::new(),
        }
    }
}

impl Dissection {
    /// Before the first packet.
    pub(crate) fn new(wishes: Wishes) -> Self {
        Self {
            view: View::new(&wishes),
            messages: Messages::new(wishes.decrypted.is_some()),
            decrypted: wishes.decrypted.is_some().then(DecryptedCapture::default),
            wishes,
            handshakes: Handshakes::default(),
            associations: Associations::default(),
            written: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Shows a datagram, which may be several.
    pub(crate) fn show(
        &mut self,
        time: Duration,
        datagram: &Datagram<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        if let Some(psp) = &datagram.psp {
            return self.show_psp(time, datagram, psp, output);
        }
        if let Some(decrypted) = &mut self.decrypted {
            decrypted.keep(time, datagram);
        }
        let origin = Origin {
            time,
            datagram,
            psp: None,
        };
        let payload = match segments::with_own_offset(datagram) {
            Ok(payload) => payload,
            Err(error) => {
                let mut row = origin.row(0);
                row.packet = Err(error.into());
                return self.view.show(&row, None, output);
            }
        };
        let mut start = 0;
        for bytes in segments::split(&payload) {
            self.show_packets(origin, start, bytes, output)?;
            start += bytes.len();
        }
        Ok(())
    }

    /// Shows the packets of one datagram, which begins here in the payload of its frame.
    fn show_packets(
        &mut self,
        origin: Origin<'_>,
        start: usize,
        datagram: &[u8],
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        self.counts.datagrams += 1;
        let mut bytes = datagram;
        while !bytes.is_empty() {
            let row = origin.row(start + datagram.len() - bytes.len());
            bytes = self.show_next(row, bytes, output)?;
        }
        Ok(())
    }

    /// Shows the packet with which these bytes begin. Returns those behind it.
    fn show_next<'a>(
        &mut self,
        mut row: Row<'a>,
        bytes: &'a [u8],
        output: &mut dyn Write,
    ) -> Result<&'a [u8], DumpError> {
        let version = match bytes.first() {
            Some(&PLAINTEXT_VERSION) => PLAINTEXT_VERSION,
            _ => VERSION,
        };
        row.is_plaintext = version == PLAINTEXT_VERSION;
        match parse(version, bytes) {
            Ok((packet, rest)) => {
                self.counts.packets += 1;
                row.packet = Ok(packet);
                self.show_packet(row, &packet, output)?;
                Ok(rest)
            }
            Err(error) => {
                row.packet = Err(error.into());
                self.view.show(&row, None, output)?;
                Ok(match error {
                    ParseError::UnknownType {
                        length: length @ 1..,
                        ..
                    } => &bytes[length..],
                    _ => &[],
                })
            }
        }
    }

    /// Shows what has waited for the end.
    pub(crate) fn finish(&mut self, output: &mut dyn Write) -> Result<(), DumpError> {
        self.view.finish(output)?;
        let decrypted = self.decrypted.take().zip(self.messages.opened());
        let (Some((decrypted, opened)), Some(file)) = (decrypted, &mut self.wishes.decrypted)
        else {
            return Ok(());
        };
        let written = decrypted.write(opened, file);
        written
            .and_then(|()| file.flush())
            .map_err(DumpError::Decrypted)
    }

    /// Whether there was no packet.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.packets == 0
    }

    /// A line for people, at the end.
    pub(crate) fn summary(&self) -> String {
        let Counts {
            datagrams,
            packets,
            opened,
            failed,
            whole,
            assumed,
        } = &self.counts;
        let mut text = format!("{packets} SMT packets in {datagrams} datagrams");
        if self.wishes.keys.is_some() {
            let incomplete = self.messages.incomplete();
            text += &format!(
                "; {opened} records and tags ok, {failed} FAILED; {whole} messages whole, {incomplete} not"
            );
            if *assumed > 0 {
                text += &format!(
                    "; the handshakes of {assumed} DATA packets were not captured: the usual record sizes are assumed"
                );
            }
        }
        text
    }

    fn show_packet(
        &mut self,
        mut row: Row<'_>,
        packet: &Packet<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let mut ends = None;
        match packet {
            Packet::Handshake(handshake) => {
                let ticket = self.handshakes.take(row.source, row.target, handshake);
                row.facts.extend(ticket.map(Fact::Ticket));
            }
            Packet::Control(control) => {
                row.remark = self.tag(&row, control);
                let known = self.ends(&row, control.header.session);
                self.view.take_control(known, control);
                ends = Some(known);
            }
            Packet::Data(data) => {
                let known = self.ends(&row, data.header.session);
                let to = Direction {
                    target: row.target,
                    session: data.header.session,
                };
                let terms = self.terms(&row, to);
                (row.remark, row.facts) = self.data(&row, to, data, terms)?;
                if row.remark.is_received() {
                    let is_plaintext = terms.sealed == Sealed::Packets;
                    match &mut self.decrypted {
                        Some(decrypted) if is_plaintext => decrypted.note_plaintext(row.at),
                        Some(decrypted) => decrypted.note(row.at, to, data),
                        None => {}
                    }
                    let piece = Piece {
                        time: row.time,
                        to,
                        data,
                        terms,
                        facts: &row.facts,
                    };
                    self.view.take_data(known, &piece, output)?;
                }
                ends = Some(known);
            }
            Packet::Cookie(_)
            | Packet::VersionAnswer(_)
            | Packet::Reset(_)
            | Packet::Unavailable(_) => {}
        }
        self.view.show(&row, ends, output)
    }

    /// The ends of the session of a packet.
    fn ends(&self, row: &Row<'_>, session: SessionIndex) -> Ends {
        let to = Direction {
            target: row.target,
            session,
        };
        self.handshakes.ends(to).unwrap_or_else(|| {
            let (client, server) = match row.target.port() == self.wishes.port {
                true => (row.source, row.target),
                false => (row.target, row.source),
            };
            Ends {
                client,
                server,
                client_session: None,
                server_session: None,
                stripes_log2: 0,
            }
        })
    }

    /// The terms of a DATA packet that went there, or those that are likely.
    fn terms(&self, row: &Row<'_>, to: Direction) -> Terms {
        let sealed = match row.psp {
            Some(_) => Sealed::Packets,
            None => Sealed::Records,
        };
        let terms = self.handshakes.terms(to);
        terms.unwrap_or_else(|| Terms::usual(sealed))
    }

    /// Checks the tag of a control packet, and believes what is in it.
    fn tag(&mut self, row: &Row<'_>, control: &Control<'_>) -> Remark {
        let Some(keys) = &self.wishes.keys else {
            return Remark::None;
        };
        let (index, epoch) = (control.header.session, control.header.epoch);
        let mut candidates = keys.candidates(index, Purpose::Control, epoch).peekable();
        if candidates.peek().is_none() {
            return Remark::NoKey;
        }
        let Some((ciphertext, tag)) = control.sealed.split_last_chunk::<TAG_LEN>() else {
            return Remark::None;
        };
        let number = control.header.number.to_u64();
        // CONFIRM has a token under its tag and ASSOCIATION a key, which are secret.
        let mut secret = Zeroizing::new(vec![0; ciphertext.len()]);
        if candidates.any(|aead| {
            aead.open(number, control.aad, ciphertext, tag, &mut secret)
                .is_ok()
        }) {
            self.counts.opened += 1;
            if let Body::Association(fields) = control.body {
                let session = self.handshakes.ends(Direction {
                    target: row.target,
                    session: index,
                });
                let receiver = row.source.ip();
                self.associations.learn(receiver, session, fields, &secret);
            }
            Remark::TagOk
        } else {
            self.counts.failed += 1;
            Remark::TagFailed
        }
    }

    fn data(
        &mut self,
        row: &Row<'_>,
        to: Direction,
        data: &Data<'_>,
        terms: Terms,
    ) -> Result<(Remark, Vec<Fact>), DumpError> {
        let header = data.header;
        let end = u64::from(header.offset) + data.payload.len() as u64;
        let unprotected = self.unprotected(row, to, terms);
        if unprotected != Remark::None {
            return Ok((unprotected, Vec::new()));
        }
        if end > u64::from(terms.geometry.stream_length(header.message_length)) {
            return Ok((Remark::TooLong, Vec::new()));
        }
        let Some(keys) = &self.wishes.keys else {
            return Ok((Remark::None, Vec::new()));
        };
        // Nothing has protected plaintext: it does not come among records that have opened.
        if row.is_plaintext {
            return Ok((Remark::None, Vec::new()));
        }
        if row.psp.is_some_and(|psp| psp.opened_by.is_none()) {
            return Ok((row.remark, Vec::new()));
        }
        if !keys.has(header.session) {
            return Ok((Remark::NoKey, Vec::new()));
        }
        self.counts.assumed += u64::from(self.handshakes.terms(to).is_none());
        let findings = self.messages.take(to, data, terms, keys);
        let facts = findings
            .into_iter()
            .map(|finding| self.fact(to, header.id, finding));
        Ok((Remark::None, facts.collect::<Result<_, _>>()?))
    }

    /// The reason for which a receiver looks at nothing else of DATA: the packet of PSP around it
    /// is forged, of another session, or missing (SPEC [15.4-7]).
    fn unprotected(&self, row: &Row<'_>, to: Direction, terms: Terms) -> Remark {
        if !row.remark.is_received() {
            return row.remark;
        }
        if terms.sealed == Sealed::Records {
            return Remark::None;
        }
        let session = self.handshakes.ends(to);
        match row.psp {
            None if row.is_plaintext => Remark::None,
            None => Remark::NotInPsp,
            Some(RowPsp {
                opened_by: Some(told),
                ..
            }) if !(self.associations).are_for(to.target.ip(), session, told) => {
                Remark::OtherAssociation
            }
            Some(_) => Remark::None,
        }
    }

    fn fact(&mut self, to: Direction, id: MessageId, finding: Finding) -> Result<Fact, DumpError> {
        let count = |counts: &mut Counts, is_ok: bool| {
            if is_ok {
                counts.opened += 1;
            } else {
                counts.failed += 1;
            }
        };
        Ok(match finding {
            Finding::First(opened) => {
                count(&mut self.counts, opened.is_ok());
                Fact::First(opened)
            }
            Finding::Rest(index, opened) => {
                count(&mut self.counts, opened.is_ok());
                Fact::Rest(index, opened)
            }
            Finding::Whole(header, body) => {
                let message = WholeMessage::new(id, header.kind, header.parts, &body);
                Fact::Whole(self.whole(to, &message)?)
            }
            Finding::Bundle(members) => Fact::Bundle(id, members),
            Finding::Member(header, body) => {
                let message = WholeMessage::new(header.id, header.kind, header.parts, &body);
                let whole = self.whole(to, &message)?;
                Fact::Member(header, whole)
            }
            Finding::Again => Fact::Again(id),
        })
    }

    fn whole(&mut self, to: Direction, message: &WholeMessage<'_>) -> Result<Whole, DumpError> {
        self.counts.whole += 1;
        let path = match &self.wishes.directory {
            Some(directory) => {
                let name = message.file_name(to);
                let count = self.written.entry(name.clone()).or_default();
                Some(write_new(directory, &name, count, message.body)?)
            }
            None => None,
        };
        Ok(message.shown(path))
    }
}

/// Writes a decrypted message to a file that only its owner may read: of this name, or with the
/// next number behind it that no file has.
fn write_new(
    directory: &Path,
    name: &str,
    count: &mut u32,
    body: &[u8],
) -> Result<PathBuf, DumpError> {
    loop {
        *count += 1;
        let path = match *count {
            1 => directory.join(name),
            count => directory.join(format!("{name}-{count}")),
        };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let written = file.and_then(|mut file| file.write_all(body));
                return match written {
                    Ok(()) => Ok(path),
                    Err(error) => Err(DumpError::Message(path, error)),
                };
            }
        }
    }
}
