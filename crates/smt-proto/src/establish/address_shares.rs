// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shares of a scarce thing: how many each address and each address prefix has, and which has most
//! (SPEC §10). Not here: what is given up, and when.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Counts by address and by prefix.
#[derive(Debug, Default)]
pub(crate) struct AddressShares {
    of_prefix: BTreeMap<IpAddr, usize>,
    of_address: BTreeMap<IpAddr, usize>,
    /// Prefixes ordered by their numbers, and addresses by prefix and then number.
    prefixes: BTreeSet<(usize, IpAddr)>,
    addresses: BTreeSet<(IpAddr, usize, IpAddr)>,
}

/// The address or prefix that has more than a newcomer would have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Excess {
    Prefix(IpAddr),
    Address(IpAddr),
}

impl Excess {
    /// Whether an address has a part in it.
    pub(crate) fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Prefix(prefix) => prefix_of(address) == prefix,
            Self::Address(other) => address == other,
        }
    }

    /// The lowest address that may have a part in it.
    pub(crate) fn first(self) -> IpAddr {
        match self {
            Self::Prefix(first) | Self::Address(first) => first,
        }
    }
}

impl AddressShares {
    /// How many the network of an address has.
    pub(crate) fn of_prefix(&self, address: IpAddr) -> usize {
        let count = self.of_prefix.get(&prefix_of(address));
        count.copied().unwrap_or_default()
    }

    /// Adds one to an address.
    pub(crate) fn add(&mut self, address: IpAddr) {
        self.change(address, |count| count + 1);
    }

    /// Takes one from an address.
    pub(crate) fn remove(&mut self, address: IpAddr) {
        self.change(address, |count| count.saturating_sub(1));
    }

    /// The place where one may be given up for a newcomer. It is in the network that has most, if
    /// that has more than the newcomer's would have: at the address that has most of it, unless
    /// none has more than one. Else it is at the address that has most of the newcomer's network,
    /// if that has more than the newcomer would.
    pub(crate) fn excess(&self, newcomer: IpAddr) -> Option<Excess> {
        if let Some((count, prefix)) = self.prefixes.last()
            && *count > self.of_prefix(newcomer) + 1
        {
            let address = self.address_of_most(*prefix, 2).map(Excess::Address);
            return address.or(Some(Excess::Prefix(*prefix)));
        }
        let own = self.of_address.get(&newcomer).copied().unwrap_or_default();
        let address = self.address_of_most(prefix_of(newcomer), own + 2);
        address.map(Excess::Address)
    }

    /// The address that has most of a prefix, if it has at least this many.
    fn address_of_most(&self, prefix: IpAddr, least: usize) -> Option<IpAddr> {
        let from = (prefix, least, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let highest = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));
        let mut theirs = self.addresses.range(from..=(prefix, usize::MAX, highest));
        theirs.next_back().map(|(_, _, address)| *address)
    }

    fn change(&mut self, address: IpAddr, to: impl Fn(usize) -> usize) {
        let prefix = prefix_of(address);
        let (before, after) = counted(&mut self.of_prefix, prefix, &to);
        self.prefixes.remove(&(before, prefix));
        if after > 0 {
            self.prefixes.insert((after, prefix));
        }
        let (before, after) = counted(&mut self.of_address, address, &to);
        self.addresses.remove(&(prefix, before, address));
        if after > 0 {
            self.addresses.insert((prefix, after, address));
        }
    }
}

/// Changes a count. Returns the old and the new one.
fn counted(
    counts: &mut BTreeMap<IpAddr, usize>,
    of: IpAddr,
    to: impl Fn(usize) -> usize,
) -> (usize, usize) {
    let before = counts.get(&of).copied().unwrap_or_default();
    let after = to(before);
    match after {
        0 => counts.remove(&of),
        _ => counts.insert(of, after),
    };
    (before, after)
}

/// The network that an address is in: /24 or /64 (SPEC §10).
fn prefix_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, 0))
        }
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn shares(of: &[(&str, usize)]) -> AddressShares {
        let mut shares = AddressShares::default();
        for (address, count) in of {
            (0..*count).for_each(|_| shares.add(ip(address)));
        }
        shares
    }

    #[test]
    fn the_network_that_has_most_gives_one_up() {
        let shares = shares(&[("192.0.2.1", 1), ("2001:db8::1", 1), ("2001:db8::2", 1)]);
        let excess = shares.excess(ip("198.51.100.1"));
        assert_eq!(excess, Some(Excess::Prefix(ip("2001:db8::"))));
        assert!(excess.unwrap().has(ip("2001:db8::2")));
        assert!(!excess.unwrap().has(ip("2001:db8:0:1::2")));
    }

    #[test]
    fn the_address_that_has_most_of_the_network_that_has_most_gives_one_up() {
        let shares = shares(&[("192.0.2.1", 2), ("2001:db8::1", 3), ("2001:db8::2", 2)]);
        let excess = shares.excess(ip("198.51.100.1"));
        assert_eq!(excess, Some(Excess::Address(ip("2001:db8::1"))));
    }

    #[test]
    fn the_address_that_has_most_gives_one_up_if_no_other_network_has_more() {
        let shares = shares(&[("192.0.2.1", 2), ("192.0.2.2", 3), ("198.51.100.1", 6)]);
        let excess = shares.excess(ip("192.0.2.1"));
        assert_eq!(excess, None, "both networks would have six, both addresses three");
        let excess = shares.excess(ip("192.0.2.9"));
        assert_eq!(excess, Some(Excess::Address(ip("192.0.2.2"))));
    }

    #[test]
    fn no_address_gives_one_up_for_a_newcomer_that_would_have_as_many() {
        let mut shares = shares(&[("192.0.2.1", 1), ("198.51.100.1", 1)]);
        assert_eq!(shares.excess(ip("203.0.113.1")), None);
        shares.add(ip("192.0.2.1"));
        assert_ne!(shares.excess(ip("203.0.113.1")), None);
        shares.remove(ip("192.0.2.1"));
        assert_eq!(shares.excess(ip("203.0.113.1")), None);
    }

    #[test]
    fn an_address_whose_shares_are_gone_leaves_no_entry() {
        let mut shares = shares(&[("192.0.2.1", 2)]);
        (0..2).for_each(|_| shares.remove(ip("192.0.2.1")));
        assert!(shares.of_prefix.is_empty() && shares.of_address.is_empty());
        assert!(shares.prefixes.is_empty() && shares.addresses.is_empty());
    }
}
