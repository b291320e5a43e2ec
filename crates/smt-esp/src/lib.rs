// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP, IP's encryption of packets (RFC 4303), without I/O, clock or randomness.
//!
//! 1. [`Parameters`] are what two ends have agreed on; [`OutboundAssociation`] and
//!    [`InboundAssociation`] seal and open packets by them.
//! 2. A [`Database`] has a host's policies and associations and picks among them (RFC 4301).
//! 3. [`OutboundPath`] cuts super-packets into segments before they are sealed, and
//!    [`InboundPath`] coalesces packets once they are opened: a stack above it sees the packets
//!    of a network card with segmentation offload ([`offload`]).
//!
//! Packets stay in their caller's memory ([`PacketBuffer`]); no packet allocates. Times are since
//! a beginning that the caller chooses. Nothing from the network panics, and no window moves
//! before a packet has authenticated.
//!
//! | what | source |
//! |---|---|
//! | packet format, padding, dummy packets | RFC 4303 §2 |
//! | transport and tunnel mode, place among IPv6 extension headers | RFC 4303 §3.1 |
//! | sequence numbers, extended ones, replay window | RFC 4303 §3.3.3, §3.4.3, appendix A |
//! | AES-GCM, AES-CCM, NULL, HMAC-SHA-256-128 | RFC 4106, RFC 4309, RFC 2410, RFC 4868 |
//! | selectors, policies, lifetimes | RFC 4301 §4.4, §5 |
//! | outer headers, congestion marks | RFC 4301 §5.1.2, RFC 6040 |
//! | ESP in UDP | RFC 3948 |
//!
//! `docs/ESP.md` tells what is left out.
#![forbid(unsafe_code)]

mod buffer;
mod checksum;
mod cipher;
mod database;
mod error;
mod inbound;
mod ip;
mod lifetime;
pub mod limits;
mod locate;
mod numbers;
pub mod offload;
mod outbound;
mod parameters;
mod path;
mod selector;
mod statistics;
mod suite;
mod trailer;
mod tunnel;
mod udp;
mod window;

pub use buffer::{HEADROOM, PacketBuffer, TAILROOM};
pub use database::{Action, Arrival, Database, Departure, OutboundId, Policy};
pub use error::{OpenError, SealError};
pub use inbound::{InboundAssociation, Opened};
pub use ip::MalformedIp;
pub use lifetime::{Lifetime, Limit};
pub use locate::{Carried, EspPlace};
pub use outbound::{OutboundAssociation, Sealed};
pub use parameters::{Encapsulation, Mode, Parameters, ParametersError};
pub use path::{InboundPath, OutboundPath};
pub use selector::{Addresses, Flow, Selectors};
pub use statistics::{AssociationStatistics, Statistics};
pub use suite::{KeyMaterial, KeyMaterialLength, Suite};
pub use tunnel::{DontFragment, TunnelHeader};
pub use udp::{KEEPALIVE, NON_ESP_MARKER, UdpPayload};
