// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of a host's shards a packet is for, told from its clear header (SPEC §6.6).
//!
//! A shard is an endpoint of its own beside others at the same address. It issues only indices of
//! its own, so a packet names its shard by the index that its receiver has chosen. Flight 1 names
//! none yet: there it is the index of the client's, so that all of a handshake reaches one shard,
//! and the client's next attempt the next one.

use core::fmt;

use crate::{PacketType, SessionIndex};

/// One of a host's shards: its number, and how many there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    number: u16,
    count: u16,
}

impl Shard {
    /// Most shards at one address: more than the cores of nearly any host.
    pub const COUNT_MAX: u16 = 256;
    /// Where the index that the receiver has chosen begins, in every packet that has one.
    pub const DESTINATION_OFFSET: usize = 12;
    /// Where the sender's index begins in a HANDSHAKE packet.
    pub const SOURCE_OFFSET: usize = 20;
    /// From this type on packets have the header of a control packet.
    pub const FIRST_CONTROL: u8 = PacketType::Confirm as u8;

    /// Shard `number` of `count`.
    ///
    /// # Panics
    /// If `count` is no power of two, or above [`Self::COUNT_MAX`], or `number` is not below it.
    #[must_use]
    pub const fn new(number: u16, count: u16) -> Self {
        assert!(
            Self::is_count(count) && number < count,
            "shards are a power of two, at most 256, and numbered from 0"
        );
        Self { number, count }
    }

    /// Whether there may be `count` shards.
    #[must_use]
    pub const fn is_count(count: u16) -> bool {
        count.is_power_of_two() && count <= Self::COUNT_MAX
    }

    /// This shard's number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.number
    }

    /// How many shards there are.
    #[must_use]
    pub const fn count(self) -> u16 {
        self.count
    }

    /// Whether an index is one that this shard issues.
    #[must_use]
    pub const fn issues(self, index: SessionIndex) -> bool {
        Self::number_of(index, self.count) == self.number
    }

    /// The first serial that this shard issues under a boot number; every `count`-th follows.
    #[must_use]
    pub const fn first_serial(self, boot: u32) -> u32 {
        let serial = (self.number as u32).wrapping_sub(boot) & (self.count as u32 - 1);
        // No session has serial 0.
        if serial == 0 {
            return self.count as u32;
        }
        serial
    }

    /// Which of `count` shards a datagram is for, by its first packet. Whatever tells of none is
    /// for shard 0.
    #[must_use]
    pub fn of_datagram(datagram: &[u8], count: u16) -> u16 {
        let kind = datagram.get(1).copied().unwrap_or(0);
        let is_handshake = kind == PacketType::Handshake as u8;
        if !is_handshake && kind != PacketType::Data as u8 && kind < Self::FIRST_CONTROL {
            return 0;
        }
        let mut index = index_at(datagram, Self::DESTINATION_OFFSET);
        if is_handshake && index.is_some_and(|index| index.serial() == 0) {
            index = index_at(datagram, Self::SOURCE_OFFSET);
        }
        index.map_or(0, |index| Self::number_of(index, count))
    }

    /// The boot number counts too: clients that have just started all begin with serial 1, and are
    /// to reach different shards.
    const fn number_of(index: SessionIndex, count: u16) -> u16 {
        (index.boot().wrapping_add(index.serial()) & (count as u32 - 1)) as u16
    }
}

/// The only one.
impl Default for Shard {
    fn default() -> Self {
        Self::new(0, 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.count)
    }
}

fn index_at(datagram: &[u8], offset: usize) -> Option<SessionIndex> {
    let bytes = datagram.get(offset..)?.first_chunk()?;
    Some(SessionIndex(u64::from_be_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Handshake, VERSION};
    use std::vec::Vec;

    const COUNTS: [u16; 4] = [1, 2, 8, 256];

    fn handshake(destination: SessionIndex, source: SessionIndex) -> [u8; 40] {
        let packet = Handshake {
            destination,
            source,
            flight: 1,
            cookie: &[],
            flight_length: 0,
            offset: 0,
            fragment: &[],
        };
        let mut bytes = [0; 40];
        packet.emit(VERSION, 40, &mut bytes);
        bytes
    }

    mod first_serial {
        use super::*;

        #[test]
        fn is_never_zero_and_the_shards_own() {
            for count in COUNTS {
                for (number, boot) in
                    (0..count).zip([0, 1, 7, u32::MAX, u32::MAX - 1].into_iter().cycle())
                {
                    let shard = Shard::new(number, count);
                    let serial = shard.first_serial(boot);
                    assert!((1..=u32::from(count)).contains(&serial));
                    for serial in [serial, serial + u32::from(count)] {
                        assert!(shard.issues(SessionIndex::new(boot, serial)), "{shard}");
                    }
                }
            }
        }

        #[test]
        fn of_the_only_shard_is_one() {
            assert_eq!(Shard::default().first_serial(12_345), 1);
        }
    }

    mod of_datagram {
        use super::*;

        // SMT [6.6-3]
        #[test]
        fn first_flight_goes_by_the_source() {
            let bytes = handshake(SessionIndex(0), SessionIndex::new(4, 9));
            assert_eq!(Shard::of_datagram(&bytes, 8), 5);
        }

        #[test]
        fn later_flights_go_by_the_destination() {
            let bytes = handshake(SessionIndex::new(1, 2), SessionIndex::new(4, 9));
            assert_eq!(Shard::of_datagram(&bytes, 8), 3);
        }

        #[test]
        fn fresh_clients_reach_all_shards_and_a_next_attempt_the_next() {
            let of = |boot, serial| {
                let bytes = handshake(SessionIndex(0), SessionIndex::new(boot, serial));
                Shard::of_datagram(&bytes, 4)
            };
            let fresh: Vec<_> = (0..4).map(|boot| of(boot, 1)).collect();
            assert_eq!(fresh, [1, 2, 3, 0]);
            let attempts: Vec<_> = (1..5).map(|serial| of(0, serial)).collect();
            assert_eq!(attempts, [1, 2, 3, 0]);
        }

        // SMT [6.6-5]
        #[test]
        fn what_tells_of_no_shard_is_for_the_first() {
            let bytes = handshake(SessionIndex(0), SessionIndex::new(4, 9));
            for length in 0..28 {
                assert_eq!(Shard::of_datagram(&bytes[..length], 8), 0, "{length}");
            }
            let index = SessionIndex::new(1, 2).0.to_be_bytes();
            for kind in [0x00, 0x02, 0x11, 0x12, 0x13, 0x14, 0x1F] {
                let mut bytes = [0; 64];
                bytes[1] = kind;
                bytes[12..20].copy_from_slice(&index);
                assert_eq!(Shard::of_datagram(&bytes, 8), 0, "{kind:#x}");
            }
        }

        #[test]
        fn data_and_control_go_by_the_index() {
            let index = SessionIndex::new(1, 2).0.to_be_bytes();
            for kind in [0x01, 0x20, 0x21, 0x35] {
                let mut bytes = [0; 64];
                bytes[1] = kind;
                bytes[12..20].copy_from_slice(&index);
                assert_eq!(Shard::of_datagram(&bytes, 8), 3, "{kind:#x}");
            }
        }
    }

    mod new {
        use super::*;

        #[test]
        #[should_panic(expected = "power of two")]
        fn three_shards_are_refused() {
            let _ = Shard::new(0, 3);
        }
    }
}
