// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options about the carrier that several subcommands share.

use clap::{Args, ValueEnum};
use smt::{Builder, ConnectError, ErrorKind, OpenError, UdpOptions};

use crate::failure::Failure;
#[cfg(all(target_os = "linux", feature = "nic"))]
use crate::{nic::NicArguments, standard_error};

/// How datagrams are sent and received.
#[derive(Args, Clone, Debug)]
pub(crate) struct SocketArguments {
    /// Send each datagram by a call of its own, so that a capture shows what is on the wire
    #[arg(long)]
    pub(crate) no_gso: bool,
    /// How datagrams travel; both ends must have the same
    #[arg(long, value_name = "CARRIER", default_value = "udp")]
    pub(crate) carrier: CarrierName,
    /// The IP protocol number of a carrier without UDP, one that is no other protocol's (148 to
    /// 254); both ends must have the same
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "NUMBER", default_value_t = 253, requires = "carrier",
          value_parser = clap::value_parser!(u8).range(148..=254))]
    pub(crate) ip_protocol: u8,
    #[cfg(all(target_os = "linux", feature = "nic"))]
    #[command(flatten)]
    pub(crate) nic: NicArguments,
}

/// A carrier, by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CarrierName {
    /// Over UDP
    Udp,
    /// Over an IP protocol of SMT's own, by raw sockets: needs root or the capability `net_raw`
    #[cfg(target_os = "linux")]
    Native,
    /// The same packets by a socket of AF_XDP, past the kernel's IP, at one address of an Ethernet
    /// interface: needs root or the capabilities `net_raw`, `net_admin` and `bpf`
    #[cfg(target_os = "linux")]
    Xdp,
    /// The same packets through the model of a NIC that seals records and cuts segments, whose
    /// network is the TUN device of `--tun`
    #[cfg(all(target_os = "linux", feature = "nic"))]
    Nic,
}

#[cfg(feature = "perf")]
impl CarrierName {
    /// As it is given to `--carrier`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            #[cfg(target_os = "linux")]
            Self::Native => "native",
            #[cfg(target_os = "linux")]
            Self::Xdp => "xdp",
            #[cfg(all(target_os = "linux", feature = "nic"))]
            Self::Nic => "nic",
        }
    }
}

impl SocketArguments {
    /// Applies them.
    pub(crate) fn apply<R>(&self, builder: Builder<R>) -> Builder<R> {
        match self.carrier {
            CarrierName::Udp => builder.udp(UdpOptions::new().segmentation_offload(!self.no_gso)),
            #[cfg(target_os = "linux")]
            CarrierName::Native => {
                builder.native(smt::NativeOptions::default().protocol(self.ip_protocol))
            }
            #[cfg(target_os = "linux")]
            CarrierName::Xdp => builder.xdp(smt::XdpOptions::default().protocol(self.ip_protocol)),
            #[cfg(all(target_os = "linux", feature = "nic"))]
            CarrierName::Nic => self.nic.apply(builder, self.ip_protocol),
        }
    }

    /// The failure to open an endpoint or to call. Between two carriers there is nothing but
    /// silence, which is told.
    pub(crate) fn told(&self, error: OpenError) -> Failure {
        let is_silence = match &error {
            OpenError::Connect(error) => is_silence(error.kind()),
            _ => false,
        };
        let failure = Failure::from(error);
        match is_silence && self.carrier != CarrierName::Udp {
            true => failure.and_text(self.only_heard_by()),
            false => failure,
        }
    }

    fn only_heard_by(&self) -> String {
        #[cfg(target_os = "linux")]
        let protocol = format!(" --ip-protocol {}", self.ip_protocol);
        #[cfg(not(target_os = "linux"))]
        let protocol = "";
        let carrier = self.carrier.to_possible_value();
        let carrier = carrier.as_ref().map_or("", |value| value.get_name());
        format!(
            "; only a server with a carrier of the same packets hears it, such as --carrier {carrier}{protocol}"
        )
    }

    /// Tells the work of the device that the carrier goes through, if there is one.
    pub(crate) fn tell_device_report(&self) {
        #[cfg(all(target_os = "linux", feature = "nic"))]
        if let Some(report) = self.nic.report() {
            standard_error::tell(report);
        }
    }

    /// The same options for another process of this command.
    #[cfg(feature = "perf")]
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--carrier".to_owned(), self.carrier.text().to_owned()];
        #[cfg(target_os = "linux")]
        arguments.extend(["--ip-protocol".to_owned(), self.ip_protocol.to_string()]);
        #[cfg(all(target_os = "linux", feature = "nic"))]
        arguments.extend(self.nic.to_arguments());
        if self.no_gso {
            arguments.push("--no-gso".to_owned());
        }
        arguments
    }
}

fn is_silence(error: &ErrorKind) -> bool {
    matches!(
        error,
        ErrorKind::Connect(
            ConnectError::NoAnswer(_) | ConnectError::NoServer | ConnectError::NotSmt(_)
        )
    )
}
