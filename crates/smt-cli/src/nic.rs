// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint behind the model of a NIC: `--carrier nic`.
//!
//! The model and its driver run in this process. Their network is a TUN device: packets that the
//! model sends arrive at the host, which forwards them, and what the host routes into the device
//! arrives at the model.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use clap::Args;
use smt::{Builder, Carrier};
use smt_io::{TunCarrier, TunError};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{DriverConfig, NicCarrier, NicKeys};

/// Options of `--carrier nic`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NicArguments {
    /// With `--carrier nic`: the TUN device that is the NIC's network; it is made if there is none
    #[arg(long, value_name = "DEVICE", required_if_eq("carrier", "nic"))]
    tun: Option<String>,
    /// With `--carrier nic`: the address of a client behind the TUN device, which the host routes
    /// into it; a server has the one that it listens on
    #[arg(long, value_name = "ADDRESS", requires = "tun")]
    tun_address: Option<IpAddr>,
    /// With `--carrier nic`: give the NIC no key and no plaintext; it cuts segments, and seals and
    /// opens nothing
    #[arg(long, requires = "tun")]
    untrusted_nic: bool,
    /// The NIC, when it is open.
    #[arg(skip)]
    open: Arc<OnceLock<Arc<TunNic>>>,
}

type TunNic = NicCarrier<TunCarrier, TlsEngine>;

impl NicArguments {
    /// Applies them.
    pub(crate) fn apply<R>(&self, builder: Builder<R>, protocol: u8) -> Builder<R> {
        let arguments = self.clone();
        builder.carrier(move |address| {
            let nic = arguments.carrier(address, protocol)?;
            _ = arguments.open.set(Arc::clone(&nic));
            Ok(nic as Arc<dyn Carrier>)
        })
    }

    /// The same options for another process of this command.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(device) = &self.tun {
            arguments.extend(["--tun".to_owned(), device.clone()]);
        }
        if let Some(address) = self.tun_address {
            arguments.extend(["--tun-address".to_owned(), address.to_string()]);
        }
        if self.untrusted_nic {
            arguments.push("--untrusted-nic".to_owned());
        }
        arguments
    }

    /// A line on the work of the NIC and its driver so far; `None` without a NIC.
    pub(crate) fn report(&self) -> Option<String> {
        let nic = self.open.get()?;
        let (device, driver) = (nic.counters(), nic.statistics());
        Some(format!(
            "the NIC sent {} packets of {} segments and sealed {} records; the driver sealed {}, created {} contexts, resynced {} times; {} packets came as {}, and the NIC opened {} of their records",
            device.packets,
            device.segments,
            device.records_sealed,
            driver.records_in_software,
            driver.contexts_created,
            driver.resyncs,
            device.packets_received,
            device.arrivals,
            device.records_opened,
        ))
    }

    fn carrier(&self, address: SocketAddr, protocol: u8) -> io::Result<Arc<TunNic>> {
        let device = self.tun.as_deref().unwrap_or_default();
        let local = self.local(address)?;
        let packets = TunCarrier::open(device, local).map_err(io_error)?;
        let driver = DriverConfig {
            protocol,
            is_trusted: !self.untrusted_nic,
            ..DriverConfig::default()
        };
        let model = NicConfig {
            smt_protocol: protocol,
            ..NicConfig::default()
        };
        let nic = Nic::new(model, TlsEngine);
        let keys = NicKeys::new(KEYS_MAX);
        Ok(Arc::new(NicCarrier::new(packets, local, driver, keys, nic)))
    }

    /// The address behind the device: the one that is listened on, or the one that was given.
    fn local(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let ip = match self.tun_address {
            Some(ip) if ip.is_ipv4() == address.is_ipv4() => ip,
            Some(ip) => {
                return Err(io::Error::other(format!(
                    "caller: --tun-address {ip} is of another IP version than the server's address"
                )));
            }
            None if address.ip().is_unspecified() => {
                return Err(io::Error::other(
                    "caller: a NIC has one address: listen on one that is routed into the TUN device, or give a client's by --tun-address",
                ));
            }
            None => address.ip(),
        };
        let port = match address.port() {
            0 => ephemeral_port(),
            port => port,
        };
        Ok(SocketAddr::new(ip, port))
    }
}

/// A port of the range that systems choose from (RFC 6335 §6). Nothing else has ports at the
/// address behind the device.
fn ephemeral_port() -> u16 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    EPHEMERAL_PORTS_FROM | random as u16
}

fn io_error(error: TunError) -> io::Error {
    let kind = match &error {
        TunError::Forbidden { .. } => io::ErrorKind::PermissionDenied,
        TunError::InUse { .. } => io::ErrorKind::AddrInUse,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Keys that the driver has room for; sessions beyond are sealed by the core.
const KEYS_MAX: usize = 4_096;
const EPHEMERAL_PORTS_FROM: u16 = 49_152;
