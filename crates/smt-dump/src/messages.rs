// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages, put together from DATA packets and opened record by record.
//!
//! 1. Until record 0 of a message opens nothing is believed, and other bytes of it are only kept.
//! 2. Record 0 tells the message's lengths; then each record is opened when all of its bytes are
//!    there.
//! 3. Bytes that have opened are shown once; bytes that come again are a retransmission.
//!
//! Records that packets of PSP protect are put together apart from sealed ones, so that no byte
//! from outside such a packet comes among theirs.

use std::collections::{BTreeMap, HashMap};

use smt_record::{OpenError, Purpose, null_cipher, open_first, open_rest};
use smt_wire::{
    Data, InnerHeader, Kind, MemberHeader, Members, MessageId, ParseError, Record, TAG_LEN,
};

use crate::coverage::Coverage;
use crate::decrypted_capture::{OpenedRecord, OpenedRecords, RECORD_HEADER_BYTES};
use crate::key_log::Keys;
use crate::terms::{Direction, Sealed, Terms};

/// All messages that are not whole yet, and the names of those that are.
#[derive(Default)]
pub(crate) struct Messages {
    messages: HashMap<(Direction, MessageId, Sealed), Message>,
    scratch: Vec<u8>,
    /// Kept if they are to be shown.
    opened: Option<OpenedRecords>,
}

/// A fact about a message that a packet has brought to light.
pub(crate) enum Finding {
    /// Record 0, with what it says about its message.
    First(Result<InnerHeader, OpenError>),
    /// Another record; its content's bytes.
    Rest(u32, Result<usize, OpenError>),
    /// The message is whole.
    Whole(InnerHeader, Vec<u8>),
    /// A bundle is whole: this many members follow.
    Bundle(Result<usize, ParseError>),
    /// A message that has travelled in a bundle.
    Member(MemberHeader, Vec<u8>),
    /// Bytes of a message that is whole already.
    Again,
}

enum Message {
    /// Before record 0 has opened: offsets and bytes.
    Waiting(Vec<(u32, Vec<u8>)>),
    Open(Box<Open>),
    Whole,
}

struct Open {
    header: InnerHeader,
    terms: Terms,
    /// The application bytes of records that have opened, by the record's index.
    contents: BTreeMap<u32, Vec<u8>>,
    records_open: u32,
    /// Records whose bytes have come in part; `None` if the record has opened.
    partial: BTreeMap<u32, Option<Coverage>>,
}

/// The keys that may open a packet's records.
#[derive(Clone, Copy)]
struct Sealer<'a> {
    keys: &'a Keys,
    to: Direction,
    id: MessageId,
    epoch: u8,
    sealed: Sealed,
}

/// The state that opening a record needs beside its message.
struct Opener<'a> {
    sealer: Sealer<'a>,
    scratch: &'a mut Vec<u8>,
    /// The records of its message that have opened, if they are kept.
    opened: Option<&'a mut Vec<OpenedRecord>>,
}

/// A whole record that has not opened, and its place in its message.
struct SealedRecord<'a> {
    place: Record,
    bytes: &'a [u8],
}

/// A bundle's members (SPEC §5.7).
fn unbundle(body: &[u8], findings: &mut Vec<Finding>) {
    let members = Members::parse(body);
    findings.push(Finding::Bundle(members.map(Iterator::count)));
    let members = members.into_iter().flatten();
    findings.extend(members.map(|(header, place)| Finding::Member(header, body[place].to_vec())));
}

impl Messages {
    /// Before the first packet. Opened records are kept if it is wanted.
    pub(crate) fn new(keeps_opened: bool) -> Self {
        Self { opened: keeps_opened.then(OpenedRecords::new), ..Self::default() }
    }

    /// The records that were kept, if they were.
    pub(crate) fn opened(&self) -> Option<&OpenedRecords> {
        self.opened.as_ref()
    }

    /// Takes a packet that went there. If packets are sealed in its session, it was opened.
    pub(crate) fn take(
        &mut self,
        to: Direction,
        data: &Data<'_>,
        terms: Terms,
        keys: &Keys,
    ) -> Vec<Finding> {
        let header = data.header;
        let sealer = Sealer { keys, to, id: header.id, epoch: header.epoch, sealed: terms.sealed };
        let message = self
            .messages
            .entry((to, header.id, terms.sealed))
            .or_insert_with(|| Message::Waiting(Vec::new()));
        let mut findings = Vec::new();
        let mut opener = Opener {
            sealer,
            scratch: &mut self.scratch,
            opened: (self.opened.as_mut()).map(|opened| opened.entry((to, header.id)).or_default()),
        };
        if let Message::Waiting(kept) = message {
            if header.offset > 0 {
                kept.push((header.offset, data.payload.to_vec()));
                return findings;
            }
            let opened = opener.open_first(data, terms);
            findings.push(Finding::First(
                opened.as_ref().map(|open| open.header).map_err(|error| *error),
            ));
            let Ok(mut open) = opened else {
                return findings;
            };
            for (offset, bytes) in std::mem::take(kept) {
                open.fill(offset, &bytes, &mut opener, &mut findings);
            }
            *message = Message::Open(Box::new(open));
        }
        match message {
            Message::Open(open) => {
                open.fill(header.offset, data.payload, &mut opener, &mut findings);
                if let Some(body) = open.take_whole() {
                    match open.header.kind {
                        Kind::Bundle => unbundle(&body, &mut findings),
                        _ => findings.push(Finding::Whole(open.header, body)),
                    }
                    *message = Message::Whole;
                }
            }
            Message::Whole => findings.push(Finding::Again),
            Message::Waiting(_) => {}
        }
        findings
    }

    /// Messages of which something was seen and not all.
    pub(crate) fn incomplete(&self) -> usize {
        let is_incomplete = |message: &&Message| !matches!(message, Message::Whole);
        self.messages.values().filter(is_incomplete).count()
    }
}

impl Opener<'_> {
    fn open_first(&mut self, data: &Data<'_>, terms: Terms) -> Result<Open, OpenError> {
        let length = data.header.message_length;
        let place = terms.geometry.record(length, 0);
        let record = data.payload.get(..place.stream_len()).ok_or(OpenError::Form)?;
        let sequence = terms.index_bits.sequence(self.sealer.id, 0).map_err(|_| OpenError::Form)?;
        let opened = &mut self.opened;
        self.sealer.first_success(|aead| {
            let mut body = Vec::new();
            let header = open_first(aead, sequence, terms.geometry, length, record, &mut body)?;
            if let Some(opened) = opened {
                opened.extend(opened_record(aead, sequence, place, record));
            }
            Ok(Open::new(header, terms, body))
        })
    }
}

/// A record that has opened, with the whole of its plaintext.
fn opened_record(
    aead: &dyn smt_record::Aead,
    sequence: u64,
    place: Record,
    record: &[u8],
) -> Option<OpenedRecord> {
    let (header, sealed) = record.split_at_checked(RECORD_HEADER_BYTES)?;
    let (ciphertext, tag) = sealed.split_last_chunk::<TAG_LEN>()?;
    let mut plaintext = vec![0; ciphertext.len()];
    let opened = aead.open(sequence, header, ciphertext, tag, &mut plaintext);
    opened.is_ok().then(|| OpenedRecord::new(place.stream_start, record, &plaintext))
}

impl Sealer<'_> {
    /// Tries all keys; the last error if none opens.
    fn first_success<T>(
        self,
        mut attempt: impl FnMut(&dyn smt_record::Aead) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        if self.sealed == Sealed::Packets {
            return attempt(null_cipher());
        }
        let mut outcome = Err(OpenError::Failed(smt_record::OpenFailed::Forged));
        for aead in self.keys.candidates(self.to.session, Purpose::Data, self.epoch) {
            outcome = attempt(aead);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

impl Open {
    /// A message whose first record has these application bytes.
    fn new(header: InnerHeader, terms: Terms, first: Vec<u8>) -> Self {
        Self {
            header,
            terms,
            contents: BTreeMap::from([(0, first)]),
            records_open: 1,
            partial: BTreeMap::from([(0, None)]),
        }
    }

    /// Puts bytes of the record stream into their records, and opens those that are whole by that.
    fn fill(
        &mut self,
        offset: u32,
        bytes: &[u8],
        opener: &mut Opener<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let (geometry, padded) = (self.terms.geometry, self.header.padded_length);
        let mut place = geometry.record(padded, geometry.record_at(offset));
        let end = u64::from(offset) + bytes.len() as u64;
        while place.extent > 0 && u64::from(place.stream_start) < end {
            let partial = self
                .partial
                .entry(place.index)
                .or_insert_with(|| Some(Coverage::new(place.stream_len())));
            if let Some(coverage) = partial {
                // Either the bytes begin within the record, or the record within the bytes.
                let into = offset.saturating_sub(place.stream_start) as usize;
                let from = place.stream_start.saturating_sub(offset) as usize;
                coverage.fill(into, &bytes[from..]);
                if let Some(bytes) = coverage.whole() {
                    let record = SealedRecord { place, bytes };
                    let content = opener.open(record, &self.header, self.terms);
                    let outcome = content.map(|content| {
                        let length = content.len();
                        self.contents.insert(place.index, content);
                        length
                    });
                    *partial = match &outcome {
                        Ok(_) => None,
                        // Later arrivals replace it (SPEC §5.4).
                        Err(_) => Some(Coverage::new(place.stream_len())),
                    };
                    self.records_open += u32::from(outcome.is_ok());
                    findings.push(Finding::Rest(place.index, outcome));
                }
            }
            place = geometry.record(padded, place.index + 1);
        }
    }

    fn take_whole(&mut self) -> Option<Vec<u8>> {
        let records = self.terms.geometry.records(self.header.padded_length);
        (self.records_open == records)
            .then(|| std::mem::take(&mut self.contents).into_values().collect::<Vec<_>>().concat())
    }
}

impl Opener<'_> {
    /// The application bytes of a record, which are none if it lies wholly in the padding.
    fn open(
        &mut self,
        record: SealedRecord<'_>,
        header: &InnerHeader,
        terms: Terms,
    ) -> Result<Vec<u8>, OpenError> {
        let SealedRecord { place, bytes } = record;
        let sequence =
            terms.index_bits.sequence(self.sealer.id, place.index).map_err(|_| OpenError::Form)?;
        let true_inner = header.true_length.saturating_add(InnerHeader::LEN as u32);
        let mut content = vec![0; place.content(true_inner)];
        let scratch = &mut *self.scratch;
        let opened = &mut self.opened;
        self.sealer.first_success(|aead| {
            open_rest(aead, sequence, &place, true_inner, bytes, &mut content, scratch)?;
            if let Some(opened) = opened {
                opened.extend(opened_record(aead, sequence, place, bytes));
            }
            Ok(())
        })?;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use smt_wire::{DataHeader, PartMarks, SessionIndex};

    use super::*;

    /// A message of two records that are not sealed, of these bytes.
    fn stream(byte: u8) -> Vec<u8> {
        let terms = Terms::usual(Sealed::Packets);
        let header = InnerHeader {
            true_length: PADDED_LENGTH - InnerHeader::LEN as u32,
            padded_length: PADDED_LENGTH,
            kind: Kind::OneWay,
            deadline_us: 0,
            reply_unscheduled: 0,
            failure: None,
            has_metadata: false,
            parts: PartMarks::default(),
            window: 64,
            ack: None,
        };
        let mut inner = [0; InnerHeader::LEN];
        header.emit(&mut inner);
        let mut inner = inner.to_vec();
        inner.resize(PADDED_LENGTH as usize, byte);
        let mut stream = Vec::new();
        for index in 0..terms.geometry.records(PADDED_LENGTH) {
            let place = terms.geometry.record(PADDED_LENGTH, index);
            let start = place.inner_start as usize;
            stream.extend([23, 3, 3]);
            stream.extend((place.extent + 1 + TAG_LEN as u16).to_be_bytes());
            stream.extend(&inner[start..][..usize::from(place.extent)]);
            stream.push(23);
            stream.extend([0; TAG_LEN]);
        }
        stream
    }

    /// The body of the message, if this part of its stream makes it whole.
    fn take(messages: &mut Messages, stream: &[u8], offset: usize, sealed: Sealed) -> Vec<u8> {
        let session = SessionIndex::new(1, 1);
        let to = Direction { target: "10.0.0.1:17379".parse().unwrap(), session };
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session,
            id: MessageId(4),
            message_length: PADDED_LENGTH,
            offset: offset as u32,
        };
        let data = Data { header, payload: &stream[offset..stream.len().min(offset + 1_164)] };
        let findings = messages.take(to, &data, Terms::usual(sealed), &no_keys());
        let whole = findings.into_iter().find_map(|finding| match finding {
            Finding::Whole(_, body) => Some(body),
            _ => None,
        });
        whole.unwrap_or_default()
    }

    fn no_keys() -> Keys {
        let line = format!("SMT_SECRET 1 client data 0 1301 {}", "00".repeat(32));
        Keys::parse(line.as_bytes()).unwrap()
    }

    const PADDED_LENGTH: u32 = 3_000;

    #[test]
    fn records_that_a_packet_protects_open_without_a_key() {
        let (mut messages, stream) = (Messages::new(false), stream(7));
        let mut body = Vec::new();
        for offset in [0, 1_164, 2_328] {
            assert_eq!(body, b"", "{offset}");
            body = take(&mut messages, &stream, offset, Sealed::Packets);
        }
        assert_eq!(body, [7; PADDED_LENGTH as usize - InnerHeader::LEN]);
    }

    #[test]
    fn no_byte_of_a_sealed_record_comes_among_those_that_a_packet_protects() {
        let (mut messages, honest, forged) = (Messages::new(false), stream(7), stream(8));
        let mut body = Vec::new();
        for offset in [0, 1_164, 2_328] {
            body = take(&mut messages, &honest, offset, Sealed::Packets);
            let of_forged = take(&mut messages, &forged, offset, Sealed::Records);
            assert_eq!(of_forged, b"", "{offset}");
        }
        assert_eq!(body, [7; PADDED_LENGTH as usize - InnerHeader::LEN]);
    }
}
