// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transmit descriptors: the words of a host to its device, 48 bytes each, big-endian.
//!
//! | off | size | field | in |
//! |--:|--:|:--|:--|
//! | 0 | 1 | kind | all: 1 SEGMENT, 2 CREATE, 3 RESYNC, 4 DESTROY, 5 FENCE, 6 CREATE_RECEIVE, 7 DESTROY_RECEIVE |
//! | 1 | 1 | flags | SEGMENT: 0x01 checksums |
//! | 2 | 2 | header bytes | SEGMENT: from the IP header up to the payload |
//! | 4 | 2 | stride | SEGMENT: payload bytes of each packet but the last; 0 leaves one packet |
//! | 6 | 2 | reserved | zero |
//! | 8 | 4 | context | SEGMENT (0: no engine), all others but FENCE |
//! | 12 | 4 | payload bytes | SEGMENT |
//! | 16 | 8 | header address | SEGMENT; in CREATE, CREATE_RECEIVE that of the context block |
//! | 24 | 8 | payload address | SEGMENT |
//! | 32 | 8 | number | RESYNC: the next record number |
//! | 40 | 8 | cookie | all: comes back in the completion |
//!
//! A descriptor is parsed from a copy. Nothing in it is believed: what does not fit is an error in
//! its completion ([`crate::completion::Status`]).

use crate::big_endian::{u16_at, u32_at, u64_at};
use crate::segmentation::{HEADER_MAX, SEGMENT_MAX};

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: usize = 48;

/// A descriptor, parsed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Descriptor {
    /// The work.
    pub work: Work,
    /// A value of the host that comes back in the completion.
    pub cookie: u64,
}

/// The work that a descriptor asks for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Work {
    /// Send a segment.
    Segment(SegmentWork),
    /// Make a context of the block at this address ([`crate::engine::CONTEXT_BLOCK_BYTES`]).
    Create {
        /// The context's name, chosen by the host; not 0.
        context: ContextId,
        /// The block's address.
        block: u64,
    },
    /// Set a context's record number.
    Resync {
        /// The context.
        context: ContextId,
        /// The number of the next record.
        number: u64,
    },
    /// Erase a context.
    Destroy {
        /// The context.
        context: ContextId,
    },
    /// Complete when all before it in the queue have completed.
    Fence,
    /// Make a receive context of the block at this address ([`crate::tls::receive`]).
    CreateReceive {
        /// The context's name, chosen by the host; not 0. Receive contexts have names of their own.
        context: ContextId,
        /// The block's address.
        block: u64,
    },
    /// Erase a receive context.
    DestroyReceive {
        /// The context.
        context: ContextId,
    },
}

/// A segment that is to be sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SegmentWork {
    /// The context whose engine protects it, if one does.
    pub context: Option<ContextId>,
    /// Whether the device computes checksums.
    pub checksums: bool,
    /// Bytes of the headers that each packet gets a copy of.
    pub header_bytes: u16,
    /// Payload bytes of each packet but the last; 0 leaves one packet.
    pub stride: u16,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// The address of the headers.
    pub header: u64,
    /// The address of the payload.
    pub payload: u64,
}

/// The name of a context, chosen by the host.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContextId(pub u32);

/// A descriptor that asks for nothing that the device knows, or for too much.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct BadDescriptor {
    pub(crate) cookie: u64,
}

impl Descriptor {
    /// Reads a descriptor.
    pub(crate) fn parse(bytes: &[u8; DESCRIPTOR_BYTES]) -> Result<Self, BadDescriptor> {
        let cookie = u64_at(bytes, 40);
        let work = Self::parse_work(bytes).ok_or(BadDescriptor { cookie })?;
        Ok(Self { work, cookie })
    }

    fn parse_work(bytes: &[u8; DESCRIPTOR_BYTES]) -> Option<Work> {
        let named = u32_at(bytes, 8);
        let context = (named != 0).then_some(ContextId(named));
        match bytes[0] {
            SEGMENT => {
                let work = SegmentWork {
                    context,
                    checksums: bytes[1] & CHECKSUMS != 0,
                    header_bytes: u16_at(bytes, 2),
                    stride: u16_at(bytes, 4),
                    payload_bytes: u32_at(bytes, 12),
                    header: u64_at(bytes, 16),
                    payload: u64_at(bytes, 24),
                };
                work.is_possible().then_some(Work::Segment(work))
            }
            CREATE => Some(Work::Create { context: context?, block: u64_at(bytes, 16) }),
            RESYNC => Some(Work::Resync { context: context?, number: u64_at(bytes, 32) }),
            DESTROY => Some(Work::Destroy { context: context? }),
            FENCE => Some(Work::Fence),
            CREATE_RECEIVE => {
                Some(Work::CreateReceive { context: context?, block: u64_at(bytes, 16) })
            }
            DESTROY_RECEIVE => Some(Work::DestroyReceive { context: context? }),
            _ => None,
        }
    }

    /// Writes the descriptor, as a driver does.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[40..].copy_from_slice(&self.cookie.to_be_bytes());
        let (kind, context) = match self.work {
            Work::Segment(work) => {
                bytes[1] = if work.checksums { CHECKSUMS } else { 0 };
                bytes[2..4].copy_from_slice(&work.header_bytes.to_be_bytes());
                bytes[4..6].copy_from_slice(&work.stride.to_be_bytes());
                bytes[12..16].copy_from_slice(&work.payload_bytes.to_be_bytes());
                bytes[16..24].copy_from_slice(&work.header.to_be_bytes());
                bytes[24..32].copy_from_slice(&work.payload.to_be_bytes());
                (SEGMENT, work.context)
            }
            Work::Create { context, block } => {
                bytes[16..24].copy_from_slice(&block.to_be_bytes());
                (CREATE, Some(context))
            }
            Work::Resync { context, number } => {
                bytes[32..40].copy_from_slice(&number.to_be_bytes());
                (RESYNC, Some(context))
            }
            Work::Destroy { context } => (DESTROY, Some(context)),
            Work::Fence => (FENCE, None),
            Work::CreateReceive { context, block } => {
                bytes[16..24].copy_from_slice(&block.to_be_bytes());
                (CREATE_RECEIVE, Some(context))
            }
            Work::DestroyReceive { context } => (DESTROY_RECEIVE, Some(context)),
        };
        bytes[0] = kind;
        let context = context.map_or(0, |context| context.0);
        bytes[8..12].copy_from_slice(&context.to_be_bytes());
        bytes
    }
}

impl SegmentWork {
    fn is_possible(&self) -> bool {
        let payload = self.payload_bytes as usize;
        usize::from(self.header_bytes) <= HEADER_MAX && payload > 0 && payload <= SEGMENT_MAX
    }
}

const SEGMENT: u8 = 1;
const CREATE: u8 = 2;
const RESYNC: u8 = 3;
const DESTROY: u8 = 4;
const FENCE: u8 = 5;
const CREATE_RECEIVE: u8 = 6;
const DESTROY_RECEIVE: u8 = 7;
/// The flag by which the device computes checksums.
const CHECKSUMS: u8 = 0x01;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use std::vec;

    fn segment() -> SegmentWork {
        SegmentWork {
            context: Some(ContextId(7)),
            checksums: true,
            header_bytes: 64,
            stride: 1_400,
            payload_bytes: 60_000,
            header: 0x0102_0304_0506_0708,
            payload: 0x1112_1314_1516_1718,
        }
    }

    #[test]
    fn every_descriptor_is_read_as_it_was_written() {
        let context = ContextId(9);
        let works = vec![
            Work::Segment(segment()),
            Work::Segment(SegmentWork { context: None, checksums: false, stride: 0, ..segment() }),
            Work::Create { context, block: 5 },
            Work::Resync { context, number: u64::MAX },
            Work::Destroy { context },
            Work::Fence,
            Work::CreateReceive { context, block: 6 },
            Work::DestroyReceive { context },
        ];
        for work in works {
            let descriptor = Descriptor { work, cookie: 77 };
            assert_eq!(Descriptor::parse(&descriptor.to_bytes()), Ok(descriptor));
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_with_its_cookie() {
        for kind in [0, 8, 255] {
            let mut bytes = [0; DESCRIPTOR_BYTES];
            bytes[0] = kind;
            bytes[47] = 3;
            assert_eq!(Descriptor::parse(&bytes), Err(BadDescriptor { cookie: 3 }));
        }
    }

    #[test]
    fn a_segment_that_is_empty_or_too_long_is_refused() {
        for (header_bytes, payload_bytes) in [(64, 0), (64, 65_537), (121, 100), (64, u32::MAX)] {
            let work = SegmentWork { header_bytes, payload_bytes, ..segment() };
            let descriptor = Descriptor { work: Work::Segment(work), cookie: 0 };
            assert!(Descriptor::parse(&descriptor.to_bytes()).is_err());
        }
    }

    #[test]
    fn a_context_without_a_name_is_refused() {
        for kind in [CREATE, RESYNC, DESTROY, CREATE_RECEIVE, DESTROY_RECEIVE] {
            let mut bytes = [0; DESCRIPTOR_BYTES];
            bytes[0] = kind;
            assert!(Descriptor::parse(&bytes).is_err());
        }
    }
}
