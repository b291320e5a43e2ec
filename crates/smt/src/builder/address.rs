// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses as people write them: `host`, `host:port`, `[::1]:port`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use smt_proto::ConnectError;
use smt_proto::key_exchange::Fault;

use super::DEFAULT_PORT;
use crate::error::{Error, ErrorKind, OpenError};

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

/// The first address of a host.
pub(crate) fn resolve(text: &str) -> Result<SocketAddr, OpenError> {
    resolve_all(text).map(|found| found[0])
}

/// All addresses of a host, in the system's order; at least one.
pub(super) fn resolve_all(text: &str) -> Result<Vec<SocketAddr>, OpenError> {
    at_least_one(text, with_port(text).to_socket_addrs())
}

#[cfg(feature = "tokio")]
pub(super) async fn resolve_all_async(text: &str) -> Result<Vec<SocketAddr>, OpenError> {
    // All that opens an endpoint for tasks begins here, and would panic without a runtime.
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(OpenError::Options(
            "no tokio runtime is running here: open the endpoint within one, or use `bind_blocking`, `connect_blocking`",
        ));
    }
    let found = tokio::net::lookup_host(with_port(text)).await;
    at_least_one(text, found)
}

fn at_least_one(
    text: &str,
    found: std::io::Result<impl Iterator<Item = SocketAddr>>,
) -> Result<Vec<SocketAddr>, OpenError> {
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    found
        .map(Vec::from_iter)
        .and_then(|found| (!found.is_empty()).then_some(found).ok_or_else(none))
        .map_err(|reason| OpenError::Address {
            address: text.to_owned(),
            reason,
        })
}

/// The addresses of a client's server, tried one after the other within one deadline.
pub(super) struct Candidates {
    left: std::vec::IntoIter<SocketAddr>,
    time: TimeLeft,
    /// The failure so far that says most.
    failure: Option<OpenError>,
}

impl Candidates {
    pub(super) fn new(addresses: Vec<SocketAddr>, deadline: Duration) -> Self {
        Self {
            left: addresses.into_iter(),
            time: TimeLeft::of(deadline),
            failure: None,
        }
    }

    /// The next address, and how long it may take: of the time that is left the same share for
    /// each.
    pub(super) fn take(&mut self) -> (SocketAddr, Duration) {
        let share = self.time.left() / self.left.len() as u32;
        let address = self.left.next();
        let address = address.expect("the last one's failure ends the attempt");
        (address, share)
    }

    /// Takes in how the attempt at the last address failed.
    ///
    /// # Errors
    /// The failure that says most, if another address would not help, or there is none, or no time.
    pub(super) fn failed(&mut self, error: OpenError) -> Result<(), OpenError> {
        let may_go_on = says(&error) != Says::All && self.left.len() > 0;
        tracing::debug!(%error, "an address of the server does not do");
        let before = self.failure.take();
        let failure = match before {
            Some(before) if says(&before) > says(&error) => before,
            _ => error,
        };
        if !may_go_on || self.time.left().is_zero() {
            return Err(failure);
        }
        self.failure = Some(failure);
        Ok(())
    }
}

/// The rest of a duration that begins with the first look at it.
pub(super) struct TimeLeft {
    whole: Duration,
    began: Option<Instant>,
}

impl TimeLeft {
    pub(super) fn of(whole: Duration) -> Self {
        Self { whole, began: None }
    }

    pub(super) fn left(&mut self) -> Duration {
        match self.began {
            Some(began) => self.whole.saturating_sub(began.elapsed()),
            None => {
                self.began = Some(Instant::now());
                self.whole
            }
        }
    }
}

/// How much a failure says of the server, the least first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Says {
    /// Nothing: this host does not reach such addresses.
    Nothing,
    NoAnswer,
    NoServer,
    NotSmt,
    /// One is there that did not answer in time, or speaks something else, or has another
    /// certificate.
    OfServer,
    /// Nothing of this address alone: it is the caller's, and holds for all.
    All,
}

fn says(error: &OpenError) -> Says {
    let OpenError::Connect(Error {
        kind: ErrorKind::Connect(error),
        ..
    }) = error
    else {
        return match error {
            OpenError::Carrier(_) => Says::Nothing,
            _ => Says::All,
        };
    };
    match error {
        ConnectError::NoAnswer(_) => Says::NoAnswer,
        ConnectError::NoServer => Says::NoServer,
        ConnectError::NotSmt(_) => Says::NotSmt,
        ConnectError::Unavailable(_)
        | ConnectError::Unfinished { .. }
        | ConnectError::Unproven { .. }
        | ConnectError::Version { .. }
        | ConnectError::Handshake {
            fault: Fault::Peer | Fault::Environment,
            ..
        } => Says::OfServer,
        _ => Says::All,
    }
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
