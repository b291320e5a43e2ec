// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a simulated network as a capture file.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use smt_sim::{CAPTURE_BYTES_MAX, Capture, CaptureTap, HostId, Tap, View};

use crate::failure::{Doing, Failure};
use crate::size::Size;

/// What is captured.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Write packets into this file (pcap), as smt dump and Wireshark read it; it ends at 256 MB
    ///
    /// Without more, it has what all hosts send, before any fault. Packets of scenarios are not encrypted.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Capture what this host sends and what reaches it, as at its own cable
    #[arg(
        long,
        value_name = "H",
        requires = "capture",
        conflicts_with = "arriving"
    )]
    host: Option<u32>,
    /// Capture what reaches all hosts, after faults and forgery
    #[arg(long, requires = "capture")]
    arriving: bool,
}

/// A capture that is being written.
pub(super) struct Recording {
    capture: Rc<RefCell<Capture>>,
    path: PathBuf,
}

impl Recording {
    /// Begins one if it was asked for. So many hosts there are.
    pub(super) fn begin(arguments: &Arguments, hosts: u32) -> Result<Option<Self>, Failure> {
        let Some(path) = arguments.capture.clone() else {
            return Ok(None);
        };
        let view = match arguments.host {
            Some(host) if host >= hosts => {
                let last = hosts - 1;
                let text = format!("there is no host {host} here: give one from 0 to {last}");
                return Err(Failure::new(text));
            }
            Some(host) => View::Host(HostId(host)),
            None if arguments.arriving => View::Arrived,
            None => View::Sent,
        };
        let file = File::create(&path).doing(format!("making {}", path.display()))?;
        let capture = Capture::begin(Box::new(BufWriter::new(file)), view, CAPTURE_BYTES_MAX)
            .doing(format!("writing {}", path.display()))?;
        let capture = Rc::new(RefCell::new(capture));
        Ok(Some(Self { capture, path }))
    }

    /// What watches the network.
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
