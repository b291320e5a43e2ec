// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small messages that leave together (SPEC §5.7): the members of a message of kind BUNDLE.
//!
//! Behind the bundle's inner header stand its members, one after the other and nothing else, each
//! with a header of 20 bytes that says of it what an inner header says of a message that travels
//! alone. [`Members::parse`] looks at all of them before it gives the first: a bundle is well
//! formed as a whole, or refused as a whole.
//!
//! Not here: whether a member's id may be used, was seen, or waits for this reply.

use crate::error::ParseError;
use crate::field::{put, u16_at, u32_at, u64_at};
use crate::ids::MessageId;
use crate::inner_header::Kind;

/// The header before each member's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemberHeader {
    /// Under which the message would have travelled alone.
    pub id: MessageId,
    /// The kind of the message; never a bundle.
    pub kind: Kind,
    /// Application bytes.
    pub length: u16,
    /// As in [`crate::InnerHeader`].
    pub deadline_us: u32,
    /// As in [`crate::InnerHeader`].
    pub reply_unscheduled: u32,
}

impl MemberHeader {
    /// Bytes of the header.
    pub const LEN: usize = 20;

    /// Writes the header.
    pub fn emit(&self, out: &mut [u8; Self::LEN]) {
        let (deadline_us, reply_unscheduled) = match self.kind {
            Kind::Request => (self.deadline_us, self.reply_unscheduled),
            Kind::Reply | Kind::OneWay | Kind::Bundle => (0, 0),
        };
        put(out, field::ID, &self.id.0.to_be_bytes());
        out[field::KIND] = self.kind as u8;
        out[field::RESERVED] = 0;
        put(out, field::LENGTH, &self.length.to_be_bytes());
        put(out, field::DEADLINE, &deadline_us.to_be_bytes());
        put(
            out,
            field::REPLY_UNSCHEDULED,
            &reply_unscheduled.to_be_bytes(),
        );
    }

    fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let kind = Kind::of(bytes[field::KIND])
            .filter(|kind| *kind != Kind::Bundle)
            .ok_or(ParseError::Malformed("member of an unknown kind"))?;
        let for_request = |value| if kind == Kind::Request { value } else { 0 };
        Ok(Self {
            id: MessageId(u64_at(bytes, field::ID)),
            kind,
            length: u16_at(bytes, field::LENGTH),
            deadline_us: for_request(u32_at(bytes, field::DEADLINE)),
            reply_unscheduled: for_request(u32_at(bytes, field::REPLY_UNSCHEDULED)),
        })
    }
}

/// The members of a bundle: headers, and where in the bundle's application bytes their own are.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    newcomers: usize,
}

impl<'a> Members<'a> {
    /// Looks at a bundle's application bytes.
    ///
    /// # Errors
    /// `Malformed` if there is no member, or if members do not fill the bundle exactly: the peer
    /// broke a rule, since these bytes are authenticated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut members = Self {
            bytes,
            at: 0,
            newcomers: 0,
        };
        if bytes.is_empty() {
            return Err(ParseError::Malformed("bundle without a member"));
        }
        let mut rest = members;
        while rest.at < bytes.len() {
            let (member, _) = rest.split_first()?;
            members.newcomers += usize::from(member.kind != Kind::Reply);
        }
        Ok(members)
    }

    /// How many of all its members the receiver must have room for: requests and one-way messages.
    pub fn newcomers(&self) -> usize {
        self.newcomers
    }

    fn split_first(&mut self) -> Result<(MemberHeader, core::ops::Range<usize>), ParseError> {
        let header = self.bytes[self.at..].first_chunk();
        let header = header.ok_or(ParseError::Malformed("member that is cut short"))?;
        let header = MemberHeader::parse(header)?;
        let start = self.at + MemberHeader::LEN;
        let end = start + usize::from(header.length);
        if end > self.bytes.len() {
            return Err(ParseError::Malformed("member that is cut short"));
        }
        self.at = end;
        Ok((header, start..end))
    }
}

impl Iterator for Members<'_> {
    type Item = (MemberHeader, core::ops::Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        // All were looked at; there is no error left.
        (self.at < self.bytes.len())
            .then(|| self.split_first().ok())
            .flatten()
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        ID = 0..8;
        KIND = 8;
        RESERVED = 9;
        LENGTH = 10..12;
        DEADLINE = 12..16;
        REPLY_UNSCHEDULED = 16..20;
    }
}

const _: () = assert!(field::REPLY_UNSCHEDULED.end == MemberHeader::LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn member(id: u64, kind: Kind, body: &[u8]) -> Vec<u8> {
        let header = MemberHeader {
            id: MessageId(id),
            kind,
            length: body.len() as u16,
            deadline_us: 7,
            reply_unscheduled: 9,
        };
        let mut bytes = std::vec![0; MemberHeader::LEN];
        header.emit(bytes.first_chunk_mut().unwrap());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn members_come_back_as_they_were_with_the_fields_that_their_kind_has() {
        let bytes = [
            member(5, Kind::Request, b"ask"),
            member(6, Kind::Reply, b""),
            member(7, Kind::OneWay, b"tell"),
        ]
        .concat();
        let members: Vec<_> = Members::parse(&bytes).unwrap().collect();
        let ids: Vec<_> = members.iter().map(|(header, _)| header.id.0).collect();
        assert_eq!(ids, [5, 6, 7]);
        assert_eq!(Members::parse(&bytes).unwrap().newcomers(), 2);
        let (ask, place) = members[0].clone();
        assert_eq!((ask.deadline_us, ask.reply_unscheduled), (7, 9));
        assert_eq!(&bytes[place], b"ask");
        let (reply, place) = members[1].clone();
        assert_eq!((reply.deadline_us, reply.reply_unscheduled), (0, 0));
        assert!(place.is_empty());
        assert_eq!(&bytes[members[2].1.clone()], b"tell");
    }

    #[test]
    fn a_bundle_is_refused_as_a_whole() {
        let whole = [
            member(5, Kind::Request, b"ask"),
            member(7, Kind::OneWay, b"tell"),
        ]
        .concat();
        for end in 0..whole.len() {
            let is_boundary = end == MemberHeader::LEN + 3;
            assert_eq!(Members::parse(&whole[..end]).is_ok(), is_boundary, "{end}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(Members::parse(&longer).is_err());
        assert!(Members::parse(&member(5, Kind::Bundle, b"")).is_err());
    }
}
