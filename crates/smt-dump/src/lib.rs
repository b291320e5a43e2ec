// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of a capture of SMT: a line per packet, and with a key log its records and
//! messages; or a line per RPC (`smt dump`).
//!
//! 1. Frames come out of the file (`capture`: `magic`, `pcap`, `pcapng`), datagrams out of frames
//!    (`link`, `datagram`), packets of PSP among them (`psp`); other frames are counted by what
//!    they are (`passed_over`).
//! 2. A datagram that the kernel has not yet cut into segments is cut here (`segments`).
//! 3. Packets are parsed (`dissection`); handshakes tell the sizes of records (`terms`).
//! 4. With keys (`key_log`), control tags are checked, packets of PSP opened by the associations in
//!    control packets (`associations`), and records opened and put together (`messages`).
//! 5. A capture with the plaintext is written (`decrypted_capture`).
//! 6. Packets are shown (`view`, `row`, `packet_json`), or put together to RPCs (`rpcs`, `rpc`).
//!
//! A capture is believed as little as the network is: any bytes are told or refused. All that
//! was read before an error is shown like a whole capture. Not here:
//! files' names and the command's options (`smt-cli`).

#![forbid(unsafe_code)]

mod associations;
mod capture;
mod coverage;
mod datagram;
mod decrypted_capture;
mod dissection;
mod error;
mod frame;
mod key_log;
mod link;
mod magic;
mod messages;
mod packet_json;
mod passed_over;
mod pcap;
mod pcapng;
mod psp;
mod ranges;
mod row;
mod rpc;
mod rpcs;
mod segments;
mod summary;
mod terms;
mod ticket_flight;
mod view;
mod whole_message;

use std::io::{Read, Write};
use std::path::PathBuf;

use capture::Capture;
use dissection::Dissection;
pub use error::DumpError;
use frame::Frame;
pub use key_log::{KeyLogError, Keys};
pub use passed_over::PassedOver;
use smt_wire::{MessageId, SessionIndex};
pub use summary::Summary;

/// Adds the keys that were logged since it was called last.
pub type MoreKeys = Box<dyn FnMut(&mut Keys)>;

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
    /// Asked to add what was logged meanwhile, before a packet is told to have no key.
    pub more_keys: Option<MoreKeys>,
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

/// Reads a capture, pcap or pcapng, and writes a line for each packet, and for each record and
/// message that has opened; or what else is wished. A capture that is damaged is shown up to there
/// ([`Summary::stopped_by`]).
///
/// # Errors
/// [`DumpError::NoCapture`] and [`DumpError::Capture`]: the input is no capture, or cannot be read
/// up to the first frame. [`DumpError::Message`]: the directory of messages cannot be made.
/// [`DumpError::Output`]: the output takes no more lines.
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
    let mut reading = Reading::new(wishes);
    let read = but_for_output(reading.read(&mut capture, output))?;
    let finished = but_for_output(reading.dissection.finish(output))?;
    let Reading { dissection, passed_over, other_ports, .. } = reading;
    let mut text = format!("{} frames: {}", capture.frames(), dissection.summary());
    if passed_over.is_any() {
        text += &format!("; frames passed over: {passed_over}");
    }
    Ok(Summary {
        text,
        frames: capture.frames(),
        packets: dissection.packets(),
        passed_over,
        other_ports,
        is_cut_short: capture.is_cut_short(),
        stopped_by: read.or(finished),
    })
}

/// An error after which the rest can be shown; `Err` if the output takes no more.
fn but_for_output(result: Result<(), DumpError>) -> Result<Option<DumpError>, DumpError> {
    match result {
        Err(error @ DumpError::Output(_)) => Err(error),
        result => Ok(result.err()),
    }
}

/// A capture that is being read.
struct Reading {
    port: u16,
    native_protocol: Option<u8>,
    is_live: bool,
    dissection: Dissection,
    passed_over: PassedOver,
    other_ports: Vec<u16>,
}

impl Reading {
    fn new(wishes: Wishes) -> Self {
        Self {
            port: wishes.port,
            native_protocol: wishes.native_protocol,
            is_live: wishes.is_live,
            dissection: Dissection::new(wishes),
            passed_over: PassedOver::default(),
            other_ports: Vec::new(),
        }
    }

    /// Shows all frames up to the end, or up to an error.
    fn read<R: Read>(
        &mut self,
        capture: &mut Capture<R>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        while let Some(frame) = capture.next_frame()? {
            self.show(&frame, output)?;
            // The end may be far, and until then nobody would learn that messages are missing.
            if self.is_live && self.dissection.has_failed_to_write() {
                break;
            }
        }
        Ok(())
    }

    fn show(&mut self, frame: &Frame, output: &mut dyn Write) -> Result<(), DumpError> {
        let missing = frame.original_length - frame.bytes.len();
        let datagram = link::ip_packet(frame.link, frame.order, &frame.bytes)
            .and_then(|packet| datagram::of_ip(packet, missing, self.native_protocol));
        let datagram = match datagram {
            Ok(datagram) => datagram,
            Err(reason) => {
                self.passed_over.count(reason);
                return Ok(());
            }
        };
        let ports = [datagram.source.port(), datagram.target.port()];
        if ports.contains(&self.port) {
            self.dissection.show(frame.time, &datagram, output)?;
            if self.is_live {
                output.flush()?;
            }
        } else if !self.other_ports.contains(&ports[1]) && self.other_ports.len() < PORTS_TOLD_MAX {
            self.other_ports.push(ports[1]);
        }
        Ok(())
    }
}

/// A hint needs no more.
const PORTS_TOLD_MAX: usize = 8;
