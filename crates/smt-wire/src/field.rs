// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Integers at named places: the one place that indexes bytes.
//!
//! Readers are called with a constant range and an array, or a slice whose length was compared
//! before; so they cannot panic on what the network sent. `put` panics where a caller's buffer is
//! too short.

use core::ops::Range;

pub(crate) fn u16_at(bytes: &[u8], field: Range<usize>) -> u16 {
    u16::from_be_bytes(array_at(bytes, field))
}

pub(crate) fn u32_at(bytes: &[u8], field: Range<usize>) -> u32 {
    u32::from_be_bytes(array_at(bytes, field))
}

pub(crate) fn u64_at(bytes: &[u8], field: Range<usize>) -> u64 {
    u64::from_be_bytes(array_at(bytes, field))
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], field: Range<usize>) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[field]);
    array
}

pub(crate) fn put(out: &mut [u8], field: Range<usize>, value: &[u8]) {
    out[field].copy_from_slice(value);
}
