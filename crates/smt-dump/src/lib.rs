// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of a capture of SMT: a line per packet, and with a key log its records and
//! messages; or a line per RPC (`smt dump`).
//!
//! 1. Frames come out of the file (`capture`: `pcap`, `pcapng`), datagrams out of frames (`link`,
//!    `datagram`), packets of PSP among them (`psp`).
//! 2. A datagram that the kernel has not yet cut into segments is cut here (`segments`).
//! 3. Packets are parsed (`dissection`); handshakes tell the sizes of records (`terms`).
//! 4. With keys (`key_log`), control tags are checked, packets of PSP opened by the associations in
//!    control packets (`associations`), and records opened and put together (`messages`).
//! 5. A capture with the plaintext is written (`decrypted_capture`).
//! 6. Packets are shown (`view`, `row`, `packet_json`), or put together to RPCs (`rpcs`, `rpc`).
//!
//! A capture is believed as little as the network is: any bytes are told or refused. Not here:
//! files' names and the command's options (`smt-cli`).

#![forbid(unsafe_code)]

mod associations;
mod capture;
mod coverage;
mod datagram;
mod decrypted_capture;
mod dissection;
mod error;
mod key_log;
mod link;
mod messages;
mod packet_json;
mod pcap;
mod pcapng;
mod psp;
mod ranges;
mod row;
mod rpc;
mod rpcs;
mod segments;
mod terms;
mod ticket_flight;
mod view;
mod whole_message;

use std::io::{Read, Write};
use std::path::PathBuf;

use capture::Capture;
use dissection::Dissection;
pub use error::DumpError;
pub use key_log::{KeyLogError, Keys};
use smt_wire::{MessageId, SessionIndex};

/// The parts of a capture that are to be shown, and how.
#[derive(Default)]
pub struct Wishes {
    /// The server's port.
    pub port: u16,
    /// The IP protocol number of packets without UDP (SPEC §15.2), and in PSP (§15.3), if such are
    /// to be shown.
    pub native_protocol: Option<u8>,
    /// Opens records and checks tags.
    pub keys: Option<Keys>,
    /// Whole messages are written here, a file each that only its owner may read.
    pub directory: Option<PathBuf>,
    /// A capture with the plaintext of what has opened is written here.
    pub decrypted: Option<Box<dyn Write>>,
    /// A JSON object for each packet or RPC instead of lines for people.
    pub is_json: bool,
    /// RPCs instead of packets.
    pub is_by_rpc: bool,
    /// Only this session, by either of its indexes.
    pub session: Option<SessionIndex>,
    /// Only packets that name this message.
    pub rpc: Option<MessageId>,
    /// The capture is still being made: what was read is shown before more is waited for.
    pub is_live: bool,
}

/// A summary of a capture, shown after its packets.
#[derive(Debug)]
pub struct Summary {
    /// A line for people.
    pub text: String,
    /// Nothing was of the port.
    pub is_empty: bool,
    /// Some of the other ports to which datagrams went, in the order of their first one.
    pub other_ports: Vec<u16>,
    /// The file ends in the middle of a frame, as of a tcpdump that was killed.
    pub is_cut_short: bool,
}

/// Reads a capture, pcap or pcapng, and writes a line for each packet, and for each record and
/// message that has opened; or what else is wished.
///
/// # Errors
/// The input is no capture or contradicts itself, or something cannot be read or written.
pub fn dump(
    capture: impl Read,
    wishes: Wishes,
    output: &mut dyn Write,
) -> Result<Summary, DumpError> {
    let mut capture = Capture::open(capture)?;
    if let Some(directory) = &wishes.directory {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|error| DumpError::Message(directory.clone(), error))?;
    }
    let (port, is_live) = (wishes.port, wishes.is_live);
    let native = wishes.native_protocol;
    let mut dissection = Dissection::new(wishes);
    let (mut frames, mut other_ports) = (0_u64, Vec::new());
    while let Some(frame) = capture.next_frame()? {
        frames += 1;
        let missing = frame.original_length - frame.bytes.len();
        let Some(datagram) = link::ip_packet(frame.link, &frame.bytes)
            .and_then(|packet| datagram::of_ip(packet, missing, native))
        else {
            continue;
        };
        let ports = [datagram.source.port(), datagram.target.port()];
        if ports.contains(&port) {
            dissection.show(frame.time, &datagram, output)?;
            if is_live {
                output.flush()?;
            }
        } else if !other_ports.contains(&ports[1]) && other_ports.len() < PORTS_TOLD_MAX {
            other_ports.push(ports[1]);
        }
    }
    dissection.finish(output)?;
    Ok(Summary {
        text: format!("{frames} frames: {}", dissection.summary()),
        is_empty: dissection.is_empty(),
        other_ports,
        is_cut_short: capture.is_cut_short(),
    })
}

/// A hint needs no more.
const PORTS_TOLD_MAX: usize = 8;
