// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a simulated network as a capture file.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::rc::Rc;
use std::str::FromStr;

use clap::Args;
use smt_sim::net::{CAPTURE_BYTES_MAX, Capture, CaptureTap, HostId, Tap, View};

use crate::failure::{Doing, Failure};
use crate::size::Size;

/// Options that choose the packets to capture.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Write packets into this file (pcap), as smt dump and Wireshark read it; it ends at 256 MB
    ///
    /// Without more, it has what all hosts send, before any fault. Packets of scenarios are not
    /// encrypted.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Capture the packets that this host sends and that reach it, as at its own cable
    #[arg(long, value_name = "H", requires = "capture", conflicts_with = "arriving")]
    host: Option<u32>,
    /// Capture what passes between a rack's switch and a spine, both ways
    #[arg(
        long,
        value_name = "rackR-spineS",
        requires = "capture",
        conflicts_with_all = ["arriving", "host"]
    )]
    link: Option<RackToSpine>,
    /// Capture what reaches all hosts, after faults and forgery
    #[arg(long, requires = "capture")]
    arriving: bool,
}

/// The network whose packets can be captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) hosts: u32,
    pub(super) racks: u32,
    pub(super) spines: u32,
}

/// A link, as it is typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct RackToSpine {
    rack: u32,
    spine: u32,
}

impl FromStr for RackToSpine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = || {
            let (rack, spine) = text.strip_prefix("rack")?.split_once("-spine")?;
            Some((rack.parse().ok()?, spine.parse().ok()?))
        };
        let (rack, spine) = numbers().ok_or("a link is named as rack0-spine3")?;
        Ok(Self { rack, spine })
    }
}

/// A capture that is being written.
pub(super) struct Recording {
    capture: Rc<RefCell<Capture>>,
    path: PathBuf,
}

impl Recording {
    /// Starts one if it was asked for.
    pub(super) fn start(arguments: &Arguments, plan: Plan) -> Result<Option<Self>, Failure> {
        let Some(path) = arguments.capture.clone() else {
            return Ok(None);
        };
        let view = view(arguments, plan)?;
        let file = File::create(&path).doing(format!("making {}", path.display()))?;
        let capture = Capture::create(Box::new(BufWriter::new(file)), view, CAPTURE_BYTES_MAX)
            .doing(format!("writing {}", path.display()))?;
        let capture = Rc::new(RefCell::new(capture));
        Ok(Some(Self { capture, path }))
    }

    /// The tap that watches the network.
    pub(super) fn tap(&self) -> Box<dyn Tap> {
        Box::new(CaptureTap(Rc::clone(&self.capture)))
    }

    /// Ends the file, and tells what is in it.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let path = self.path.display();
        let captured = self.capture.borrow_mut().finish();
        let captured = captured.doing(format!("writing {path}"))?;
        tracing::info!("{} packets in {path}", captured.packets);
        if captured.left_out > 0 {
            tracing::warn!(
                "{path} ended at its limit of {} with {} packets; {} came after",
                Size(CAPTURE_BYTES_MAX),
                captured.packets,
                captured.left_out
            );
        }
        Ok(())
    }
}

fn view(arguments: &Arguments, plan: Plan) -> Result<View, Failure> {
    let Plan { hosts, racks, spines } = plan;
    match (arguments.host, arguments.link) {
        (Some(host), _) if host >= hosts => {
            let last = hosts - 1;
            let text = format!("there is no host {host} here: give one from 0 to {last}");
            Err(Failure::new(text))
        }
        (Some(host), _) => Ok(View::Host(HostId(host))),
        (None, Some(_)) if spines == 0 => {
            let text = "there is one switch here, and no link to a spine: --host has what hosts' links carry";
            Err(Failure::new(text.to_owned()))
        }
        (None, Some(RackToSpine { rack, spine })) if rack >= racks || spine >= spines => {
            let last = format!("rack{}-spine{}", racks - 1, spines - 1);
            let text = format!(
                "there is no rack{rack}-spine{spine} here: give one from rack0-spine0 to {last}"
            );
            Err(Failure::new(text))
        }
        (None, Some(RackToSpine { rack, spine })) => Ok(View::Between([rack, racks + spine])),
        (None, None) if arguments.arriving => Ok(View::Arrived),
        (None, None) => Ok(View::Sent),
    }
}
