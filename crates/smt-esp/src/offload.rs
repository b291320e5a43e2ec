// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Segmentation before packets are sealed, and coalescing after they are opened.
//!
//! A super-packet is a packet that is longer than its network takes, with a word on how to cut it:
//! an [`Offload`], which is what a virtio-net header says (virtio 1.2 §5.1.6). A sender's stack
//! makes super-packets, and [`Segments`] cuts them. A receiver's [`Coalescer`] makes them again,
//! by the rules of Linux's GRO.

mod candidate;
mod coalesce;
mod header;
mod segment;

pub use coalesce::Coalescer;
pub use header::{Checksum, MalformedOffload, Offload, SegmentKind, Segmentation};
pub use segment::Segments;

/// Offsets and bits of TCP's header (RFC 9293 §3.1) and UDP's.
pub(crate) mod transport {
    pub(crate) const TCP_HEADER_LEN: usize = 20;
    pub(crate) const TCP_SEQUENCE: usize = 4;
    pub(crate) const TCP_DATA_OFFSET: usize = 12;
    pub(crate) const TCP_FLAGS: usize = 13;
    pub(crate) const TCP_CHECKSUM: usize = 16;
    pub(crate) const TCP_URGENT: usize = 18;
    pub(crate) const FIN: u8 = 0x01;
    pub(crate) const SYN: u8 = 0x02;
    pub(crate) const RST: u8 = 0x04;
    pub(crate) const PSH: u8 = 0x08;
    pub(crate) const URG: u8 = 0x20;
    pub(crate) const CWR: u8 = 0x80;

    pub(crate) const UDP_HEADER_LEN: usize = 8;
    pub(crate) const UDP_LENGTH: usize = 4;
    pub(crate) const UDP_CHECKSUM: usize = 6;

    pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
        bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
        u16::from_be_bytes([bytes[at], bytes[at + 1]])
    }

    pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }
}
