// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host's half of a NIC that seals SMT's records and cuts segments (`smt-nic` is the device).
//!
//! ```text
//!   Batch ─▶ segments ─▶ queue of its message ─▶ context with that key: create, reuse, resync
//!                             │                        │ none, or not worth it
//!                             ▼                        ▼
//!                        descriptors             records sealed here
//!                             └────────▶ ring ◀────────┘
//!   completion with an error ─▶ records sealed here, posted again without a context
//! ```
//!
//! 1. All segments of a message go through one queue, and a flow context belongs to one queue. The
//!    device executes a queue in order, so no segment of another queue can come between a resync
//!    and the segment that it is for. A context that queues share has no such order, and seals
//!    records under the numbers of others (SMT paper §4.4.2).
//! 2. A context counts its record number by itself. The driver knows the count, and resyncs only
//!    when a segment begins with another number.
//! 3. The offload is opportunistic: parts of records, small segments, suites that the device lacks,
//!    and sessions for which it has no room are sealed here. The bytes are the same.
//! 4. The bytes of a segment are the driver's own until the device has answered. A segment that the
//!    device refused leaves again with the same bytes. A reset loses all that is under way, for
//!    nobody knows whether it has left; the transport asks for what is missing.
//!
//! 5. Receiving keys become receive contexts of the device, which opens records that lie whole in
//!    an arrival. All others arrive as they came, and are opened by the core.
//!
//! 6. The device is told of keys that were installed and removed with all that is sent, and by a
//!    carrier before packets arrive ([`Driver::follow_keys`]).
//!
//! 7. Batches under an association of PSP become segments that the device seals packet by packet,
//!    or software where it has no room ([`NicAssociations`]). Nothing of them leaves in the clear,
//!    and no IV is used twice.
//!
//! [`Driver`] has no I/O, clock or randomness; its caller turns the device. [`NicCarrier`] is a
//! carrier made of both, over one that moves IP packets.
#![forbid(unsafe_code)]

mod arrived_packet;
mod associations;
mod carrier;
mod config;
mod driver;
mod ended_associations;
mod flow_contexts;
mod host_regions;
mod ip_packet;
mod keys;
mod psp_contexts;
mod psp_sending;
mod receive_contexts;
mod receive_ring;
mod segment;
mod software_sealing;
mod statistics;
mod transmit_ring;

pub use arrived_packet::{ArrivedPacket, OpenedPacket, OpenedRecords};
pub use associations::NicAssociations;
pub use carrier::NicCarrier;
pub use config::DriverConfig;
pub use driver::Driver;
pub use ip_packet::{NativePacket, OutgoingAddresses, PacketError};
pub use keys::NicKeys;
pub use statistics::DriverStatistics;
