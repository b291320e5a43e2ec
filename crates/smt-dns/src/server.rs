// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server whose ticket is looked up, and the name of its record.

use std::fmt;

use hickory_proto::rr::Name;
use rustls_pki_types::ServerName;

/// A server by the name that it proves and its port.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Server {
    name: String,
    port: u16,
}

/// A server that can have no record: the caller's fault.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("caller: {0:?} has no ticket in DNS: only a DNS name has, of at most 230 letters")]
pub struct NoServer(String);

impl Server {
    /// A server that proves this DNS name and answers at this port.
    ///
    /// # Errors
    /// It is an IP address, no name at all, or so long that no record's name has room for it.
    pub fn new(name: &str, port: u16) -> Result<Self, NoServer> {
        let no_server = || NoServer(name.to_owned());
        let name = name.strip_suffix('.').unwrap_or(name);
        match ServerName::try_from(name) {
            Ok(ServerName::DnsName(_)) if name.len() <= NAME_LEN_MAX => {
                Ok(Self { name: name.to_ascii_lowercase(), port })
            }
            _ => Err(no_server()),
        }
    }

    /// The server's name, in small letters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name of the server's record, with a dot at its end: `_17379._smt.db7.example.`.
    #[must_use]
    pub fn record_name(&self) -> String {
        format!("_{}._smt.{}.", self.port, self.name)
    }

    /// The same for the DNS library.
    ///
    /// # Errors
    /// A label of the name is longer than DNS permits.
    pub(crate) fn dns_name(&self) -> Result<Name, NoServer> {
        Name::from_ascii(self.record_name()).map_err(|_| NoServer(self.name.clone()))
    }
}

/// As a user writes it.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Letters of a server's name: DNS has 253, less those of the two labels before it.
const NAME_LEN_MAX: usize = 230;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_stands_under_the_port_and_the_name() {
        let server = Server::new("DB7.example.", 17_379).unwrap();
        assert_eq!(server.record_name(), "_17379._smt.db7.example.");
        assert!(server.dns_name().unwrap().is_fqdn());
        assert_eq!(server.to_string(), "db7.example:17379");
    }

    // SMT [6.9-1]
    #[test]
    fn addresses_and_what_is_no_name_have_no_record() {
        let long = ["a".repeat(60).as_str(); 4].join(".");
        for name in ["127.0.0.1", "::1", "", "a b", "a\\.b", "a..b", "*.example", &long] {
            Server::new(name, 1).unwrap_err();
        }
    }
}
