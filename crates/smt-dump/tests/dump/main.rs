// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures as lines and as objects.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls_in_parts;
mod conversation;
mod damaged_captures;
mod data_beyond_its_message;
mod unread_frames;
