// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this process may use the carriers without UDP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smt_io::{NativeOptions, probe_native, probe_xdp};

use super::Finding;

/// A finding for each carrier.
pub(super) fn findings() -> Vec<Finding> {
    vec![
        native("native IP (IPv4)", Ipv4Addr::LOCALHOST.into()),
        native("native IP (IPv6)", Ipv6Addr::LOCALHOST.into()),
        xdp(),
    ]
}

fn native(name: &'static str, ip: IpAddr) -> Finding {
    let advice = match probe_native(ip, &NativeOptions::default()) {
        Ok(true) => None,
        Ok(false) => Some(FILTERED.to_owned()),
        Err(error) => Some(error.to_string()),
    };
    finding(name, advice, "only `--carrier native` and `xdp` need it")
}

fn xdp() -> Finding {
    let advice = probe_xdp().err().map(|error| error.to_string());
    finding("native IP past the kernel", advice, "only `--carrier xdp` needs it")
}

fn finding(name: &'static str, advice: Option<String>, only: &str) -> Finding {
    Finding {
        name,
        value: if advice.is_none() { "yes" } else { "no" }.to_owned(),
        advice: advice.map(|advice| format!("{advice}\n{only}")),
    }
}

const FILTERED: &str = "raw sockets open, and what is sent does not arrive: let IP protocol 253 through, see `sudo nft list ruleset`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_that_cannot_be_opened_comes_with_what_can_be_done() {
        // No host has this address.
        let finding = native("native IP", "192.0.2.1".parse().unwrap());
        assert_eq!(finding.value, "no");
        let advice = finding.advice.unwrap();
        assert!(advice.starts_with("environment: "), "{advice}");
        assert!(advice.ends_with("need it"), "{advice}");
    }
}
