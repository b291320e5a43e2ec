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
use crate::failure::FailureMark;
use crate::field::{put, u16_at, u32_at, u64_at};
use crate::ids::MessageId;
use crate::inner_header::Kind;
use crate::kind_fields::{EncodedKindFields, KindFields};
use crate::part::PartMarks;

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
    /// As in [`crate::InnerHeader`].
    pub failure: Option<FailureMark>,
    /// As in [`crate::InnerHeader`].
    pub has_metadata: bool,
    /// As in [`crate::InnerHeader`].
    pub parts: PartMarks,
}

impl MemberHeader {
    /// Bytes of the header.
    pub const LEN: usize = 20;

    /// Writes the header.
    pub fn emit(&self, out: &mut [u8; Self::LEN]) {
        let fields = KindFields {
            deadline_us: self.deadline_us,
            reply_unscheduled: self.reply_unscheduled,
            failure: self.failure,
            has_metadata: self.has_metadata,
            parts: self.parts,
        };
        let fields = fields.encode(self.kind);
        put(out, field::ID, &self.id.0.to_be_bytes());
        out[field::KIND] = self.kind as u8;
        out[field::FLAGS] = fields.flags;
        put(out, field::LENGTH, &self.length.to_be_bytes());
        put(out, field::FIRST_OF_KIND, &fields.first.to_be_bytes());
        put(out, field::SECOND_OF_KIND, &fields.second.to_be_bytes());
    }

    fn kind(bytes: &[u8; Self::LEN]) -> Result<Kind, ParseError> {
        Kind::of(bytes[field::KIND])
            .filter(|kind| *kind != Kind::Bundle)
            .ok_or(ParseError::Malformed("member of an unknown kind"))
    }

    fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let kind = Self::kind(bytes)?;
        let encoded = EncodedKindFields {
            flags: bytes[field::FLAGS],
            first: u32_at(bytes, field::FIRST_OF_KIND),
            second: u32_at(bytes, field::SECOND_OF_KIND),
        };
        let fields = KindFields::decode(kind, encoded)?;
        Ok(Self {
            id: MessageId(u64_at(bytes, field::ID)),
            kind,
            length: u16_at(bytes, field::LENGTH),
            deadline_us: fields.deadline_us,
            reply_unscheduled: fields.reply_unscheduled,
            failure: fields.failure,
            has_metadata: fields.has_metadata,
            parts: fields.parts,
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
        let mut members = Self { bytes, at: 0, newcomers: 0 };
        if bytes.is_empty() {
            return Err(ParseError::Malformed("bundle without a member"));
        }
        let mut rest = members;
        while rest.at < bytes.len() {
            let kind = rest.skip_first()?;
            members.newcomers += usize::from(kind != Kind::Reply);
        }
        Ok(members)
    }

    /// How many of all its members the receiver must have room for: all but replies.
    pub fn newcomers(&self) -> usize {
        self.newcomers
    }

    /// Checks the first member without reading what a check does not need.
    fn skip_first(&mut self) -> Result<Kind, ParseError> {
        let header = self.bytes[self.at..].first_chunk::<{ MemberHeader::LEN }>();
        let header = header.ok_or(ParseError::Malformed("member that is cut short"))?;
        let kind = MemberHeader::kind(header)?;
        KindFields::check_flags(kind, header[field::FLAGS])?;
        let end = self.at + MemberHeader::LEN + usize::from(u16_at(header, field::LENGTH));
        if end > self.bytes.len() {
            return Err(ParseError::Malformed("member that is cut short"));
        }
        self.at = end;
        Ok(kind)
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
        (self.at < self.bytes.len()).then(|| self.split_first().ok()).flatten()
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        ID = 0..8;
        KIND = 8;
        FLAGS = 9;
        LENGTH = 10..12;
        FIRST_OF_KIND = 12..16;
        SECOND_OF_KIND = 16..20;
    }
}

const _: () = assert!(field::SECOND_OF_KIND.end == MemberHeader::LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const FAILED: FailureMark = FailureMark { code: 0xABCD_EF01, not_run: false };

    const MARKS: PartMarks = PartMarks { reply_in_parts: true, more: true, number: 11 };

    fn member(id: u64, kind: Kind, body: &[u8]) -> Vec<u8> {
        let header = MemberHeader {
            id: MessageId(id),
            kind,
            length: body.len() as u16,
            deadline_us: 7,
            reply_unscheduled: 9,
            failure: Some(FAILED),
            has_metadata: body == b"tell",
            parts: MARKS,
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
            member(8, Kind::Part, b"part"),
        ]
        .concat();
        let members: Vec<_> = Members::parse(&bytes).unwrap().collect();
        let ids: Vec<_> = members.iter().map(|(header, _)| header.id.0).collect();
        assert_eq!(ids, [5, 6, 7, 8]);
        assert_eq!(Members::parse(&bytes).unwrap().newcomers(), 3);
        let (ask, place) = members[0].clone();
        assert_eq!((ask.deadline_us, ask.reply_unscheduled), (7, 9));
        assert_eq!(&bytes[place], b"ask");
        let (reply, place) = members[1].clone();
        assert_eq!(reply.failure, Some(FAILED));
        assert_eq!((ask.failure, members[2].0.failure), (None, None));
        assert_eq!((reply.deadline_us, reply.reply_unscheduled), (0, 0));
        assert!(place.is_empty());
        let (tell, place) = members[2].clone();
        assert_eq!((tell.deadline_us, tell.reply_unscheduled), (7, 0));
        assert!(tell.has_metadata && !ask.has_metadata);
        assert_eq!(&bytes[place], b"tell");
        let numbers = members.iter().map(|(header, _)| header.parts.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 11, 0, 11]);
        assert!(ask.parts.reply_in_parts && members[3].0.parts.more);
    }

    #[test]
    fn a_bundle_is_refused_as_a_whole() {
        let whole = [member(5, Kind::Request, b"ask"), member(7, Kind::OneWay, b"tell")].concat();
        for end in 0..whole.len() {
            let is_boundary = end == MemberHeader::LEN + 3;
            assert_eq!(Members::parse(&whole[..end]).is_ok(), is_boundary, "{end}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(Members::parse(&longer).is_err());
        assert!(Members::parse(&member(5, Kind::Bundle, b"")).is_err());
    }

    // SMT [5.7-14]
    #[test]
    fn a_member_with_a_flag_that_its_kind_does_not_have_spoils_its_bundle() {
        let flags_of = [
            (Kind::Request, 0b1_1100),
            (Kind::Reply, 0b0_0111),
            (Kind::OneWay, 0b0_0100),
            (Kind::Part, 0b1_0000),
        ];
        for (kind, known) in flags_of {
            for flags in 0..=255 {
                let mut bytes = member(5, kind, b"text");
                bytes[9] = flags;
                let not_run_alone = flags & 3 == 2;
                let fits = flags & !known == 0 && !not_run_alone;
                assert_eq!(Members::parse(&bytes).is_ok(), fits, "{kind:?} {flags}");
            }
        }
    }
}
