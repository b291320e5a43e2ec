// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a datagram came from or goes to.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// The two ends of a datagram's way, as this host sees them.
///
/// IPv4 addresses appear as IPv4 whatever the socket beneath speaks: a carrier never puts an
/// IPv4-mapped IPv6 address here.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Path {
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// This host's address on the way: the one the peer called when receiving, the one to send
    /// from when sending. `None` when sending leaves the choice to the routing table.
    pub local: Option<IpAddr>,
}

impl Path {
    /// A way to `remote` from whatever address the routing table picks.
    ///
    /// An IPv4-mapped address becomes the IPv4 address it stands for.
    #[must_use]
    pub const fn to(remote: SocketAddr) -> Self {
        Self { remote: canonical(remote), local: None }
    }

    /// A way to `remote` from this host's address `local`.
    ///
    /// IPv4-mapped addresses become the IPv4 addresses they stand for.
    #[must_use]
    pub const fn between(remote: SocketAddr, local: IpAddr) -> Self {
        Self { remote: canonical(remote), local: Some(local.to_canonical()) }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.local {
            Some(local) => write!(formatter, "{} by {local}", self.remote),
            None => write!(formatter, "{}", self.remote),
        }
    }
}

const fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        // Kept whole: a link-local address means nothing without its scope.
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Path;
    use std::string::ToString;

    mod to {
        use super::Path;

        #[test]
        fn mapped_address_becomes_ipv4() {
            let path = Path::to("[::ffff:192.0.2.7]:9".parse().unwrap());
            assert_eq!(path, Path::to("192.0.2.7:9".parse().unwrap()));
            assert!(path.remote.is_ipv4());
        }

        #[test]
        fn scope_of_a_link_local_address_is_kept() {
            let remote = "[fe80::1%4]:9".parse().unwrap();
            assert_eq!(Path::to(remote).remote, remote);
        }
    }

    mod between {
        use super::Path;

        #[test]
        fn both_mapped_addresses_become_ipv4() {
            let path = Path::between(
                "[::ffff:192.0.2.7]:9".parse().unwrap(),
                "::ffff:192.0.2.8".parse().unwrap(),
            );
            assert!(path.remote.is_ipv4() && path.local.unwrap().is_ipv4());
        }
    }

    mod display {
        use super::{Path, ToString};

        #[test]
        fn names_the_local_address_only_when_known() {
            let remote = "192.0.2.7:9".parse().unwrap();
            assert_eq!(Path::to(remote).to_string(), "192.0.2.7:9");
            let path = Path::between(remote, "192.0.2.8".parse().unwrap());
            assert_eq!(path.to_string(), "192.0.2.7:9 by 192.0.2.8");
        }
    }
}
