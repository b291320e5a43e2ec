// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses of servers as users write them.

use std::net::IpAddr;

use smt::DEFAULT_PORT;

use crate::failure::Failure;

/// The host part and the port of an address as users write it.
///
/// # Errors
/// A bracket has no other one, or the port is none.
pub(crate) fn host_and_port(address: &str) -> Result<(&str, u16), Failure> {
    let bare = without_brackets(address);
    if bare.parse::<IpAddr>().is_ok() {
        return Ok((bare, DEFAULT_PORT));
    }
    let (host, port) = match address.rsplit_once(':') {
        None => (address, DEFAULT_PORT),
        Some((host, port)) => {
            let port = port.parse().ok().filter(|port| *port > 0);
            (host, port.ok_or_else(|| refused(address, "its port is no number from 1 to 65535"))?)
        }
    };
    let bare = without_brackets(host);
    if bare.contains(['[', ']']) {
        return Err(refused(address, "its brackets do not enclose an IPv6 address"));
    }
    if bare.is_empty() {
        return Err(refused(address, "there is no host"));
    }
    Ok((bare, port))
}

/// Without the two brackets around it, if there are both.
pub(crate) fn without_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

fn refused(address: &str, why: &str) -> Failure {
    let shown: String = address.chars().take(SHOWN_MAX).collect();
    Failure::usage(format!("invalid address {shown:?}: {why}; give HOST, HOST:PORT or [IPV6]:PORT"))
}

/// Characters of an address that errors quote.
const SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn an_address_without_a_port_has_the_default_one() {
        for (address, host, port) in [
            ("db7", "db7", 17_379),
            ("db7:9000", "db7", 9_000),
            ("[::1]:9000", "::1", 9_000),
            ("[::1]", "::1", 17_379),
            ("::1", "::1", 17_379),
            ("127.0.0.1:1", "127.0.0.1", 1),
        ] {
            assert_eq!(host_and_port(address).unwrap(), (host, port));
        }
    }

    #[test]
    fn an_address_that_can_be_none_is_refused_with_the_reason() {
        for (address, reason) in [
            ("db7:99999", "its port is no number from 1 to 65535"),
            ("db7:0", "its port is no number from 1 to 65535"),
            ("[::1]:", "its port is no number from 1 to 65535"),
            ("[::1]9:9", "its brackets do not enclose an IPv6 address"),
            ("[::1", "its brackets do not enclose an IPv6 address"),
            ("", "there is no host"),
            (":9", "there is no host"),
        ] {
            let failure = host_and_port(address).unwrap_err();
            assert!(failure.text().contains(reason), "{address}: {}", failure.text());
        }
    }
}
