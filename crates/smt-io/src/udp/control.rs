// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control messages beside a datagram (cmsg(3)), written and read with bounds checked.
//!
//! A message is a `cmsghdr` and its value, each padded to the header's alignment. Not here: the
//! meaning of the messages.
#![allow(
    trivial_numeric_casts,
    reason = "lengths of control messages are `size_t` in one C library and `socklen_t` in another"
)]

use crate::udp::socket_option::SocketOption;
use libc::{c_int, cmsghdr};

/// Room for the control messages of one call, aligned as the kernel's own.
#[repr(C, align(8))]
pub(super) struct ControlBuffer {
    bytes: [u8; CAPACITY],
    used: usize,
}

impl ControlBuffer {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; CAPACITY], used: 0 }
    }

    /// Appends a message.
    ///
    /// # Panics
    /// If the messages of one call outgrow the buffer; the caller's set of options is fixed and
    /// fits.
    pub(super) fn push(&mut self, option: SocketOption, value: &[u8]) {
        let end = self.used + space(value.len());
        assert!(end <= CAPACITY, "control messages fit their buffer");
        // SAFETY: all-zero bytes are a valid `cmsghdr` (some C libraries have padding fields, so it
        // cannot be built field by field).
        let mut header: cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (HEADER_BYTES + value.len()) as _;
        header.cmsg_level = option.level;
        header.cmsg_type = option.name;
        let slot = &mut self.bytes[self.used..end];
        // SAFETY: `slot` holds at least a header, and an unaligned write needs no more.
        unsafe { slot.as_mut_ptr().cast::<cmsghdr>().write_unaligned(header) };
        slot[HEADER_BYTES..HEADER_BYTES + value.len()].copy_from_slice(value);
        self.used = end;
    }

    /// The messages that were pushed, as bytes for the system.
    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// The room for the system to write messages to.
    pub(super) fn space(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The messages in the first `length` bytes, each as (level, type) and value.
    pub(super) fn read(&self, length: usize) -> Messages<'_> {
        Messages { rest: &self.bytes[..length.min(CAPACITY)] }
    }
}

/// Iterates over received control messages; ends at the first that is malformed.
pub(super) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = ((c_int, c_int), &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() < HEADER_BYTES {
            return None;
        }
        // SAFETY: `rest` holds at least a header, every bit pattern is a valid one, and an
        // unaligned read needs no more.
        let header = unsafe { self.rest.as_ptr().cast::<cmsghdr>().read_unaligned() };
        let end: usize = header.cmsg_len as _;
        let value = self.rest.get(HEADER_BYTES..end)?;
        self.rest = self.rest.get(space(value.len())..).unwrap_or_default();
        Some(((header.cmsg_level, header.cmsg_type), value))
    }
}

/// Bytes that a message with a value of `length` takes up, padding included.
const fn space(length: usize) -> usize {
    HEADER_BYTES + length.next_multiple_of(align_of::<cmsghdr>())
}

/// Bytes before a value; a multiple of the header's alignment.
const HEADER_BYTES: usize = size_of::<cmsghdr>().next_multiple_of(align_of::<cmsghdr>());
/// Bytes for all messages of one call: segment size 24, traffic class 24, local address 40.
const CAPACITY: usize = 128;

#[cfg(test)]
mod tests {
    use super::{CAPACITY, ControlBuffer, HEADER_BYTES, space};
    use crate::udp::socket_option::SocketOption;

    mod push {
        use super::{ControlBuffer, SocketOption};

        #[test]
        fn messages_read_back_in_order() {
            let mut buffer = ControlBuffer::new();
            buffer.push(SocketOption::new(1, 2), &[3; 2]);
            buffer.push(SocketOption::new(4, 5), &[6; 20]);
            let messages: Vec<_> = buffer.read(buffer.used).collect();
            assert_eq!(messages, [((1, 2), &[3_u8; 2][..]), ((4, 5), &[6_u8; 20][..])]);
        }

        #[test]
        fn layout_is_that_of_the_c_library() {
            for length in 0..=40 {
                // SAFETY: pure arithmetic.
                let expected = unsafe { libc::CMSG_SPACE(length) } as usize;
                assert_eq!(super::space(length as usize), expected);
            }
        }
    }

    mod read {
        use super::{CAPACITY, ControlBuffer, HEADER_BYTES, SocketOption, space};

        #[test]
        fn any_cut_yields_only_whole_messages() {
            let mut buffer = ControlBuffer::new();
            buffer.push(SocketOption::new(1, 2), &[3; 8]);
            for length in 0..HEADER_BYTES + 8 {
                assert_eq!(buffer.read(length).count(), 0, "cut at {length}");
            }
            assert_eq!(buffer.read(space(8)).count(), 1);
        }

        #[test]
        fn impossible_length_ends_the_iteration() {
            for length in [0, 1, HEADER_BYTES - 1, CAPACITY + 1, usize::MAX] {
                let mut buffer = ControlBuffer::new();
                buffer.push(SocketOption::new(1, 2), &[3; 8]);
                buffer.bytes[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
                assert_eq!(buffer.read(CAPACITY).count(), 0, "length {length}");
            }
        }
    }
}
