// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The record that a ticket is published in (SPEC §6.9): SVCB with keys of our own.
//!
//! Not here: whether the ticket is good and its server trusted (`smt_handshake::TicketVerifier`).

use hickory_proto::rr::rdata::SVCB;
use hickory_proto::rr::rdata::svcb::{Mandatory, SvcParamKey, SvcParamValue, Unknown};
use hickory_proto::rr::{Name, RData, RecordData, RecordType};
use hickory_proto::serialize::binary::{BinDecoder, BinEncodable, Restrict};
use smt_handshake::{Ticket, TicketError};

use crate::limits::{CHAIN_CERTIFICATES_MAX, RECORD_LEN_MAX, RECORD_WITH_CHAIN_LEN_MAX};

/// A server's ticket as DNS has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TicketRecord {
    ticket: Ticket,
    chain: Option<Vec<Vec<u8>>>,
}

/// A record that has no ticket, or none that is well formed: the fault of who published it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is no SVCB record.
    #[error("peer: the record is cut short or is no SVCB record")]
    NotSvcb,
    /// It points to another name (`AliasMode`), and has nothing itself.
    #[error("peer: the record is an alias, and tickets are published under the server's own name")]
    Alias,
    /// It demands a key that is unknown here.
    #[error("peer: the record demands key{0} of its readers, which is unknown")]
    Mandatory(u16),
    /// It has no ticket.
    #[error("peer: the record has no ticket (key65280)")]
    NoTicket,
    /// The ticket is malformed.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The chain is malformed.
    #[error("peer: the record's certificate chain (key65281) is malformed")]
    Chain,
    /// It is longer than any record with a ticket.
    #[error("peer: the record has more than {RECORD_LEN_MAX} bytes")]
    TooLong,
}

impl TicketRecord {
    /// The record of a ticket. The chain, leaf first in DER, is part of it if the whole is at most
    /// [`RECORD_WITH_CHAIN_LEN_MAX`] bytes long; else clients need the chain from elsewhere.
    ///
    /// # Errors
    /// [`RecordError::TooLong`]: the ticket has names without measure.
    pub fn new(ticket: Ticket, chain: &[Vec<u8>]) -> Result<Self, RecordError> {
        let mut record = Self { ticket, chain: Some(chain.to_vec()) };
        let is_good = !chain.is_empty() && chain.len() <= CHAIN_CERTIFICATES_MAX;
        let has_room = |bytes: Vec<u8>| record.len(Some(&bytes)) <= RECORD_WITH_CHAIN_LEN_MAX;
        if !is_good || !chain_bytes(chain).is_some_and(has_room) {
            record.chain = None;
        }
        match record.len(None) {
            ..=RECORD_LEN_MAX => Ok(record),
            _ => Err(RecordError::TooLong),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`RecordError`] says what is wrong.
    pub fn from_svcb(svcb: &SVCB) -> Result<Self, RecordError> {
        if svcb.svc_priority == 0 {
            return Err(RecordError::Alias);
        }
        let (mut ticket, mut chain) = (None, None);
        for (key, value) in &svcb.svc_params {
            match (u16::from(*key), value) {
                (_, SvcParamValue::Mandatory(Mandatory(keys))) => {
                    let unknown = keys.iter().map(|key| u16::from(*key));
                    if let Some(key) = unknown.filter(|key| !KEYS.contains(key)).min() {
                        return Err(RecordError::Mandatory(key));
                    }
                }
                (KEY_TICKET, SvcParamValue::Unknown(Unknown(bytes))) => ticket = Some(bytes),
                (KEY_CHAIN, SvcParamValue::Unknown(Unknown(bytes))) => chain = Some(bytes),
                // Addresses, ports and what else others read.
                _ => {}
            }
        }
        let ticket = ticket.ok_or(RecordError::NoTicket)?;
        let length = ticket.len() + chain.map_or(0, Vec::len);
        if length > RECORD_LEN_MAX {
            return Err(RecordError::TooLong);
        }
        Ok(Self {
            ticket: Ticket::from_bytes(ticket)?,
            chain: chain.map(|bytes| read_chain(bytes)).transpose()?,
        })
    }

    /// Reads the RDATA of a record, all of the bytes.
    ///
    /// # Errors
    /// [`RecordError`] says what is wrong.
    pub fn from_rdata(rdata: &[u8]) -> Result<Self, RecordError> {
        if rdata.len() > RECORD_LEN_MAX {
            return Err(RecordError::TooLong);
        }
        let length = u16::try_from(rdata.len()).map_err(|_| RecordError::TooLong)?;
        let mut decoder = BinDecoder::new(rdata);
        let read = RData::read(&mut decoder, RecordType::SVCB, Restrict::new(length));
        match read {
            Ok(RData::SVCB(svcb)) if decoder.is_empty() => Self::from_svcb(&svcb),
            _ => Err(RecordError::NotSvcb),
        }
    }

    /// The record as the DNS library has it.
    #[must_use]
    pub fn to_svcb(&self) -> SVCB {
        let of = |key, bytes| (SvcParamKey::Key(key), SvcParamValue::Unknown(Unknown(bytes)));
        let mut params = vec![of(KEY_TICKET, self.ticket.as_bytes().to_vec())];
        if let Some(bytes) = self.chain.as_deref().and_then(chain_bytes) {
            params.push(of(KEY_CHAIN, bytes));
        }
        SVCB::new(PRIORITY, Name::root(), params)
    }

    /// The record's RDATA.
    #[must_use]
    pub fn to_rdata(&self) -> Vec<u8> {
        // Keys are in order and no value is longer than its length can say.
        self.to_svcb().to_bytes().unwrap_or_default()
    }

    /// The ticket, which nothing has verified yet.
    #[must_use]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The chain that came with the ticket, leaf first in DER.
    #[must_use]
    pub fn chain(&self) -> Option<&[Vec<u8>]> {
        self.chain.as_deref()
    }

    /// Bytes of the RDATA: priority, the name of one byte, and each value behind key and length.
    fn len(&self, chain: Option<&[u8]>) -> usize {
        let chain = chain.map_or(0, |bytes| 4 + bytes.len());
        2 + 1 + 4 + self.ticket.as_bytes().len() + chain
    }
}

/// The data of a record that is no ticket's is none.
pub(crate) fn svcb(data: &RData) -> Option<&SVCB> {
    SVCB::try_borrow(data)
}

/// Certificates, each with its length as u16; `None` if one is too long.
fn chain_bytes(chain: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for certificate in chain {
        out.extend_from_slice(&u16::try_from(certificate.len()).ok()?.to_be_bytes());
        out.extend_from_slice(certificate);
    }
    Some(out)
}

fn read_chain(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, RecordError> {
    let mut chain = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk().ok_or(RecordError::Chain)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (certificate, rest) = rest.split_at_checked(length).ok_or(RecordError::Chain)?;
        if certificate.is_empty() || chain.len() == CHAIN_CERTIFICATES_MAX {
            return Err(RecordError::Chain);
        }
        chain.push(certificate.to_vec());
        bytes = rest;
    }
    match chain.is_empty() {
        true => Err(RecordError::Chain),
        false => Ok(chain),
    }
}

const PRIORITY: u16 = 1;
const KEY_TICKET: u16 = 65_280;
const KEY_CHAIN: u16 = 65_281;
const KEYS: [u16; 2] = [KEY_TICKET, KEY_CHAIN];

#[cfg(test)]
pub(crate) mod tests;
