// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options about where tickets are looked up, shared by `call` and `ticket`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use smt_dns::{Dnssec, ResolverPlan, TicketResolver};
use smt_io::{ZonedAddress, lacks_zone};

use crate::failure::{Doing, Failure};
use crate::host_and_port::without_brackets;

/// A resolver, and whether it is believed.
#[derive(Args, Debug)]
pub(crate) struct ResolverArguments {
    /// Ask this resolver for tickets, by default at port 53, and not the system's; may be given
    /// several times
    #[arg(long, value_name = "ADDR", value_parser = resolver)]
    resolver: Vec<SocketAddr>,
    /// Believe only records that are signed as their zone has to be: from the DNSKEY records in
    /// this file down, or with the word root from the root zone
    #[arg(long, value_name = "FILE|root")]
    dnssec: Option<String>,
}

impl ResolverArguments {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.resolver.is_empty() || self.dnssec.is_some()
    }

    /// A resolver whose lookups take this time at most. It belongs to the runtime that calls.
    pub(crate) fn resolver(&self, time: Duration) -> Result<TicketResolver, Failure> {
        let dnssec = match self.dnssec.as_deref() {
            None => Dnssec::Off,
            Some("root") => Dnssec::FromRoot,
            Some(file) => {
                let text = fs::read_to_string(Path::new(file));
                Dnssec::From(text.doing(format!("reading {file}"))?)
            }
        };
        let plan = ResolverPlan { resolvers: self.resolver.clone(), dnssec, time };
        Ok(TicketResolver::new(&plan)?)
    }
}

/// Understands an address of digits, with or without a port; a value parser for clap.
pub(crate) fn resolver(text: &str) -> Result<SocketAddr, String> {
    if let Some(zoned) = ZonedAddress::parse(text) {
        return zoned.socket_address(DNS_PORT).map_err(|error| error.to_string());
    }
    let alone = without_brackets(text);
    let ip = alone.parse::<IpAddr>();
    let address = ip.map_or_else(|_| text.parse(), |ip| Ok(SocketAddr::new(ip, DNS_PORT)));
    let address = address
        .map_err(|_| "give an IP address, with a port or without: 192.0.2.53:5353".to_owned())?;
    match lacks_zone(address) {
        true => Err(format!("give the interface too: {}%eth0", address.ip())),
        false => Ok(address),
    }
}

/// Runs I/O of DNS to its end, in a runtime of one thread.
pub(crate) fn block_on<T>(doing: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.doing("starting a runtime for DNS")?.block_on(doing))
}

const DNS_PORT: u16 = 53;

#[cfg(test)]
mod tests {
    #[test]
    fn a_resolver_has_port_53_unless_it_names_another() {
        for (text, address) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("::1", "[::1]:53"),
            ("[::1]", "[::1]:53"),
            ("[::1]:5353", "[::1]:5353"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("fe80::1%3", "[fe80::1%3]:53"),
            ("[fe80::1%3]:5353", "[fe80::1%3]:5353"),
        ] {
            let read = super::resolver(text).map(|address| address.to_string());
            assert_eq!(read.as_deref(), Ok(address));
        }
        for text in ["dns.example", "[::1", "::1]"] {
            assert!(super::resolver(text).is_err(), "{text}");
        }
    }
}
