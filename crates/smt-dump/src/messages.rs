// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages, put together from DATA packets and opened record by record.
//!
//! 1. Until record 0 of a message opens nothing is believed, and other bytes of it are only kept.
//! 2. Record 0 tells the message's lengths; then each record is opened when all of its bytes are
//!    there.
//! 3. Bytes that have opened are shown once; bytes that come again are a retransmission.

use std::collections::{BTreeMap, HashMap};

use smt_record::{OpenError, Purpose, open_first, open_rest};
use smt_wire::{
    Data, InnerHeader, Kind, MemberHeader, Members, MessageId, ParseError, Record, TAG_LEN,
};

use crate::coverage::Coverage;
use crate::decrypted_capture::{OpenedRecord, OpenedRecords, RECORD_HEADER_BYTES};
use crate::key_log::Keys;
use crate::terms::{Direction, Terms};

/// All messages that are not whole yet, and the names of those that are.
#[derive(Default)]
pub(crate) struct Messages {
    messages: HashMap<(Direction, MessageId), Message>,
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
    body: Vec<u8>,
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
        Self {
            opened: keeps_opened.then(OpenedRecords::new),
            ..Self::default()
        }
    }

    /// The records that were kept, if they were.
    pub(crate) fn opened(&self) -> Option<&OpenedRecords> {
        self.opened.as_ref()
    }

    /// Takes a packet that went there.
    pub(crate) fn take(
        &mut self,
        to: Direction,
        data: &Data<'_>,
        terms: Terms,
        keys: &Keys,
    ) -> Vec<Finding> {
        let header = data.header;
        let sealer = Sealer {
            keys,
            to,
            id: header.id,
            epoch: header.epoch,
        };
        let message = self
            .messages
            .entry((to, header.id))
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
                opened
                    .as_ref()
                    .map(|open| open.header)
                    .map_err(|error| *error),
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
        let record = data
            .payload
            .get(..place.stream_len())
            .ok_or(OpenError::Form)?;
        let sequence = terms
            .index_bits
            .sequence(self.sealer.id, 0)
            .map_err(|_| OpenError::Form)?;
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
    opened
        .is_ok()
        .then(|| OpenedRecord::new(place.stream_start, record, &plaintext))
}

impl Sealer<'_> {
    /// Tries all keys; the last error if none opens.
    fn first_success<T>(
        self,
        mut attempt: impl FnMut(&dyn smt_record::Aead) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        let mut outcome = Err(OpenError::Failed(smt_record::OpenFailed::Forged));
        for aead in self
            .keys
            .candidates(self.to.session, Purpose::Data, self.epoch)
        {
            outcome = attempt(aead);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

impl Open {
    fn new(header: InnerHeader, terms: Terms, mut body: Vec<u8>) -> Self {
        // The record is authentic: the sender had to send these bytes.
        body.resize(header.true_length as usize, 0);
        Self {
            header,
            terms,
            body,
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
                    let outcome = opener.open(record, &self.header, self.terms, &mut self.body);
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
        (self.records_open == records).then(|| std::mem::take(&mut self.body))
    }
}

impl Opener<'_> {
    /// Opens a record into its place in the body.
    fn open(
        &mut self,
        record: SealedRecord<'_>,
        header: &InnerHeader,
        terms: Terms,
        body: &mut [u8],
    ) -> Result<usize, OpenError> {
        let SealedRecord { place, bytes } = record;
        let sequence = terms
            .index_bits
            .sequence(self.sealer.id, place.index)
            .map_err(|_| OpenError::Form)?;
        let true_inner = header.true_length.saturating_add(InnerHeader::LEN as u32);
        let length = place.content(true_inner);
        // A record that lies wholly in the padding begins past the body.
        let start = (place.inner_start as usize)
            .saturating_sub(InnerHeader::LEN)
            .min(body.len());
        let content = &mut body[start..start + length];
        let scratch = &mut *self.scratch;
        let opened = &mut self.opened;
        self.sealer.first_success(|aead| {
            open_rest(aead, sequence, &place, true_inner, bytes, content, scratch)?;
            if let Some(opened) = opened {
                opened.extend(opened_record(aead, sequence, place, bytes));
            }
            Ok(())
        })?;
        Ok(length)
    }
}
