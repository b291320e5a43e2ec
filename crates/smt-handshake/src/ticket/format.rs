// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A ticket as bytes (SPEC §6.7).
//!
//! Not here: whether its signature is good and its server trusted (`ticket/verify.rs`).

use smt_record::{AwsLc, HashProvider, Suite};

use super::codec::{BadLength, Reader, put_long, put_short};
use super::signature::Signature;
use crate::tls::algorithms::Group;

/// A ticket, as it is published: well formed, and not verified yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ticket {
    bytes: Vec<u8>,
    pub(super) content: TicketContent,
    pub(super) signature: Signature,
}

/// The part that the server signs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct TicketContent {
    pub(super) group: Group,
    /// Preferred first.
    pub(super) suites: Vec<Suite>,
    /// Random, other for each ticket.
    pub(super) id: [u8; 16],
    /// Seconds since 1970.
    pub(super) not_before: u64,
    pub(super) not_after: u64,
    pub(super) requires: Requirements,
    pub(super) takes_early_data: bool,
    pub(super) share: Vec<u8>,
    pub(super) names: Vec<String>,
    /// SHA-256 of the chain, see [`chain_hash`].
    pub(super) chain_hash: [u8; 32],
}

/// The server's demands on clients.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Requirements {
    pub(super) forward_secrecy: bool,
    pub(super) client_certificate: bool,
}

impl TicketContent {
    /// The flags as a byte.
    fn flags(&self) -> u8 {
        let Requirements { forward_secrecy, client_certificate } = self.requires;
        let flags = [forward_secrecy, client_certificate, self.takes_early_data];
        let set = (0..).zip(flags).filter(|(_, is_set)| *is_set);
        set.map(|(at, _)| 1 << at).sum()
    }
}

/// Bytes that are no ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("peer: no SMT ticket: {0}")]
pub struct TicketError(&'static str);

impl Ticket {
    /// Reads a ticket, all of the bytes.
    ///
    /// # Errors
    /// [`TicketError`] says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TicketError> {
        if bytes.len() > TICKET_LEN_MAX {
            return Err(TicketError("it has more than 16,384 bytes"));
        }
        let mut reader = Reader::new(bytes);
        let content = TicketContent::read(&mut reader)?;
        let (scheme, signature) = (reader.u16()?, reader.long()?.to_vec());
        reader.end()?;
        Ok(Self {
            bytes: bytes.to_vec(),
            content,
            signature: Signature { scheme, bytes: signature },
        })
    }

    /// The bytes, as [`Self::from_bytes`] takes them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// When the ticket begins and ends, in seconds since 1970.
    #[must_use]
    pub fn validity(&self) -> std::ops::RangeInclusive<u64> {
        self.content.not_before..=self.content.not_after
    }

    /// The names that the ticket is for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.content.names.iter().map(String::as_str)
    }

    /// The group of the ticket's share.
    #[must_use]
    pub fn group(&self) -> Group {
        self.content.group
    }

    /// Whether clients must show a certificate.
    #[must_use]
    pub fn requires_client_certificate(&self) -> bool {
        self.content.requires.client_certificate
    }

    /// Whether sessions must have forward secrecy.
    #[must_use]
    pub fn requires_forward_secrecy(&self) -> bool {
        self.content.requires.forward_secrecy
    }

    /// Whether the server takes early data.
    #[must_use]
    pub fn takes_early_data(&self) -> bool {
        self.content.takes_early_data
    }

    /// The suites that the server takes, preferred first.
    #[must_use]
    pub fn suites(&self) -> &[Suite] {
        &self.content.suites
    }

    /// SHA-256 of the server's certificate chain, as [`chain_hash`] has it.
    #[must_use]
    pub fn chain_hash(&self) -> [u8; 32] {
        self.content.chain_hash
    }

    /// SHA-256 of the whole ticket: its name in handshakes and stores.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        AwsLc.sha256(&[&self.bytes])
    }

    /// Whether this is the chain that the ticket names.
    pub(super) fn has_chain<T: AsRef<[u8]>>(&self, chain: &[T]) -> bool {
        self.content.chain_hash == chain_hash(chain)
    }

    pub(super) fn signed(content: TicketContent, signature: Signature) -> Option<Self> {
        let mut bytes = content.bytes()?;
        bytes.extend_from_slice(&signature.scheme.to_be_bytes());
        put_long(&mut bytes, &signature.bytes)?;
        Some(Self { bytes, content, signature })
    }

    /// The bytes under the signature.
    pub(super) fn signed_bytes(&self) -> &[u8] {
        let behind = 2 + 2 + self.signature.bytes.len();
        &self.bytes[..self.bytes.len() - behind]
    }
}

impl TicketContent {
    /// The bytes under the signature; `None` if a part is too long.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let mut out = vec![FORMAT, group_code(self.group)];
        let suites: Vec<u8> =
            self.suites.iter().flat_map(|suite| suite.code().to_be_bytes()).collect();
        put_short(&mut out, &suites)?;
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.not_before.to_be_bytes());
        out.extend_from_slice(&self.not_after.to_be_bytes());
        out.push(self.flags());
        put_long(&mut out, &self.share)?;
        let mut names = Vec::new();
        for name in &self.names {
            put_short(&mut names, name.as_bytes())?;
        }
        put_long(&mut out, &names)?;
        out.extend_from_slice(&self.chain_hash);
        Some(out)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, TicketError> {
        if reader.u8()? != FORMAT {
            return Err(TicketError("it has another format than 1"));
        }
        let group = group_of(reader.u8()?).ok_or(TicketError("its group is unknown"))?;
        let codes = reader.short()?.chunks(2);
        let suites = codes.map(|code| Suite::from_code(u16::from_be_bytes(code.try_into().ok()?)));
        let suites: Option<Vec<Suite>> = suites.collect();
        let suites = suites.ok_or(TicketError("it names a suite that is none of SMT's"))?;
        if suites.is_empty() {
            return Err(TicketError("it names no suite"));
        }
        let (id, not_before, not_after) = (reader.array()?, reader.u64()?, reader.u64()?);
        if not_after.checked_sub(not_before).is_none_or(|life| life > TICKET_LIFE_MAX) {
            return Err(TicketError("it is for longer than an hour, or for no time"));
        }
        let flags = reader.u8()?;
        let requires =
            Requirements::of(flags).ok_or(TicketError("it has a flag that is unknown"))?;
        let share = reader.long()?.to_vec();
        let mut rest = Reader::new(reader.long()?);
        let mut names = Vec::new();
        while !rest.is_empty() {
            let name = std::str::from_utf8(rest.short()?);
            names.push(name.map_err(|_| TicketError("a name is no text"))?.to_owned());
        }
        Ok(Self {
            group,
            suites,
            id,
            not_before,
            not_after,
            requires,
            takes_early_data: flags & EARLY_DATA != 0,
            share,
            names,
            chain_hash: reader.array()?,
        })
    }
}

impl Requirements {
    fn of(flags: u8) -> Option<Self> {
        (flags < 8)
            .then_some(Self { forward_secrecy: flags & 1 != 0, client_certificate: flags & 2 != 0 })
    }
}

impl From<BadLength> for TicketError {
    fn from(_: BadLength) -> Self {
        Self("it is cut short, or continues after its end")
    }
}

/// SHA-256 over a certificate chain, leaf first in DER, each certificate with its length as u32:
/// the name of a chain in tickets.
pub fn chain_hash<T: AsRef<[u8]>>(chain: &[T]) -> [u8; 32] {
    let framed: Vec<u8> = chain
        .iter()
        .flat_map(|certificate| {
            let bytes = certificate.as_ref();
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            [&length.to_be_bytes()[..], bytes].concat()
        })
        .collect();
    AwsLc.sha256(&[&framed])
}

const fn group_code(group: Group) -> u8 {
    match group {
        Group::P256 => 1,
        Group::X25519 => 2,
        Group::X25519MlKem768 => 3,
    }
}

fn group_of(code: u8) -> Option<Group> {
    let groups = [Group::P256, Group::X25519, Group::X25519MlKem768];
    groups.into_iter().find(|group| group_code(*group) == code)
}

const FORMAT: u8 = 1;
/// The flag of tickets whose server takes early data.
const EARLY_DATA: u8 = 4;
/// The longest that a ticket is good for, in seconds: its key opens what was sent by it alone.
pub(super) const TICKET_LIFE_MAX: u64 = 3_600;
/// Bytes of a ticket: a hybrid share, some names and a post-quantum signature.
const TICKET_LEN_MAX: usize = 16_384;
