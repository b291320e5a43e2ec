// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The content of a message of a peer that keeps no rule: bytes, or a bundle's members that are
//! right or nearly so.

use arbitrary::Arbitrary;
use smt_wire::Kind;

use super::said::Id;
use crate::kind_fields;

/// A message's kind and application bytes.
#[derive(Arbitrary, Debug)]
pub(super) enum Content {
    /// Bytes of a message of any kind, also of unknown kinds.
    Bytes { kind: u8, length: u16 },
    /// A part of a call.
    Part { request: Id, length: u16 },
    /// A bundle. `end` is mostly that of its last member.
    Members { members: Vec<Member>, end: u8 },
}

/// One member of a bundle.
#[derive(Arbitrary, Debug)]
pub(super) struct Member {
    id: Id,
    kind: u8,
    flags: u8,
    length: u8,
    /// The flaw of the member; mostly none, or no bundle would be taken.
    flaw: u8,
    first: u32,
    second: u32,
    /// The request of a part.
    request: Id,
}

impl Content {
    /// The kind: one of the five, or the next, which is unknown.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Bytes { kind, .. } => 1 + kind % 6,
            Self::Part { .. } => Kind::Part as u8,
            Self::Members { .. } => Kind::Bundle as u8,
        }
    }

    /// The application bytes.
    pub(super) fn body(&self, stripes_log2: u8) -> Vec<u8> {
        match self {
            Self::Bytes { length, .. } => vec![0x42; usize::from(*length) % LENGTH_MAX],
            Self::Part { request, length } => {
                let mut body = request.id(stripes_log2).0.to_be_bytes().to_vec();
                body.resize(8 + usize::from(*length) % LENGTH_MAX, 0x44);
                body
            }
            Self::Members { members, end } => {
                let members = members.iter().map(|member| member.bytes(stripes_log2));
                let mut body = members.collect::<Vec<_>>().concat();
                body.truncate(LENGTH_MAX);
                match end % 8 {
                    6 => drop(body.pop()),
                    7 => body.push(0),
                    _ => {}
                }
                body
            }
        }
    }
}

impl Member {
    /// Header and application bytes, whatever they say.
    fn bytes(&self, stripes_log2: u8) -> Vec<u8> {
        let length = u16::from(self.length);
        let kind = [1, 2, 3, Kind::Part as u8][usize::from(self.kind % 4)];
        let (kind, said) = match self.flaw % 16 {
            11 => (0, length),
            12 => (Kind::Bundle as u8, length),
            13 => (6, length),
            14 => (kind, length.saturating_sub(1)),
            15 => (kind, length + 1),
            _ => (kind, length),
        };
        let mut bytes = self.id.id(stripes_log2).0.to_be_bytes().to_vec();
        bytes.extend_from_slice(&[kind, said_flags(kind, self.flags)]);
        bytes.extend_from_slice(&said.to_be_bytes());
        let [first, second] = said_words(kind, [self.first, self.second]);
        bytes.extend_from_slice(&first.to_be_bytes());
        bytes.extend_from_slice(&second.to_be_bytes());
        let begin = bytes.len();
        if kind == Kind::Part as u8 {
            bytes.extend_from_slice(&self.request.id(stripes_log2).0.to_be_bytes());
        }
        bytes.resize(begin + usize::from(length), MEMBER_BYTE);
        bytes
    }
}

/// Flags that a kind has, or now and then any: most messages would be refused for others.
pub(super) fn said_flags(kind: u8, flags: u8) -> u8 {
    match flags >> 5 {
        0 => flags,
        _ => flags & kind_fields::flags_of(kind),
    }
}

/// The words behind the flags: numbers of parts are mostly small, as those are that may be right.
pub(super) fn said_words(kind: u8, [first, second]: [u32; 2]) -> [u32; 2] {
    let small = |number: u32| {
        if number >> 24 == 0 { number } else { number % 8 }
    };
    if kind == Kind::Part as u8 {
        [small(first), second]
    } else if kind == Kind::Reply as u8 {
        [first, small(second)]
    } else {
        [first, second]
    }
}

/// The byte that members' application bytes consist of, and no others.
pub(super) const MEMBER_BYTE: u8 = 0x43;
/// Longer messages take no other paths.
const LENGTH_MAX: usize = 40_000;
