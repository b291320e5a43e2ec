// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One offloaded connection: its keys, its numbers, and how much they have protected.

use alloc::boxed::Box;

use super::admission::Removed;
use super::header_key::HeaderKey;
use super::id_table::ConnectionId;
use super::number_window::{Freshness, NumberWindow};
use super::packet_key::PacketKey;
use super::recency::Link;
use super::suite::{HeaderProtectionKey, PhaseKey};

/// Ids of one connection that the device knows at once.
pub const IDS_OF_CONNECTION_MAX: usize = 8;

/// The keys of a connection, as the host hands them to the device.
#[derive(Clone, Debug)]
pub struct ConnectionKeys {
    /// The peer seals by it, in the present key phase.
    pub receive: PhaseKey,
    /// The peer will seal by it after its next key update (RFC 9001 §6), if it is known.
    pub receive_next: Option<PhaseKey>,
    /// The peer's header protection.
    pub receive_header: HeaderProtectionKey,
    /// This side seals by it.
    pub transmit: PhaseKey,
    /// This side's header protection.
    pub transmit_header: HeaderProtectionKey,
    /// The key phase of both: 0 for the keys of the handshake, one more with each update.
    pub generation: u64,
    /// The largest number that the host's software has opened, if any: numbers are restored from
    /// it.
    pub largest: Option<u64>,
    /// Packets that the host's software has sealed by `transmit`.
    pub sealed: u64,
}

/// A connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) receive: ReceiveKeys,
    pub(super) transmit: TransmitKey,
    pub(super) numbers: NumberWindow,
    pub(super) ids: [Option<ConnectionId>; IDS_OF_CONNECTION_MAX],
    pub(super) failures: u64,
    pub(super) failures_max: u64,
}

/// The keys that packets are opened by: three of a phase each (RFC 9001 §6.5).
#[derive(Clone)]
pub(super) struct ReceiveKeys {
    pub(super) header: HeaderKey,
    previous: Option<Box<PacketKey>>,
    current: Box<PacketKey>,
    next: Option<Box<PacketKey>>,
    /// The generation of `current`.
    generation: u64,
    /// The lowest number that `current` has opened.
    first: Option<u64>,
}

/// The key that packets are sealed by.
#[derive(Clone)]
pub(super) struct TransmitKey {
    pub(super) header: HeaderKey,
    pub(super) key: Box<PacketKey>,
    pub(super) generation: u64,
    /// Packets that it may still seal.
    pub(super) left: u64,
}

/// Which of the three keys a packet is tried by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    Previous,
    Current,
    Next,
}

impl Connection {
    pub(super) fn new(keys: &ConnectionKeys) -> Self {
        Self {
            receive: ReceiveKeys {
                header: HeaderKey::new(&keys.receive_header),
                previous: None,
                current: boxed(&keys.receive),
                next: keys.receive_next.as_ref().map(boxed),
                generation: keys.generation,
                first: None,
            },
            transmit: TransmitKey {
                header: HeaderKey::new(&keys.transmit_header),
                key: boxed(&keys.transmit),
                generation: keys.generation,
                left: keys.transmit.suite.seals_max().saturating_sub(keys.sealed),
            },
            numbers: NumberWindow::after(keys.largest),
            ids: [None; IDS_OF_CONNECTION_MAX],
            failures: 0,
            failures_max: keys.receive.suite.failures_max(),
        }
    }

    /// The state that software goes on with.
    pub(super) fn summary(&self) -> Removed {
        Removed {
            generation: self.receive.generation,
            largest: self.numbers.largest(),
            failures: self.failures,
            sealed: self.transmit.key.suite().seals_max() - self.transmit.left,
        }
    }

    /// Counts a packet that did not open. Failures in software count too: the limit is one.
    pub(super) fn count_failures(&mut self, failures: u64) {
        self.failures = self.failures.saturating_add(failures);
    }

    /// Whether so many packets have failed that the connection must end (RFC 9001 §6.6).
    pub(super) fn is_used_up(&self) -> bool {
        self.failures >= self.failures_max
    }
}

impl ReceiveKeys {
    /// The key that a packet of this phase bit and number is tried by. A packet of the other phase
    /// is one from before the last update if its number is below all that the present key has
    /// opened, and else the first of the next (RFC 9001 §6.5).
    pub(super) fn phase_of(&self, phase_bit: bool, number: u64) -> Phase {
        let is_current = phase_bit == (self.generation & 1 == 1);
        match is_current {
            true => Phase::Current,
            false if self.previous.is_some() && self.first.is_some_and(|first| number < first) => {
                Phase::Previous
            }
            false => Phase::Next,
        }
    }

    pub(super) fn key(&self, phase: Phase) -> Option<&PacketKey> {
        match phase {
            Phase::Previous => self.previous.as_deref(),
            Phase::Current => Some(&self.current),
            Phase::Next => self.next.as_deref(),
        }
    }

    /// Takes a packet that has opened: the peer's first one of the next phase makes that the
    /// present one. Returns the generation that opened it.
    pub(super) fn opened(&mut self, phase: Phase, number: u64) -> u64 {
        match phase {
            Phase::Previous => return self.generation - 1,
            Phase::Current => {
                self.first = Some(self.first.map_or(number, |first| first.min(number)));
            }
            Phase::Next => {
                if let Some(next) = self.next.take() {
                    self.previous = Some(core::mem::replace(&mut self.current, next));
                    self.generation += 1;
                    self.first = Some(number);
                }
            }
        }
        self.generation
    }

    /// Sets the key of the phase behind the present one. Returns whether it was asked for: the host
    /// names the generation, and one that is over by now changes nothing.
    pub(super) fn set_next(&mut self, key: &PhaseKey, generation: u64) -> bool {
        let is_next = generation == self.generation + 1;
        if is_next {
            self.next = Some(boxed(key));
        }
        is_next
    }

    /// Forgets the keys of before the last update.
    pub(super) fn drop_previous(&mut self) {
        self.previous = None;
    }
}

impl TransmitKey {
    /// Whether it is a later key: one of the same phase would seal beyond the limit.
    pub(super) fn replace(&mut self, key: &PhaseKey, generation: u64) -> bool {
        if generation <= self.generation {
            return false;
        }
        self.key = boxed(key);
        self.generation = generation;
        self.left = key.suite.seals_max();
        true
    }
}

/// Bytes of the device's memory for a connection, its keys with their schedules.
pub const BYTES_OF_A_CONNECTION: usize =
    size_of::<Connection>() + 4 * size_of::<PacketKey>() + size_of::<Link>();

fn boxed(key: &PhaseKey) -> Box<PacketKey> {
    Box::new(PacketKey::new(key))
}

/// No byte of a key.
impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection")
            .field("generation", &self.receive.generation)
            .field("numbers", &self.numbers)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// A packet that a key has opened, and what is known of its number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Taken {
    pub(super) generation: u64,
    pub(super) freshness: Freshness,
}

impl Connection {
    pub(super) fn take(&mut self, phase: Phase, number: u64) -> Taken {
        Taken {
            generation: self.receive.opened(phase, number),
            freshness: self.numbers.take(number),
        }
    }
}

/// The limits of a suite, replaced by a test.
#[cfg(test)]
impl Connection {
    pub(super) fn with_limits(mut self, seals: u64, failures: u64) -> Self {
        self.transmit.left = seals;
        self.failures_max = failures;
        self
    }
}
