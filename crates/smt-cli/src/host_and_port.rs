// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses of servers as users write them.

use smt::DEFAULT_PORT;

/// The host part and the port of an address as users write it.
pub(crate) fn host_and_port(address: &str) -> (&str, u16) {
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<std::net::IpAddr>().is_ok() {
        return (bare, DEFAULT_PORT);
    }
    let parts = address.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.unwrap_or((address, DEFAULT_PORT));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_without_a_port_has_the_default_one() {
        for (address, host, port) in [
            ("db7", "db7", 17_379),
            ("db7:9000", "db7", 9_000),
            ("[::1]:9000", "::1", 9_000),
            ("::1", "::1", 17_379),
            ("127.0.0.1:1", "127.0.0.1", 1),
        ] {
            assert_eq!(super::host_and_port(address), (host, port));
        }
    }
}
