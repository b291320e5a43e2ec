// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The carrier that an endpoint opens: UDP, an IP protocol of SMT's own, or one of the caller's.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::Carrier;
use smt_io::UdpOptions;
#[cfg(target_os = "linux")]
use smt_io::{NativeOptions, XdpOptions};
use smt_wire::Shard;

use super::bound_socket::BoundSocket;
use super::{Address, Builder};
use crate::error::OpenError;

/// Which carrier is opened, and how.
#[derive(Clone, Debug)]
pub(crate) enum CarrierChoice {
    Udp(UdpOptions),
    #[cfg(target_os = "linux")]
    Native(NativeOptions),
    #[cfg(target_os = "linux")]
    Xdp(XdpOptions),
    Own(CarrierOpener),
}

/// A function of the caller's that opens a carrier at an address.
#[derive(Clone)]
pub(crate) struct CarrierOpener(Arc<OpenCarrier>);

type OpenCarrier = dyn Fn(SocketAddr) -> io::Result<Arc<dyn Carrier>> + Send + Sync;

impl CarrierOpener {
    pub(super) fn new(
        open: impl Fn(SocketAddr) -> io::Result<Arc<dyn Carrier>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(open))
    }

    fn open(&self, address: SocketAddr) -> Result<BoundSocket, OpenError> {
        let carrier = (self.0)(address)
            .map_err(|reason| OpenError::System { what: "opening the carrier", reason })?;
        BoundSocket::polled_over(carrier)
    }
}

impl fmt::Debug for CarrierOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CarrierOpener")
    }
}

impl<R> Builder<R> {
    /// Sets buffers and offloads of a UDP socket, which is what endpoints open by default.
    pub fn udp(mut self, options: UdpOptions) -> Self {
        self.carrier = CarrierChoice::Udp(options);
        self
    }

    /// Sends over an IP protocol of SMT's own, by raw sockets, and not over UDP
    /// (docs/draft-smt-00.md §15.2). Both ends must do so. The process needs the right
    /// `CAP_NET_RAW`, and the network must let the protocol through. Ports are this protocol's own.
    ///
    /// Only on Linux. The last of this, [`Self::xdp`] and [`Self::udp`] counts.
    ///
    /// ```no_run
    /// # fn server(identity: smt::Identity) -> Result<(), smt::OpenError> {
    /// let server = smt::server(identity)
    ///     .native(smt::NativeOptions::default())
    ///     .bind_blocking("0.0.0.0")?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(target_os = "linux")]
    pub fn native(mut self, options: NativeOptions) -> Self {
        self.carrier = CarrierChoice::Native(options);
        self
    }

    /// Sends the same packets as [`Self::native`] by a socket of `AF_XDP`, past the kernel's IP.
    /// Peers may have either. An endpoint is at one address of one Ethernet interface, and the only
    /// one with XDP there; it has no shards. The process needs the rights `CAP_NET_RAW`,
    /// `CAP_NET_ADMIN` and `CAP_BPF`.
    ///
    /// Only on Linux. Opening a client resolves the server's name, and blocks meanwhile.
    #[cfg(target_os = "linux")]
    pub fn xdp(mut self, options: XdpOptions) -> Self {
        self.carrier = CarrierChoice::Xdp(options);
        self
    }

    /// Sends over a carrier of the caller's, which `open` opens at the address of a server, or at
    /// an unspecified one for a client. Such endpoints have no shards. A carrier that is open
    /// already is given to [`bind_over_blocking`](Self::bind_over_blocking) and its kin.
    pub fn carrier(
        mut self,
        open: impl Fn(SocketAddr) -> io::Result<Arc<dyn Carrier>> + Send + Sync + 'static,
    ) -> Self {
        self.carrier = CarrierChoice::Own(CarrierOpener::new(open));
        self
    }
}

impl Default for CarrierChoice {
    fn default() -> Self {
        Self::Udp(UdpOptions::default())
    }
}

impl CarrierChoice {
    /// A carrier at this address, of an endpoint that connects to servers.
    pub(super) fn open(&self, address: SocketAddr) -> Result<BoundSocket, OpenError> {
        match self {
            Self::Udp(options) => {
                let options = options.clone().unreachable_reports(true);
                let udp = Arc::new(options.bind(address)?);
                Ok(BoundSocket::of_udp(Shard::default(), udp))
            }
            #[cfg(target_os = "linux")]
            Self::Native(options) => {
                let native = options.bind(address)?;
                Ok(BoundSocket::of_native(Shard::default(), native))
            }
            #[cfg(target_os = "linux")]
            Self::Xdp(options) => Ok(BoundSocket::of_xdp(options.bind(address)?)),
            Self::Own(opener) => opener.open(address),
        }
    }

    /// The address of this host from which a carrier that needs one reaches a server; `None` if the
    /// carrier needs none. A name is resolved, which may block.
    pub(super) fn local_for(&self, server: &Address) -> Result<Option<SocketAddr>, OpenError> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Xdp(_) => {
                let found = server.resolve().and_then(|addresses| {
                    let remote = addresses.first().ok_or(io::ErrorKind::NotFound)?;
                    local_address_for(*remote)
                });
                found.map(Some).map_err(|reason| OpenError::System {
                    what: "looking for the way to the server",
                    reason,
                })
            }
            _ => Ok(None),
        }
    }

    /// The carriers of a server's shards, which share this address.
    pub(super) fn open_shards(
        &self,
        address: SocketAddr,
        count: u16,
    ) -> Result<Vec<BoundSocket>, OpenError> {
        let shards = (0..count).map(|number| Shard::new(number, count));
        match self {
            Self::Udp(options) => {
                let carriers = options.bind_shards(address, count)?;
                if carriers.iter().any(|carrier| !carrier.has_shard_selector()) {
                    tracing::warn!(%address, "this system does not sort datagrams by shard: the shards do it themselves, which costs more");
                }
                let carriers = carriers.into_iter().map(Arc::new);
                let sockets = shards.zip(carriers);
                Ok(sockets.map(|(shard, udp)| BoundSocket::of_udp(shard, udp)).collect())
            }
            #[cfg(target_os = "linux")]
            Self::Native(options) => {
                let carriers = options.bind_shards(address, count)?;
                let sockets = shards.zip(carriers);
                Ok(sockets.map(|(shard, native)| BoundSocket::of_native(shard, native)).collect())
            }
            #[cfg(target_os = "linux")]
            Self::Xdp(options) if count == 1 => {
                Ok(vec![BoundSocket::of_xdp(options.bind(address)?)])
            }
            #[cfg(target_os = "linux")]
            Self::Xdp(_) => Err(OpenError::Options(
                "there are no shards over XDP: choose 1, or another carrier",
            )),
            Self::Own(opener) if count == 1 => Ok(vec![opener.open(address)?]),
            Self::Own(_) => Err(OpenError::Options(
                "there are no shards over a carrier of one's own: choose 1, or another carrier",
            )),
        }
    }

    /// The options of UDP, for a socket that was made elsewhere.
    pub(super) fn of_adopted(&self) -> Result<&UdpOptions, OpenError> {
        match self {
            Self::Udp(options) => Ok(options),
            _ => Err(OpenError::Options(
                "a socket that was handed over is UDP's: choose no other carrier",
            )),
        }
    }
}

/// The address of this host from which the system would send there, with port 0.
#[cfg(target_os = "linux")]
fn local_address_for(remote: SocketAddr) -> io::Result<SocketAddr> {
    let any: std::net::IpAddr = match remote {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a socket of UDP sends nothing.
    let socket = std::net::UdpSocket::bind((any, 0))?;
    socket.connect(remote)?;
    let mut local = socket.local_addr()?;
    local.set_port(0);
    Ok(local)
}
