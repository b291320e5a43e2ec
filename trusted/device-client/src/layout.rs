// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shared memory of a connection, as words of 64 bits in the processor's order.
//!
//! The first page has the registers (the paper's REGs page); its fields that both sides write are
//! in cache lines of their own. Two rings follow: requests of the host, answers of the device.
//!
//! | word | written by | what |
//! |---|---|---|
//! | 0 | host | requests written: words since the connection began |
//! | 8 | device | requests read |
//! | 16 | device | answers written |
//! | 24 | host | answers read |
//! | 32 | device | 1 while the device sleeps, and wants to be woken |
//! | 40 | host | 1 while the host sleeps |
//! | 512 | host | ring of requests, 65,536 words |
//! | 66,048 | device | ring of answers, 65,536 words |
//!
//! A frame is a word with the length of its body in bytes (lower half) and its tag (upper half),
//! and the body, padded to words. An answer has its request's tag.

/// Words that the host has written into the ring of requests.
pub const REQUESTS_WRITTEN: usize = 0;
/// Words that the device has read from it.
pub const REQUESTS_READ: usize = 8;
/// Words that the device has written into the ring of answers.
pub const ANSWERS_WRITTEN: usize = 16;
/// Words that the host has read from it.
pub const ANSWERS_READ: usize = 24;
/// Whether the device sleeps.
pub const DEVICE_SLEEPS: usize = 32;
/// Whether the host sleeps.
pub const HOST_SLEEPS: usize = 40;
/// The first word of the ring of requests.
pub const REQUESTS: usize = 512;
/// Words of a ring, a power of two.
pub const RING_WORDS: usize = 1 << 16;
/// The first word of the ring of answers.
pub const ANSWERS: usize = REQUESTS + RING_WORDS;
/// Words of the whole memory.
pub const WORDS: usize = ANSWERS + RING_WORDS;
