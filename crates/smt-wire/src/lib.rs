// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT packets as bytes: every field that travels, at its place (SPEC §3, §5, §6, §8, §12).
//!
//! 1. [`parse`] splits the first packet off a datagram and names its type: a [`Packet`].
//! 2. A packet's fields are copied out; its payload, cookie and lists stay views of the datagram.
//! 3. `emit` of the same struct writes the bytes back, into a buffer that the caller owns.
//!
//! Beside the packets: the message's [`InnerHeader`], the handshake's [`Params`] and
//! [`FlightBody`], and the arithmetic of the record stream ([`Geometry`]).
//!
//! Nothing here allocates, seals, opens, keeps state or knows the time, and nothing that is
//! parsed is to be believed: tags and records are checked by the crates above. Parsing never
//! panics; `emit` panics where the *caller* hands over what cannot be put on the wire.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod body;
mod bundle;
mod control;
mod cookie;
mod data;
mod early_data;
mod entry;
mod error;
mod failure;
mod field;
mod flight;
mod foreign_words;
mod handshake;
mod ids;
mod inner_header;
mod kind_fields;
pub mod layout;
mod limits;
mod list;
mod metadata;
pub mod native;
mod packet;
mod packet_type;
mod params;
mod params_error;
mod part;
mod prefix;
mod reset;
mod shard;
mod stream;
mod unavailable;
mod version_answer;

pub use body::Body;
pub use bundle::{MemberHeader, Members};
pub use control::{Control, ControlHeader};
pub use cookie::Cookie;
pub use data::{Data, DataHeader};
pub use early_data::{EARLY_CALLS_MAX, early_requests};
pub use entry::{Abort, AbortCode, Ack, AssociationFields, Grant, PartWindow, Resend, TO_THE_END};
pub use error::ParseError;
pub use failure::FailureMark;
pub use flight::FlightBody;
pub use foreign_words::Harmless;
pub use handshake::Handshake;
pub use ids::{ControlNumber, MessageId, SessionIndex};
pub use inner_header::{InnerHeader, Kind};
pub use limits::*;
pub use list::{Entry, List, ListIter};
pub use metadata::{MetadataEntries, is_name as is_metadata_name};
pub use packet::{Packet, parse};
pub use packet_type::{PacketType, UnknownPacketType};
pub use params::{KeyExchange, Params, Suites};
pub use params_error::ParamsError;
pub use part::{PART_PREFIX_LEN, PartMarks, request_of_part};
pub use reset::Reset;
pub use shard::Shard;
pub use stream::{Geometry, Record};
pub use unavailable::Unavailable;
pub use version_answer::VersionAnswer;
