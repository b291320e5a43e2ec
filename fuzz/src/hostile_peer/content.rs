// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The content of a message of a peer that keeps no rule: bytes, or a bundle's members that are
//! right or nearly so.

use arbitrary::Arbitrary;
use smt_wire::Kind;

use super::said::Id;

/// A message's kind and application bytes.
#[derive(Arbitrary, Debug)]
pub(super) enum Content {
    /// Bytes of a message of any kind, also of unknown kinds.
    Bytes { kind: u8, length: u16 },
    /// A bundle. `end` is mostly that of its last member.
    Members { members: Vec<Member>, end: u8 },
}

/// One member of a bundle.
#[derive(Arbitrary, Debug)]
pub(super) struct Member {
    id: Id,
    kind: u8,
    reserved: u8,
    length: u8,
    /// The flaw of the member; mostly none, or no bundle would be taken.
    flaw: u8,
    deadline_us: u32,
    reply_unscheduled: u32,
}

impl Content {
    /// The kind: one of the four, or one of the next two, which are unknown.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Bytes { kind, .. } => 1 + kind % 6,
            Self::Members { .. } => Kind::Bundle as u8,
        }
    }

    /// The application bytes.
    pub(super) fn body(&self, stripes_log2: u8) -> Vec<u8> {
        match self {
            Self::Bytes { length, .. } => vec![0x42; usize::from(*length) % LENGTH_MAX],
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
        let kind = 1 + self.kind % 3;
        let (kind, said) = match self.flaw % 16 {
            11 => (0, length),
            12 => (Kind::Bundle as u8, length),
            13 => (5, length),
            14 => (kind, length.saturating_sub(1)),
            15 => (kind, length + 1),
            _ => (kind, length),
        };
        let mut bytes = self.id.id(stripes_log2).0.to_be_bytes().to_vec();
        bytes.extend_from_slice(&[kind, self.reserved]);
        bytes.extend_from_slice(&said.to_be_bytes());
        bytes.extend_from_slice(&self.deadline_us.to_be_bytes());
        bytes.extend_from_slice(&self.reply_unscheduled.to_be_bytes());
        bytes.resize(bytes.len() + usize::from(length), MEMBER_BYTE);
        bytes
    }
}

/// The byte that members' application bytes consist of, and no others.
pub(super) const MEMBER_BYTE: u8 = 0x43;
/// Longer messages take no other paths.
const LENGTH_MAX: usize = 40_000;
