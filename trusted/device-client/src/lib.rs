// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a trusted device, and two ways to have one.
//!
//! [`Device`] is what systems are written against, and [`AppendOnly`] what append-only memory is.
//! [`Library`] is the attestation kernel in the caller's process, [`Client`] a connection to the
//! device process of this host (`smt-trusted device run`), whose keys the caller cannot read.
//!
//! 1. [`Client::connect`] gets memory from the device, which both processes map: a page of
//!    registers, a ring of requests and a ring of answers ([`layout`]).
//! 2. Each [`Request`] is a frame of the first ring, each [`Answer`] one of the second.
//! 3. The two sides wake each other only when the other one sleeps, so a batch of requests costs
//!    few system calls.
//!
//! Rings, frames and mapping are also the device's own ([`Reader`], [`Writer`], [`SharedMemory`]).
//! They trust the other side with nothing: each word is fetched once, into private memory, before
//! it is looked at.

mod answer;
mod client;
mod device;
mod error;
#[cfg(feature = "hostile")]
pub mod hostile;
pub mod layout;
mod library;
mod logs;
mod request;
mod ring;
mod shared_memory;
mod statement;
mod wake;

pub use answer::Answer;
pub use client::Client;
pub use device::{AppendOnly, Claimed, Device, SecretNumber};
pub use error::{DeviceError, Fault, LogMisuse};
pub use library::Library;
pub use logs::{LOGS_MAX, Logs, Sealing};
pub use request::{Request, answer_to};
pub use ring::{Corrupt, FRAME_LEN_MAX, Reader, Writer};
pub use shared_memory::SharedMemory;
pub use statement::{End, EntryKind, LogId, STATEMENT_LEN, Statement, is_of_log};
pub use wake::{Hello, Wake};

/// The longest message that a device process attests, signs, checks or accepts, in bytes.
pub const MESSAGE_LEN_MAX: usize = FRAME_LEN_MAX - 128;
