// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses as people write them: `host`, `host:port`, `[::1]:port`, `[fe80::1%eth0]:port`.

mod defect;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use smt_io::{ZonedAddress, lacks_zone};

use super::DEFAULT_PORT;
use crate::error::OpenError;
use defect::{defect, shown};

/// A host and a port, as an application names a server to connect to, or an address to listen on.
///
/// Made from `"db7"` (with the default port, 17379), `"db7:9000"`, `"[::1]:9000"`,
/// `"[fe80::1%eth0]:9000"`, `("db7", 9000)`, or a [`SocketAddr`]. The name of a host or of an
/// interface is resolved when it is needed, and again whenever a client has to connect anew.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Address {
    /// As it was written.
    text: String,
    /// The name that the server must prove, if it is not the host.
    server_name: Option<String>,
    /// Known without resolving; else empty.
    known: Vec<SocketAddr>,
}

impl Address {
    /// Sets the name that the server's certificate must have; by default the host. It goes before a
    /// name that was chosen for all servers of a client ([`crate::Builder::server_name`]).
    #[must_use]
    pub fn named(mut self, server_name: impl Into<String>) -> Self {
        self.server_name = Some(server_name.into());
        self
    }

    fn of(text: String) -> Self {
        let known = text_as_socket(&text).into_iter().collect();
        Self { text, server_name: None, known }
    }

    /// The name that the server must prove, where `chosen` is that for all servers.
    pub(crate) fn name_to_prove(&self, chosen: Option<&str>) -> String {
        let name = self.server_name.as_deref().or(chosen);
        // A zone is this host's own word, which no certificate has.
        let host = host_of(&self.text);
        let host = host.split_once('%').map_or(host, |(host, _)| host);
        name.unwrap_or(host).to_owned()
    }

    /// The addresses, if nothing has to be resolved.
    pub(crate) fn known(&self) -> &[SocketAddr] {
        &self.known
    }

    /// All addresses of the host, in the system's order; at least one. Blocks while a name is
    /// resolved.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        if !self.known.is_empty() {
            return Ok(self.known.clone());
        }
        if let Some(zoned) = ZonedAddress::parse(&self.text) {
            return zoned.socket_address(DEFAULT_PORT).map(|address| vec![address]);
        }
        let found: Vec<_> = with_port(&self.text).to_socket_addrs()?.collect();
        match found.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            false => Ok(found),
        }
    }

    /// The first of the addresses, to listen on. Blocks while a name is resolved.
    pub(crate) fn to_bind(&self) -> Result<SocketAddr, OpenError> {
        self.check()?;
        let found = self.resolve().map_err(|reason| self.unresolved(reason))?;
        Ok(found[0])
    }

    /// Refuses what can be the address of no host.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if text_as_socket(&self.text).is_some_and(lacks_zone) {
            let host = host_of(&self.text);
            return Err(self.invalid(format!(
                "{host} is an address of a link, and needs the interface: {host}%eth0 for example"
            )));
        }
        let has_zone = ZonedAddress::parse(&self.text).is_some();
        if !self.known.is_empty() || has_zone {
            return Ok(());
        }
        match defect(&self.text) {
            Some(defect) => Err(self.invalid(defect)),
            None => Ok(()),
        }
    }

    /// Refuses also what no server can be reached at.
    pub(crate) fn check_to_connect(&self) -> Result<(), OpenError> {
        self.check()?;
        if with_port(&self.text).rsplit_once(':').is_some_and(|(_, port)| port == "0") {
            let reason = "port 0 is for listening; give the port that the server tells";
            return Err(self.invalid(reason.to_owned()));
        }
        Ok(())
    }

    /// The failure of resolving it.
    pub(crate) fn unresolved(&self, reason: io::Error) -> OpenError {
        OpenError::Address { address: self.text.clone(), reason }
    }

    /// The failure of one that is none.
    fn invalid(&self, reason: String) -> OpenError {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, reason);
        OpenError::Address { address: shown(&self.text), reason }
    }

    /// A host with these addresses.
    #[cfg(test)]
    pub(crate) fn resolved(host: &str, known: Vec<SocketAddr>) -> Self {
        Self { text: host.to_owned(), server_name: None, known }
    }
}

/// As it was written.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self::of(text.to_owned())
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        Self::of(text)
    }
}

impl From<&String> for Address {
    fn from(text: &String) -> Self {
        Self::of(text.clone())
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::of(address.to_string())
    }
}

impl From<(&str, u16)> for Address {
    fn from((host, port): (&str, u16)) -> Self {
        match host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, port).into(),
            Err(_) => Self::of(format!("{host}:{port}")),
        }
    }
}

impl From<(IpAddr, u16)> for Address {
    fn from(address: (IpAddr, u16)) -> Self {
        SocketAddr::from(address).into()
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

/// The host part of `host:port`, without brackets.
fn host_of(text: &str) -> &str {
    let host = match has_port(text) {
        true => text.rsplit_once(':').map_or(text, |(host, _)| host),
        false => text,
    };
    without_brackets(host)
}

/// Without the two brackets around it, if there are both.
fn without_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

/// With the default port if the address names none.
fn with_port(text: &str) -> String {
    if has_port(text) {
        return text.to_owned();
    }
    match text_as_socket(text) {
        Some(address) => address.to_string(),
        None => format!("{text}:{DEFAULT_PORT}"),
    }
}

fn has_port(text: &str) -> bool {
    text.parse::<SocketAddr>().is_ok()
        || ZonedAddress::parse(text).is_some_and(|zoned| zoned.port.is_some())
        || text.matches(':').count() == 1
}

/// An address of digits, with the default port if it names none.
fn text_as_socket(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address);
    }
    let ip: IpAddr = without_brackets(text).parse().ok()?;
    Some(SocketAddr::new(ip, DEFAULT_PORT))
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
            ("[fe80::1%eth0]:9000", "fe80::1%eth0"),
            ("fe80::1%eth0", "fe80::1%eth0"),
        ] {
            assert_eq!(host_of(text), host, "{text}");
        }
    }

    #[test]
    fn the_name_of_an_interface_is_looked_up_when_it_is_needed() {
        for (text, port) in
            [("fe80::1%lo", DEFAULT_PORT), ("[fe80::1%lo]", DEFAULT_PORT), ("[fe80::1%lo]:9", 9)]
        {
            let address = Address::from(text);
            address.check_to_connect().unwrap();
            assert!(address.known().is_empty());
            let [SocketAddr::V6(found)] = address.resolve().unwrap()[..] else { panic!("one") };
            assert_eq!((found.port(), found.scope_id() > 0), (port, true));
            assert_eq!(address.name_to_prove(None), "fe80::1");
        }
        let error = Address::from("fe80::1%gone").to_bind().unwrap_err();
        assert_eq!(error.fault(), crate::Fault::Environment);
        let text = error.to_string();
        assert!(text.contains("this host has no interface \"gone\""), "{text}");
    }

    #[test]
    fn a_link_local_address_without_its_interface_is_refused_by_name() {
        for text in ["fe80::1", "[fe80::1]:9"] {
            let error = Address::from(text).check().unwrap_err().to_string();
            assert!(error.contains("needs the interface: fe80::1%eth0 for example"), "{error}");
        }
        Address::from("[fe80::1%3]:9").check().unwrap();
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

    #[test]
    fn digits_need_no_resolving_and_names_do() {
        let digits = ["127.0.0.1", "127.0.0.1:9", "::1", "[::1]:9"].map(Address::from);
        assert!(digits.iter().all(|address| address.known().len() == 1));
        assert_eq!(Address::from(("::1", 9)), Address::from("[::1]:9"));
        assert!(Address::from("db7:9").known().is_empty());
        assert_eq!(Address::from(("db7", 9)), Address::from("db7:9"));
    }

    #[test]
    fn an_address_of_no_host_is_refused_before_anything_is_opened() {
        for text in ["db7:99999", "db7:port", ":9", "", "[::1]:x"] {
            let OpenError::Address { reason, .. } = Address::from(text).check().unwrap_err() else {
                panic!("another error")
            };
            assert_eq!(reason.kind(), io::ErrorKind::InvalidInput, "{text}");
        }
        for text in ["db7", "db7:9", "::1", "[::1]:9", "127.0.0.1"] {
            Address::from(text).check().unwrap();
        }
    }

    #[test]
    fn a_name_of_the_address_goes_before_that_of_all_servers_and_this_before_the_host() {
        let address = Address::from("db7:9");
        assert_eq!(address.name_to_prove(None), "db7");
        assert_eq!(address.name_to_prove(Some("fleet")), "fleet");
        assert_eq!(address.named("own").name_to_prove(Some("fleet")), "own");
    }
}
