// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses of IPv6 with a zone, as people write them: `fe80::1%eth0` (RFC 4007 §11).
//!
//! The standard library reads zones that are numbers, in brackets with a port. The number of an
//! interface changes when a host starts anew: only the name can be written into a file.

use std::ffi::CString;
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// An address with a zone, and perhaps a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ZonedAddress<'a> {
    /// The address without its zone.
    pub address: Ipv6Addr,
    /// Name or number of an interface of this host.
    pub zone: &'a str,
    /// If it was written.
    pub port: Option<u16>,
}

impl<'a> ZonedAddress<'a> {
    /// Understands `fe80::1%eth0`, `[fe80::1%eth0]` and `[fe80::1%eth0]:9`; `None` for all else.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => (text, ""),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if port.is_empty() => None,
            None => return None,
        };
        let (address, zone) = host.split_once('%')?;
        let address = address.parse().ok()?;
        (!zone.is_empty()).then_some(Self { address, zone, port })
    }

    /// The address of a socket, with this port if none was written. The system is asked for the
    /// interface.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: this host has no interface of that name.
    pub fn socket_address(&self, default_port: u16) -> io::Result<SocketAddr> {
        let port = self.port.unwrap_or(default_port);
        let scope = match self.zone.parse() {
            Ok(number) => number,
            Err(_) => interface_number(self.zone)?,
        };
        Ok(SocketAddrV6::new(self.address, port, 0, scope).into())
    }
}

/// Whether an address says nothing without the interface that it lacks (RFC 4291 §2.5.6).
#[must_use]
pub fn lacks_zone(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

fn interface_number(name: &str) -> io::Result<u32> {
    let unknown =
        || io::Error::new(ErrorKind::NotFound, format!("this host has no interface {name:?}"));
    let name = CString::new(name).map_err(|_| unknown())?;
    // SAFETY: `name` is a string that ends with a zero and lives beyond the call, which only reads
    // it.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(unknown()),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_with_and_without_brackets_and_port() {
        let address: Ipv6Addr = "fe80::1".parse().unwrap();
        for (text, zone, port) in [
            ("fe80::1%eth0", "eth0", None),
            ("[fe80::1%eth0]", "eth0", None),
            ("[fe80::1%eth0.7]:9", "eth0.7", Some(9)),
            ("fe80::1%3", "3", None),
        ] {
            assert_eq!(ZonedAddress::parse(text), Some(ZonedAddress { address, zone, port }));
        }
    }

    #[test]
    fn text_that_is_no_address_with_a_zone_is_none() {
        for text in [
            "",
            "fe80::1",
            "[fe80::1]:9",
            "fe80::1%",
            "db7%eth0",
            "127.0.0.1%lo",
            "[fe80::1%eth0",
            "[fe80::1%eth0]9",
            "[fe80::1%eth0]:x",
            "[fe80::1%eth0]:99999",
        ] {
            assert_eq!(ZonedAddress::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_zone_is_the_number_of_the_interface_or_its_name() {
        let socket = |text| ZonedAddress::parse(text).unwrap().socket_address(7);
        assert_eq!(socket("fe80::1%3").unwrap().to_string(), "[fe80::1%3]:7");
        let SocketAddr::V6(loopback) = socket("[fe80::1%lo]:9").unwrap() else { panic!("IPv6") };
        assert!(loopback.scope_id() > 0);
        assert_eq!(loopback.port(), 9);
        let error = socket("fe80::1%no-such-device").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.to_string(), "this host has no interface \"no-such-device\"");
    }

    #[test]
    fn only_link_local_addresses_lack_a_zone() {
        let lacks = |text: &str| lacks_zone(text.parse().unwrap());
        assert!(lacks("[fe80::1]:9") && lacks("[febf::1]:9"));
        assert!(!lacks("[fe80::1%3]:9") && !lacks("[::1]:9") && !lacks("169.254.0.1:9"));
    }
}
