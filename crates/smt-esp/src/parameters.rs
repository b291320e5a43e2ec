// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agreement of the two ends of an association.

use std::net::IpAddr;

use crate::lifetime::Lifetime;
use crate::limits::{DEFAULT_WINDOW_WIDTH, ESP_UDP_PORT};
use crate::selector::Selectors;
use crate::suite::KeyMaterial;
use crate::tunnel::TunnelHeader;

/// The part of an IP packet that ESP protects: its payload, or all of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// The payload; the IP header stays (RFC 4303 §3.1.1).
    Transport,
    /// The whole packet, behind an outer header (RFC 4303 §3.1.2).
    Tunnel(TunnelHeader),
}

/// ESP in UDP, which passes address translators (RFC 3948).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Encapsulation {
    /// The port that a packet out is sent from.
    pub local_port: u16,
    /// The port that a packet out is sent to. A packet in may come from any.
    pub remote_port: u16,
}

impl Default for Encapsulation {
    fn default() -> Self {
        Self { local_port: ESP_UDP_PORT, remote_port: ESP_UDP_PORT }
    }
}

/// The agreement of the two ends of an association, for one direction.
pub struct Parameters {
    /// The receiver's choice, 256 or more (RFC 4303 §2.1).
    pub spi: u32,
    /// Suite and keys; in no other association.
    pub key: KeyMaterial,
    /// Transport or tunnel.
    pub mode: Mode,
    /// ESP in UDP.
    pub encapsulation: Option<Encapsulation>,
    /// Sequence numbers of 64 bits (RFC 4303 §2.2.1).
    pub extended_numbers: bool,
    /// How long the association may be used.
    pub lifetime: Lifetime,
    /// The packets that it is for.
    pub selectors: Selectors,
    /// The first number, 1 for a new association. An association that moves to another process
    /// goes on beyond all numbers that may have been used: packets out must never share one, and
    /// packets in with a lower one are taken for replayed.
    pub first_number: u64,
    /// Packets in: the width of the replay window, in packets, in
    /// [`WINDOW_WIDTHS`](crate::limits::WINDOW_WIDTHS).
    pub replay_window: u32,
    /// Packets in: the address that they come to, if the SPI alone does not tell the association
    /// (RFC 4301 §4.1).
    pub local: Option<IpAddr>,
    /// Packets in: the address that they come from, if it matters.
    pub remote: Option<IpAddr>,
}

impl Parameters {
    /// Parameters for any packet, without lifetime, with numbers of 32 bits.
    #[must_use]
    pub fn new(spi: u32, key: KeyMaterial, mode: Mode) -> Self {
        Self {
            spi,
            key,
            mode,
            encapsulation: None,
            extended_numbers: false,
            lifetime: Lifetime::default(),
            selectors: Selectors::default(),
            first_number: 1,
            replay_window: DEFAULT_WINDOW_WIDTH,
            local: None,
            remote: None,
        }
    }
}

/// Why parameters are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParametersError {
    /// SPIs below 256 are reserved.
    #[error("the SPI {0} is reserved")]
    Spi(u32),
    /// The first number is none, or beyond the last.
    #[error("{0} is no sequence number of the association")]
    FirstNumber(u64),
    /// The width is not in [`WINDOW_WIDTHS`](crate::limits::WINDOW_WIDTHS).
    #[error("a replay window of {0} packets")]
    ReplayWindow(u32),
    /// The two addresses of a tunnel are of different versions.
    #[error("the ends of the tunnel are of different IP versions")]
    TunnelAddresses,
    /// Another association has the same SPI and addresses.
    #[error("the SPI {0:#010x} is in use")]
    InUse(u32),
}
