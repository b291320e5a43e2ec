// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt dump`: a capture as one line per packet, and with a key log what is in them.
//!
//! 1. Frames come out of the file (`capture`), datagrams out of frames (`link`, `datagram`).
//! 2. A datagram that the kernel has not yet cut into segments is cut here (`segments`).
//! 3. Packets are parsed and printed; handshakes tell the sizes of records (`terms`).
//! 4. With keys (`key_log`), control tags are checked, and records opened and put together (`messages`).

mod capture;
mod coverage;
mod datagram;
mod dissection;
mod key_log;
mod link;
mod messages;
mod pcap;
mod pcapng;
mod segments;
mod terms;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use smt::DEFAULT_PORT;

use crate::failure::{Doing, Failure};
use crate::standard_error;
use capture::Capture;
use dissection::Dissection;
use key_log::Keys;

/// Show what is in a capture (pcap or pcapng)
///
/// Captures are made with, for example: tcpdump -w FILE udp port 17379
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The capture
    file: PathBuf,
    /// Open records and check tags with the secrets in this file
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// Write each whole message into this directory
    #[arg(long, value_name = "DIR", requires = "key_log")]
    out: Option<PathBuf>,
    /// The server's port
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut capture = Capture::open(&arguments.file)?;
    let keys = arguments.key_log.as_deref().map(Keys::read).transpose()?;
    if let Some(directory) = &arguments.out {
        std::fs::create_dir_all(directory).doing(format!("making {}", directory.display()))?;
    }
    let mut dissection = Dissection::new(keys, arguments.out.clone());
    let mut output = BufWriter::new(std::io::stdout().lock());
    let (mut frames, mut other_ports) = (0_u64, Vec::new());
    while let Some(frame) = capture.next_frame()? {
        frames += 1;
        let Some(datagram) = link::ip_packet(frame.link, &frame.bytes)
            .and_then(|packet| datagram::udp(packet, frame.original_length - frame.bytes.len()))
        else {
            continue;
        };
        let ports = [datagram.source.port(), datagram.target.port()];
        if ports.contains(&arguments.port) {
            dissection.show(frame.time, &datagram, &mut output)?;
        } else if !other_ports.contains(&ports[1]) && other_ports.len() < PORTS_TOLD_MAX {
            other_ports.push(ports[1]);
        }
    }
    output.flush()?;
    standard_error::tell(format_args!("{frames} frames: {}", dissection.summary()));
    if dissection.is_empty() {
        let others: Vec<String> = other_ports.iter().map(ToString::to_string).collect();
        let others = if others.is_empty() {
            "none".to_owned()
        } else {
            others.join(", ")
        };
        standard_error::tell(format_args!(
            "nothing is of port {}; other UDP ports in the capture: {others} (choose one with --port)",
            arguments.port
        ));
    }
    Ok(())
}

/// A hint needs no more.
const PORTS_TOLD_MAX: usize = 8;
