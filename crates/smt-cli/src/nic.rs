// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint behind the model of a NIC: `--carrier nic`.
//!
//! The model and its driver run in this process. Their network is a TUN device: packets that the
//! model sends arrive at the host, which forwards them, and what the host routes into the device
//! arrives at the model.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use clap::Args;
use smt::{Builder, Carrier};
use smt_io::{TunCarrier, TunError};
use smt_nic::psp::{MasterKey, PspEngine};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{DriverConfig, NicCarrier, NicKeys};
use zeroize::Zeroizing;

use crate::{standard_error, time_span};

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
    /// With `--carrier nic`: let the NIC seal whole packets by PSP, with a peer whose NIC does too
    #[arg(long, requires = "tun", conflicts_with = "untrusted_nic")]
    psp: bool,
    /// With `--psp`: give the NIC a new device key each time after this long; associations of the
    /// key before the last end then
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = time_span::parse_nonzero)]
    psp_key_life: Duration,
    /// The NIC, when it is open.
    #[arg(skip)]
    open: Arc<OnceLock<Arc<TunNic>>>,
}

type TunNic = NicCarrier<TunCarrier, (TlsEngine, PspEngine)>;

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
    #[cfg(feature = "perf")]
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(device) = &self.tun {
            arguments.extend(["--tun".to_owned(), device.clone()]);
        }
        if let Some(address) = self.tun_address {
            arguments.extend(["--tun-address".to_owned(), address.to_string()]);
        }
        if self.psp {
            let life = format!("{}ms", self.psp_key_life.as_millis());
            arguments.extend(["--psp".to_owned(), "--psp-key-life".to_owned(), life]);
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
            "the NIC sent {} packets of {} segments and sealed {} records; the driver sealed {}, created {} contexts, resynced {} times; {} packets came as {}, and the NIC opened {} of their records; it opened {} packets of PSP",
            device.packets,
            device.segments,
            device.records_sealed,
            driver.records_in_software,
            driver.contexts_created,
            driver.resyncs,
            device.packets_received,
            device.arrivals,
            device.records_opened,
            device.psp_opened,
        ))
    }

    fn carrier(&self, address: SocketAddr, protocol: u8) -> io::Result<Arc<TunNic>> {
        let device = self.tun.as_deref().unwrap_or_default();
        let local = self.local(address)?;
        let packets = TunCarrier::open(device, local).map_err(io_error)?;
        let driver = DriverConfig {
            protocol,
            is_trusted: !self.untrusted_nic,
            psp: self.psp,
            ..DriverConfig::default()
        };
        let model = NicConfig { smt_protocol: protocol, ..NicConfig::default() };
        let nic = Nic::new(model, (TlsEngine, PspEngine));
        let keys = NicKeys::new(KEYS_MAX);
        let carrier = Arc::new(NicCarrier::new(packets, local, driver, keys, nic));
        if self.psp {
            carrier.rotate_device_key(fresh_key()?);
            replace_keys(&carrier, self.psp_key_life)?;
        }
        Ok(carrier)
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

/// Replaces the older one of the device's keys again and again, as long as there is a device.
fn replace_keys(carrier: &Arc<TunNic>, life: Duration) -> io::Result<()> {
    let carrier = Arc::downgrade(carrier);
    let replace = move || {
        loop {
            thread::sleep(life);
            let Some(carrier) = carrier.upgrade() else {
                return;
            };
            match fresh_key() {
                Ok(key) => carrier.rotate_device_key(key),
                Err(error) => standard_error::complain(format_args!("smt: no new key: {error}")),
            }
        }
    };
    let thread = thread::Builder::new().name("smt-psp-keys".to_owned());
    thread.spawn(replace).map(|_| ())
}

fn fresh_key() -> io::Result<MasterKey> {
    let mut bytes = Zeroizing::new([0; 32]);
    let filled = aws_lc_rs::rand::fill(&mut *bytes);
    filled.map_err(|_| io::Error::other("environment: the system gives no random numbers"))?;
    Ok(MasterKey::new(*bytes))
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
