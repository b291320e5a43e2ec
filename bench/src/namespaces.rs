// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a measurement takes place: on loopback, or across two network namespaces and a veth pair.
//!
//! A namespace belongs to a process that does nothing but keep it ([`hold`]) and that ends with its
//! input: whatever happens to the run, namespaces and devices go with it. Needs root, `ip`,
//! `unshare` and `nsenter`, for loss also `tc`.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;

use crate::failure::{Doing, Failure};
use crate::process::Process;
use crate::server;

/// Where the two processes run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Pin {
    /// Each on a core of its own
    Split,
    /// Wherever the scheduler puts them
    None,
}

impl Pin {
    /// The end of a place's name.
    fn suffix(self) -> &'static str {
        match self {
            Self::Split => "",
            Self::None => " unpinned",
        }
    }
}

/// A path between client and server.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its name in tables.
    pub(crate) name: String,
    pub(crate) mtu: u32,
    /// The server's address.
    pub(crate) server: IpAddr,
    /// How segmentation offload is treated on the way.
    pub(crate) offload: &'static str,
    /// Whether both sides stay on cores of their own.
    pub(crate) pin: Pin,
    namespaces: Option<(Process, Process)>,
}

impl Place {
    /// The loopback device.
    pub(crate) fn loopback(pin: Pin) -> Result<Self, Failure> {
        let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu")?;
        Ok(Self {
            name: format!("loopback{}", pin.suffix()),
            mtu: mtu.trim().parse()?,
            pin,
            server: Ipv4Addr::LOCALHOST.into(),
            offload: WHOLE,
            namespaces: None,
        })
    }

    /// Two namespaces. `loss_percent` of IPv4 packets are dropped in each direction; then what is
    /// sent is segmented before it is, so that packets are no larger than the MTU.
    pub(crate) fn veth(mtu: u32, loss_percent: Option<f64>, pin: Pin) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::new("network namespaces need root; --on loopback does not"));
        }
        let (client, server) = (holder()?, holder()?);
        let link = format!(
            "ip link add {DEVICE} mtu {mtu} netns {} type veth peer name {DEVICE} mtu {mtu} netns {}",
            client.id(),
            server.id()
        );
        command(&link)?;
        for (end, address) in [(&client, CLIENT), (&server, SERVER)] {
            let inside = |text: &str| command(&format!("nsenter -t {} -n {text}", end.id()));
            inside(&format!("ip address add {address}/24 dev {DEVICE}"))?;
            inside("ip link set lo up")?;
            inside(&format!("ip link set {DEVICE} up"))?;
            if let Some(percent) = loss_percent {
                inside(&format!("ip link set {DEVICE} gso_max_segs 1"))?;
                inside(&format!("tc qdisc add dev {DEVICE} clsact"))?;
                let program = lottery(percent);
                inside(&format!(
                    "tc filter add dev {DEVICE} ingress protocol ip bpf da bytecode {program}"
                ))?;
            }
        }
        Ok(Self {
            name: match loss_percent {
                Some(percent) => format!("veth {mtu}, {percent} % loss"),
                None => format!("veth {mtu}{}", pin.suffix()),
            },
            mtu,
            pin,
            server: SERVER.into(),
            offload: if loss_percent.is_some() { CUT } else { WHOLE },
            namespaces: Some((client, server)),
        })
    }

    /// This core, if processes stay on cores of their own here.
    pub(crate) fn core(&self, core: usize) -> Option<usize> {
        (self.pin == Pin::Split).then_some(core)
    }

    /// The command prefix that starts a client there.
    pub(crate) fn client_wrapper(&self) -> Vec<String> {
        enter(self.namespaces.as_ref().map(|(client, _)| client))
    }

    /// The command prefix that starts a server there.
    pub(crate) fn server_wrapper(&self) -> Vec<String> {
        enter(self.namespaces.as_ref().map(|(_, server)| server))
    }
}

/// Keeps this process's namespace until the input ends.
pub(crate) fn hold() -> Result<(), Failure> {
    server::say(HOLDING)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn holder() -> Result<Process, Failure> {
    let wrapper = ["unshare", "--net", "--"].map(str::to_owned);
    let mut process = Process::start(&wrapper, &["hold"])?;
    process.hear(START).doing("making a network namespace")?;
    Ok(process)
}

fn enter(holder: Option<&Process>) -> Vec<String> {
    let Some(holder) = holder else {
        return Vec::new();
    };
    let id = holder.id().to_string();
    ["nsenter", "-t", &id, "-n", "--"].map(str::to_owned).into()
}

fn command(text: &str) -> Result<(), Failure> {
    // Blanks within a word are written as `~`.
    let mut words = text.split(' ').map(|word| word.replace('~', " "));
    let mut command = Command::new(words.next().unwrap_or_default());
    let output = command.args(words).output().doing(text)?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("`{text}`: {}", words.trim())))
}

/// A classic BPF program of four instructions, as `tc` reads it: a random number above the limit
/// drops the packet (2), else it goes its way (-1).
fn lottery(percent: f64) -> String {
    let limit = ((1.0 - percent / 100.0) * 2_f64.powi(32)) as u32;
    format!("4,32~0~0~{RANDOM},37~0~1~{limit},6~0~0~2,6~0~0~4294967295")
}

/// SKF_AD_OFF + SKF_AD_RANDOM: where classic BPF reads a random number.
const RANDOM: u32 = 0xffff_f000 + 56;
const DEVICE: &str = "smtbench0";
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const HOLDING: &str = "holding";
const START: Duration = Duration::from_secs(10);
const WHOLE: &str = "on: super-packets of TCP and UDP pass whole";
const CUT: &str = "off: packets are cut to the MTU before they leave";

#[cfg(test)]
mod tests {
    #[test]
    fn one_in_a_hundred_is_above_the_limit() {
        let program = super::lottery(1.0);
        assert_eq!(program, "4,32~0~0~4294963256,37~0~1~4252017623,6~0~0~2,6~0~0~4294967295");
    }
}
