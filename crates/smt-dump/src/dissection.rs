// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams to rows: each packet, and what a key log brings to light about it.

mod records;
mod sealed_packets;

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use smt_record::Purpose;
use smt_wire::{
    Body, Control, Data, PLAINTEXT_VERSION, Packet, ParseError, SessionIndex, TAG_LEN, VERSION,
    parse,
};
use zeroize::Zeroizing;

use crate::Wishes;
use crate::associations::Associations;
use crate::datagram::Datagram;
use crate::decrypted_capture::DecryptedCapture;
use crate::error::DumpError;
use crate::messages::Messages;
use crate::row::{Fact, Remark, Row, RowPsp};
use crate::rpcs::{Ends, Piece};
use crate::segments;
use crate::terms::{Direction, Handshakes, Sealed, Terms};
use crate::view::View;

/// The state of a whole capture.
pub(crate) struct Dissection {
    wishes: Wishes,
    view: View,
    handshakes: Handshakes,
    associations: Associations,
    messages: Messages,
    /// If it is to be written.
    decrypted: Option<DecryptedCapture>,
    /// Why no further messages are written.
    not_written: Option<DumpError>,
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
            not_written: None,
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
        self.keep(time, datagram);
        let origin = Origin { time, datagram, psp: None };
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

    /// Keeps the frame of a datagram for the decrypted capture.
    fn keep(&mut self, time: Duration, datagram: &Datagram<'_>) {
        if let Some(decrypted) = &mut self.decrypted {
            decrypted.keep(time, datagram);
        }
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
                    ParseError::UnknownType { length: length @ 1.., .. } => &bytes[length..],
                    _ => &[],
                })
            }
        }
    }

    /// Shows what has waited for the end.
    ///
    /// # Errors
    /// Messages or plaintext could not be written, or the output takes no more.
    pub(crate) fn finish(&mut self, output: &mut dyn Write) -> Result<(), DumpError> {
        self.view.finish(output)?;
        let written = self.write_decrypted();
        self.not_written.take().map_or(written, Err)
    }

    fn write_decrypted(&mut self) -> Result<(), DumpError> {
        let decrypted = self.decrypted.take().zip(self.messages.opened());
        let (Some((decrypted, opened)), Some(file)) = (decrypted, &mut self.wishes.decrypted)
        else {
            return Ok(());
        };
        let written = decrypted.write(opened, file);
        written.and_then(|()| file.flush()).map_err(DumpError::Decrypted)
    }

    /// Whether a message could not be written.
    pub(crate) fn has_failed_to_write(&self) -> bool {
        self.not_written.is_some()
    }

    /// Packets so far.
    pub(crate) fn packets(&self) -> u64 {
        self.counts.packets
    }

    /// A line for people, at the end.
    pub(crate) fn summary(&self) -> String {
        let Counts { datagrams, packets, opened, failed, whole, assumed } = &self.counts;
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
                let to = Direction { target: row.target, session: data.header.session };
                let terms = self.terms(&row, to);
                (row.remark, row.facts) = self.data(&row, to, data, terms);
                if row.remark.is_received() {
                    self.note(&row, to, data, terms);
                    let piece = Piece { time: row.time, to, data, terms, facts: &row.facts };
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

    /// Notes DATA for the decrypted capture.
    fn note(&mut self, row: &Row<'_>, to: Direction, data: &Data<'_>, terms: Terms) {
        let Some(decrypted) = &mut self.decrypted else {
            return;
        };
        match terms.sealed {
            Sealed::Records => decrypted.note(row.at, to, data),
            Sealed::Packets if row.psp.is_some_and(|psp| psp.opened_by.is_some()) => {
                decrypted.note_plaintext(row.at);
            }
            Sealed::Packets => {}
        }
    }

    /// The ends of the session of a packet.
    fn ends(&self, row: &Row<'_>, session: SessionIndex) -> Ends {
        let to = Direction { target: row.target, session };
        self.handshakes.ends(to).unwrap_or_else(|| {
            let (client, server) = match row.target.port() == self.wishes.port {
                true => (row.source, row.target),
                false => (row.target, row.source),
            };
            Ends { client, server, client_session: None, server_session: None, stripes_log2: 0 }
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

    /// Looks for keys that were logged since, if there is none for packets of this index and epoch.
    fn look_for_key(&mut self, index: SessionIndex, purpose: Purpose, epoch: u8) {
        let (Some(keys), Some(more)) = (&mut self.wishes.keys, &mut self.wishes.more_keys) else {
            return;
        };
        if keys.candidates(index, purpose, epoch).next().is_none() {
            more(keys);
        }
    }

    /// Checks the tag of a control packet, and believes what is in it.
    fn tag(&mut self, row: &Row<'_>, control: &Control<'_>) -> Remark {
        self.look_for_key(control.header.session, Purpose::Control, control.header.epoch);
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
        if candidates
            .any(|aead| aead.open(number, control.aad, ciphertext, tag, &mut secret).is_ok())
        {
            self.counts.opened += 1;
            if let Body::Association(fields) = control.body {
                let session =
                    self.handshakes.ends(Direction { target: row.target, session: index });
                let receiver = row.source.ip();
                self.associations.learn(receiver, session, fields, &secret);
            }
            Remark::TagOk
        } else {
            self.counts.failed += 1;
            Remark::TagFailed
        }
    }
}
