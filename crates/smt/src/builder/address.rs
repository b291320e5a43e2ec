// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses as people write them: `host`, `host:port`, `[::1]:port`.

use std::net::{SocketAddr, ToSocketAddrs};

use super::DEFAULT_PORT;
use crate::error::OpenError;

/// The host part of `host:port`, without brackets.
pub(super) fn host_of(text: &str) -> &str {
    let host = if text.parse::<SocketAddr>().is_ok() || text.matches(':').count() == 1 {
        text.rsplit_once(':').map_or(text, |(host, _)| host)
    } else {
        text
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

/// With the default port if the address names none.
fn with_port(text: &str) -> String {
    let has_port = text.parse::<SocketAddr>().is_ok() || text.matches(':').count() == 1;
    if has_port {
        return text.to_owned();
    }
    match text
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>()
    {
        Ok(address) => SocketAddr::new(address, DEFAULT_PORT).to_string(),
        Err(_) => format!("{text}:{DEFAULT_PORT}"),
    }
}

pub(crate) fn resolve(text: &str) -> Result<SocketAddr, OpenError> {
    first_of(text, with_port(text).to_socket_addrs())
}

#[cfg(feature = "tokio")]
pub(super) async fn resolve_async(text: String) -> Result<SocketAddr, OpenError> {
    // All that opens an endpoint for tasks begins here, and would panic without a runtime.
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(OpenError::Options(
            "no tokio runtime is running here: open the endpoint within one, or use `bind_blocking`, `connect_blocking`",
        ));
    }
    let found = tokio::net::lookup_host(with_port(&text)).await;
    first_of(&text, found)
}

fn first_of(
    text: &str,
    found: std::io::Result<impl Iterator<Item = SocketAddr>>,
) -> Result<SocketAddr, OpenError> {
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    found
        .and_then(|mut addresses| addresses.next().ok_or_else(none))
        .map_err(|reason| OpenError::Address {
            address: text.to_owned(),
            reason,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_stands_before_the_port() {
        for (text, host) in [
            ("db7:9000", "db7"),
            ("db7", "db7"),
            ("127.0.0.1:9000", "127.0.0.1"),
            ("[::1]:9000", "::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(host_of(text), host, "{text}");
        }
    }

    #[test]
    fn an_address_without_a_port_gets_the_default_one() {
        for (text, whole) in [
            ("127.0.0.1", "127.0.0.1:17379"),
            ("::1", "[::1]:17379"),
            ("[::1]:5", "[::1]:5"),
            ("db7", "db7:17379"),
        ] {
            assert_eq!(with_port(text), whole, "{text}");
        }
    }
}
