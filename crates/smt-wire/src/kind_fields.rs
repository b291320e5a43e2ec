// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fields of a header whose meaning follows from the message's kind (SPEC §5.2): the flags, and
//! two numbers. They stand in an inner header and, in the same order, in a member's header.

use crate::error::ParseError;
use crate::failure::FailureMark;
use crate::inner_header::Kind;
use crate::part::PartMarks;

/// The values of the fields. Fields that the kind does not have are not written, and read as their
/// defaults.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct KindFields {
    pub(crate) deadline_us: u32,
    pub(crate) reply_unscheduled: u32,
    pub(crate) failure: Option<FailureMark>,
    pub(crate) has_metadata: bool,
    pub(crate) parts: PartMarks,
}

/// The fields as they travel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedKindFields {
    pub(crate) flags: u8,
    /// Offset 12: the deadline of a request or one-way message, the code of a reply that is a
    /// failure, or the number of a part.
    pub(crate) first: u32,
    /// Offset 16: the unscheduled bytes of a request's reply, or the number of a reply's parts.
    pub(crate) second: u32,
}

impl KindFields {
    pub(crate) fn encode(&self, kind: Kind) -> EncodedKindFields {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let metadata = flag(self.has_metadata, METADATA);
        let more = flag(self.parts.more, MORE);
        let (flags, first, second) = match kind {
            Kind::Request => {
                let reply_in_parts = flag(self.parts.reply_in_parts, REPLY_IN_PARTS);
                let flags = metadata | more | reply_in_parts;
                (flags, self.deadline_us, self.reply_unscheduled)
            }
            Kind::Reply => match self.failure {
                Some(mark) => {
                    let flags = metadata | FAILURE | flag(mark.not_run, NOT_RUN);
                    (flags, mark.code, self.parts.number)
                }
                None => (metadata, 0, self.parts.number),
            },
            Kind::OneWay => (metadata, self.deadline_us, 0),
            Kind::Bundle => (0, 0, 0),
            Kind::Part => (more, self.parts.number, 0),
        };
        EncodedKindFields { flags, first, second }
    }

    /// Checks the flags of a message of this kind.
    ///
    /// A flag changes what the application bytes mean. A receiver that ignored one that it does not
    /// know would deliver something else than was sent.
    ///
    /// # Errors
    /// `Malformed` if the kind has no such flag.
    pub(crate) fn check_flags(kind: Kind, flags: u8) -> Result<(), ParseError> {
        let known = KNOWN_FLAGS[usize::from(kind as u8)];
        let has_unknown = flags & !known != 0;
        match has_unknown || flags & (FAILURE | NOT_RUN) == NOT_RUN {
            false => Ok(()),
            true => Err(ParseError::Malformed("message with a flag that its kind does not have")),
        }
    }

    /// Reads the fields of a message of this kind.
    ///
    /// # Errors
    /// As of [`Self::check_flags`].
    pub(crate) fn decode(kind: Kind, encoded: EncodedKindFields) -> Result<Self, ParseError> {
        let EncodedKindFields { flags, first, second } = encoded;
        Self::check_flags(kind, flags)?;
        let is_failure = flags & FAILURE != 0;
        let has = |flag| flags & flag != 0;
        let mark = FailureMark { code: first, not_run: has(NOT_RUN) };
        let (deadline_us, reply_unscheduled, number) = match kind {
            Kind::Request => (first, second, 0),
            Kind::Reply => (0, 0, second),
            Kind::OneWay => (first, 0, 0),
            Kind::Bundle => (0, 0, 0),
            Kind::Part => (0, 0, first),
        };
        Ok(Self {
            deadline_us,
            reply_unscheduled,
            failure: is_failure.then_some(mark),
            has_metadata: has(METADATA),
            parts: PartMarks { reply_in_parts: has(REPLY_IN_PARTS), more: has(MORE), number },
        })
    }
}

pub(crate) const FAILURE: u8 = 0x01;
pub(crate) const NOT_RUN: u8 = 0x02;
pub(crate) const METADATA: u8 = 0x04;
pub(crate) const REPLY_IN_PARTS: u8 = 0x08;
pub(crate) const MORE: u8 = 0x10;

/// The flags that a message may have, by the number of its kind.
const KNOWN_FLAGS: [u8; 6] =
    [0, METADATA | MORE | REPLY_IN_PARTS, METADATA | FAILURE | NOT_RUN, METADATA, 0, MORE];

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KindFields = KindFields {
        deadline_us: 1,
        reply_unscheduled: 2,
        failure: Some(FailureMark { code: 3, not_run: true }),
        has_metadata: true,
        parts: PartMarks { reply_in_parts: true, more: true, number: 4 },
    };

    fn through(kind: Kind) -> KindFields {
        KindFields::decode(kind, ALL.encode(kind)).unwrap()
    }

    // SMT [5.2-5], [5.9-2]
    #[test]
    fn a_kind_has_its_own_fields_and_no_others() {
        let none = KindFields::default();
        let marks = |reply_in_parts, more, number| PartMarks { reply_in_parts, more, number };
        let request = KindFields { failure: None, parts: marks(true, true, 0), ..ALL };
        let reply = KindFields {
            failure: ALL.failure,
            has_metadata: true,
            parts: marks(false, false, 4),
            ..none
        };
        let one_way = KindFields { deadline_us: 1, has_metadata: true, ..none };
        let part = KindFields { parts: marks(false, true, 4), ..none };
        assert_eq!(through(Kind::Request), request);
        assert_eq!(through(Kind::Reply), reply);
        assert_eq!(through(Kind::OneWay), one_way);
        assert_eq!(through(Kind::Bundle), none);
        assert_eq!(through(Kind::Part), part);
    }

    // SMT [5.2-5], [5.2-6]
    #[test]
    fn a_flag_that_a_kind_does_not_have_is_refused() {
        let allowed = |kind, flags: u8| match kind {
            Kind::Request => flags & !(4 | 8 | 16) == 0,
            Kind::Reply => [0, 1, 3].contains(&(flags & !4)),
            Kind::OneWay => flags & !4 == 0,
            Kind::Bundle => flags == 0,
            Kind::Part => flags & !16 == 0,
        };
        for kind in (1..=5).map(|kind| Kind::of(kind).unwrap()) {
            for flags in 0..=255 {
                let encoded = EncodedKindFields { flags, first: 0, second: 0 };
                let is_taken = KindFields::decode(kind, encoded).is_ok();
                assert_eq!(is_taken, allowed(kind, flags), "{kind:?} {flags}");
            }
        }
    }
}
