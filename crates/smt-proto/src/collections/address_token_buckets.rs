// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rate limit for each address, so that one address has no more than its share of a limit for
//! all.
//!
//! Addresses are told apart by a hash that others cannot compute, into so few places that no place
//! has to be evicted. Two addresses that meet in a place share the tokens of one.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::collections::id_map::Salt;
use crate::collections::token_bucket::TokenBucket;
use crate::time::Time;

/// Token buckets by address.
#[derive(Debug)]
pub(crate) struct AddressTokenBuckets {
    per_second: u32,
    salt: Salt,
    /// The buckets; the vector is empty until the first token is asked for.
    places: Vec<TokenBucket>,
}

impl AddressTokenBuckets {
    pub(crate) fn new(per_second: u32, salt: Salt) -> Self {
        Self { per_second, salt, places: Vec::new() }
    }

    /// Takes a token of an address, if it has one.
    pub(crate) fn take(&mut self, now: Time, address: IpAddr) -> bool {
        if self.places.is_empty() {
            let rate = || TokenBucket::new(self.per_second);
            self.places.resize_with(PLACES, rate);
        }
        let place = self.place(address);
        self.places[place].take(now)
    }

    /// An IPv6 host has a whole /64.
    fn place(&self, address: IpAddr) -> usize {
        let bits = match address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
        };
        // SplitMix64's last steps.
        let mut hash = bits ^ u64::from(self.salt.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (hash ^ (hash >> 31)) as usize % PLACES
    }
}

/// Number of buckets, which take 6 KB. One address in this many shares a bucket with a given greedy
/// one.
const PLACES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_has_used_its_own_up_leaves_others_theirs() {
        let mut rates = AddressTokenBuckets::new(100, Salt(7));
        let greedy = IpAddr::from([192, 0, 2, 1]);
        let now = Time::default();
        assert_eq!((0..50).filter(|_| rates.take(now, greedy)).count(), 10);
        let others = (2..=201).map(|last| IpAddr::from([192, 0, 2, last]));
        let served = others.filter(|other| rates.take(now, *other)).count();
        assert!(served >= 195, "{served} of 200 others");
    }

    #[test]
    fn the_addresses_of_one_64_are_one() {
        let rates = AddressTokenBuckets::new(100, Salt(7));
        let place = |text: &str| rates.place(text.parse().unwrap());
        assert_eq!(place("2001:db8::1"), place("2001:db8::ffff:2"));
        assert_ne!(place("2001:db8::1"), place("2001:db8:0:1::1"));
    }
}
