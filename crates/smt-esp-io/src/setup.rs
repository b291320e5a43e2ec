// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses, routes and the MTU of the TUN device, by the host's own command `ip` (iproute2).

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use crate::config::Config;

/// Why the host is not set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The command cannot be run.
    #[error("environment: cannot run ip: install iproute2")]
    NoCommand(#[source] io::Error),
    /// The command refuses.
    #[error("caller: the device {device} cannot be set up: {reason}")]
    Refused {
        /// The device.
        device: String,
        /// The words of `ip`.
        reason: String,
    },
    /// The host drops what comes by another device than its answer leaves by.
    #[error(
        "environment: the host's filter of reverse paths is strict and would drop what comes by {device}, since answers leave by the tunnel: sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.{device}.rp_filter=2"
    )]
    StrictFilter {
        /// The device below the tunnel.
        device: String,
    },
    /// No route leads to a peer.
    #[error("environment: no route leads to the peer {peer}{by}")]
    NoRoute {
        /// The peer.
        peer: IpAddr,
        /// By which device, if one is given.
        by: String,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
}

/// Sets the device up: MTU, addresses, routes.
pub(crate) fn set_up(config: &Config, mtu: u16) -> Result<(), SetupError> {
    let device = &config.device;
    let name = &device.name;
    let mut batch = String::new();
    if std::path::Path::new("/proc/sys/net/ipv6").exists() {
        // Else the host would ask for routers through the tunnel.
        let _ = writeln!(batch, "link set dev {name} addrgenmode none");
    }
    let _ = writeln!(batch, "link set dev {name} mtu {mtu} up");
    for address in &device.addresses {
        // No other host asks for the address: its detection as a duplicate would only take time.
        let nodad = if address.address.is_ipv6() { " nodad" } else { "" };
        let _ = writeln!(batch, "address add {address} dev {name}{nodad}");
    }
    for route in &device.routes {
        // In transport mode packets have the address that ESP has.
        let own = config.underlay.local;
        let source = if route.address.is_ipv4() == own.is_ipv4() && device.addresses.is_empty() {
            format!(" src {own}")
        } else {
            String::new()
        };
        let _ = writeln!(batch, "route add {route} dev {name}{source}");
    }
    run(&batch, name)
}

fn run(batch: &str, device: &str) -> Result<(), SetupError> {
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(SetupError::NoCommand)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(batch.as_bytes()).map_err(SetupError::NoCommand)?;
    }
    let output = child.wait_with_output().map_err(SetupError::NoCommand)?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(SetupError::Refused {
        device: device.to_owned(),
        reason: words.lines().collect::<Vec<_>>().join(" "),
    })
}

/// In transport mode the peer's address is routed into the tunnel, and the peer's ESP comes by the
/// device below it: a strict filter of reverse paths (RFC 3704) would drop that. The greater of the
/// two settings counts, and 2 is loose.
pub(crate) fn check_filter(config: &Config) -> Result<(), SetupError> {
    let Some(device) = &config.underlay.device else {
        return Ok(());
    };
    let setting = |of: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter"));
        text.ok().and_then(|text| text.trim().parse::<u8>().ok()).unwrap_or(0)
    };
    let caught = config.associations.iter().any(|association| {
        let peer = association.get_ref().peer;
        peer.is_some_and(|peer| {
            peer.is_ipv4() && config.device.routes.iter().any(|route| route.contains(peer))
        })
    });
    if caught && setting("all").max(setting(device)) == STRICT {
        return Err(SetupError::StrictFilter { device: device.clone() });
    }
    Ok(())
}

/// Looks whether each peer that the file names is reached.
pub(crate) fn check_routes(config: &Config) -> Result<(), SetupError> {
    for association in &config.associations {
        let Some(peer) = association.get_ref().peer else {
            continue;
        };
        let device = config.underlay.device.as_deref();
        let to = SocketAddr::new(peer, config.underlay.peer_port);
        smt_io::route_mtu(to, device).map_err(|reason| SetupError::NoRoute {
            peer,
            by: device.map_or_else(String::new, |device| format!(" by {device}")),
            reason,
        })?;
    }
    Ok(())
}

/// The strict mode of `rp_filter` (Linux, `ip-sysctl.rst`).
const STRICT: u8 = 1;
