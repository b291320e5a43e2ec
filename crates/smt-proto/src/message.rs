// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages on their way: requests, replies and one-way messages of either side (SPEC §5).
//!
//! 1. `client_message` is what this side initiated, `server_rpc` what the peer initiated.
//! 2. `outgoing` waits to be sent; `transmitting` seals records as they leave, in the packets that
//!    `packetizer` chooses.
//! 3. `incoming` opens records into the `body`; `partial_record` holds one record until it is
//!    whole, `reassembly` all of a message, and `record_bitmap` tells which have opened.
//! 4. `arrived_data` is a DATA packet, with the carrier's word on what it has opened; `reordered`
//!    keeps packets that came before record 0 of their message.

pub(crate) mod arrived_data;
pub(crate) mod body;
pub(crate) mod client_message;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod part_reader;
pub(crate) mod part_writer;
pub(crate) mod partial_record;
pub(crate) mod reassembly;
pub(crate) mod record_bitmap;
pub(crate) mod reordered;
pub(crate) mod server_rpc;
pub(crate) mod transmitting;
