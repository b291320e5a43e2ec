// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA to facts: what protects it, and the records and messages that open.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use smt_record::Purpose;
use smt_wire::{Data, MessageId};

use super::{Counts, Dissection};
use crate::error::DumpError;
use crate::messages::Finding;
use crate::row::{Fact, Remark, Row, RowPsp, Whole};
use crate::terms::{Direction, Sealed, Terms};
use crate::whole_message::WholeMessage;

impl Dissection {
    /// Takes a DATA packet that went there.
    pub(super) fn data(
        &mut self,
        row: &Row<'_>,
        to: Direction,
        data: &Data<'_>,
        terms: Terms,
    ) -> (Remark, Vec<Fact>) {
        let header = data.header;
        let end = u64::from(header.offset) + data.payload.len() as u64;
        let unprotected = self.unprotected(row, to, terms);
        if unprotected != Remark::None {
            return (unprotected, Vec::new());
        }
        if end > u64::from(terms.geometry.stream_length(header.message_length)) {
            return (Remark::TooLong, Vec::new());
        }
        if !row.is_plaintext {
            self.look_for_key(header.session, Purpose::Data, header.epoch);
        }
        let Some(keys) = &self.wishes.keys else {
            return (Remark::None, Vec::new());
        };
        // Nothing has protected plaintext: it does not come among records that have opened.
        if row.is_plaintext {
            return (Remark::None, Vec::new());
        }
        if row.psp.is_some_and(|psp| psp.opened_by.is_none()) {
            return (row.remark, Vec::new());
        }
        if !keys.has(header.session) {
            return (Remark::NoKey, Vec::new());
        }
        self.counts.assumed += u64::from(self.handshakes.terms(to).is_none());
        let findings = self.messages.take(to, data, terms, keys);
        let facts = findings.into_iter().map(|finding| self.fact(to, header.id, finding));
        (Remark::None, facts.collect())
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
            Some(RowPsp { opened_by: Some(told), .. })
                if !(self.associations).are_for(to.target.ip(), session, told) =>
            {
                Remark::OtherAssociation
            }
            Some(_) => Remark::None,
        }
    }

    fn fact(&mut self, to: Direction, id: MessageId, finding: Finding) -> Fact {
        let count = |counts: &mut Counts, is_ok: bool| {
            if is_ok {
                counts.opened += 1;
            } else {
                counts.failed += 1;
            }
        };
        match finding {
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
                Fact::Whole(self.whole(to, &message))
            }
            Finding::Bundle(members) => Fact::Bundle(id, members),
            Finding::Member(header, body) => {
                let message = WholeMessage::new(header.id, header.kind, header.parts, &body);
                let whole = self.whole(to, &message);
                Fact::Member(header, whole)
            }
            Finding::Again => Fact::Again(id),
        }
    }

    fn whole(&mut self, to: Direction, message: &WholeMessage<'_>) -> Whole {
        self.counts.whole += 1;
        message.shown(self.write_message(to, message))
    }

    /// Writes a message, if that is wished. After a failure no further one is written.
    fn write_message(&mut self, to: Direction, message: &WholeMessage<'_>) -> Option<PathBuf> {
        let directory = self.wishes.directory.as_ref()?;
        let name = message.file_name(to);
        let count = self.written.entry(name.clone()).or_default();
        match write_new(directory, &name, count, message.body) {
            Ok(path) => Some(path),
            Err(error) => {
                self.wishes.directory = None;
                self.not_written = Some(error);
                None
            }
        }
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
