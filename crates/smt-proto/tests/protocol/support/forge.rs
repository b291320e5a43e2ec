// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes that an attacker makes to the bytes of a packet.

use std::ops::Range;

pub const EPOCH: usize = 2;
pub const SESSION: Range<usize> = 12..20;
pub const ID: Range<usize> = 20..28;
pub const MESSAGE_LENGTH: Range<usize> = 28..32;
pub const OFFSET: Range<usize> = 32..36;
pub const PAYLOAD: usize = 36;

pub fn set_u32(bytes: &mut [u8], place: Range<usize>, value: u32) {
    bytes[place].copy_from_slice(&value.to_be_bytes());
}

pub fn set_u64(bytes: &mut [u8], place: Range<usize>, value: u64) {
    bytes[place].copy_from_slice(&value.to_be_bytes());
}

pub fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0x40;
    bytes
}
