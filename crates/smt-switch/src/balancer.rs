// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A load balancer that keeps a message on one of several paths.
//!
//! It has no table: the path follows from the message's name, and a message cannot change it while
//! the number of paths stays. Packets that are no DATA keep together by their two ends.

use crate::ip_packet::{Addresses, IpPacket, MessageName, Recognition};

/// Chooses paths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Balancer {
    /// Switches in a row choose apart if theirs differ.
    seed: u64,
}

impl Balancer {
    /// A balancer; switches in a row have different seeds.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The path of a packet from its IP header on, below `paths`. `None` if it is none of SMT's,
    /// and somebody else has to choose.
    #[must_use]
    pub fn path_of(&self, bytes: &[u8], recognition: &Recognition, paths: u32) -> Option<u32> {
        let packet = IpPacket::read(bytes, recognition)?;
        match packet.message_name(bytes) {
            Some(name) => Some(self.path_of_message(&name, paths)),
            None => Some(self.path_of_ends(&packet.addresses(bytes)?, paths)),
        }
    }

    /// The path of a message.
    ///
    /// # Panics
    /// If there is no path.
    #[must_use]
    pub fn path_of_message(&self, name: &MessageName, paths: u32) -> u32 {
        let ends = self.mixed_ends(&name.addresses);
        choice(mix(mix(ends ^ name.session) ^ name.id), paths)
    }

    /// The path of what is of no message.
    ///
    /// # Panics
    /// If there is no path.
    #[must_use]
    pub fn path_of_ends(&self, ends: &Addresses, paths: u32) -> u32 {
        choice(self.mixed_ends(ends), paths)
    }

    fn mixed_ends(&self, ends: &Addresses) -> u64 {
        let words = [&ends.source, &ends.destination].into_iter();
        let words = words.flat_map(|address| address.as_chunks::<8>().0);
        words.fold(self.seed, |mixed, word| mix(mixed ^ u64::from_be_bytes(*word)))
    }
}

/// One of so many, by the high half, without a division that a switch may lack.
fn choice(mixed: u64, of: u32) -> u32 {
    assert!(of > 0, "there is no path");
    (((mixed >> 32) * u64::from(of)) >> 32) as u32
}

/// The finalizer of MurmurHash3: every bit of the number changes half of the bits.
fn mix(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    number ^= number >> 33;
    number = number.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    number ^ number >> 33
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::samples::{Carrier, data, packet};

    fn path_of(bytes: &[u8], paths: u32) -> Option<u32> {
        Balancer::new(1).path_of(bytes, &Recognition::default(), paths)
    }

    #[test]
    fn all_packets_of_a_message_take_one_path_and_messages_spread_evenly() {
        for carrier in Carrier::ALL {
            let mut taken = [0; 4];
            // A client's ids are 2 apart (SPEC §4.1).
            for id in (0..4_000).map(|id| 2 * id) {
                let path = |payload, offset: u32| {
                    let mut data = data(id, payload);
                    data[32..36].copy_from_slice(&offset.to_be_bytes());
                    path_of(&packet(carrier, &data), 4).unwrap()
                };
                let first = path(100, 0);
                assert!((1..20).all(|at| path(1_000 - at as usize, at * 1_414) == first));
                taken[first as usize] += 1;
            }
            assert!(taken.iter().all(|count| (900..1_100).contains(count)), "{taken:?}");
        }
    }

    #[test]
    fn packets_without_a_message_keep_together() {
        let control = |number: u8| {
            let mut bytes = data(0, 20);
            (bytes[1], bytes[4], bytes[27]) = (0x24, 0x50, number);
            packet(Carrier::Udp4, &bytes)
        };
        let first = path_of(&control(0), 7);
        assert!((1..100).all(|number| path_of(&control(number), 7) == first));
    }

    #[test]
    fn switches_with_different_seeds_choose_apart() {
        let bytes: std::vec::Vec<_> =
            (0..64).map(|id| packet(Carrier::Udp4, &data(id, 9))).collect();
        let path = |seed, bytes| Balancer::new(seed).path_of(bytes, &Recognition::default(), 2);
        let same = bytes.iter().filter(|bytes| path(1, bytes) == path(2, bytes)).count();
        assert!((16..48).contains(&same), "{same}");
    }

    #[test]
    fn packets_of_others_are_somebody_elses_choice() {
        let mut tcp = packet(Carrier::Native4, &data(1, 10));
        tcp[9] = 6;
        assert_eq!(path_of(&tcp, 4), None);
        assert_eq!(path_of(&[], 4), None);
    }
}
