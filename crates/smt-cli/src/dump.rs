// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt dump`: a capture as one line per packet or per RPC, and with a key log what is in them
//! (`smt-dump`). The log of a capture that is still being made is read as it grows (`live_keys`).

mod live_keys;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use live_keys::LiveKeys;
use smt::DEFAULT_PORT;
use smt_dump::{DumpError, Keys, MoreKeys, Summary, Wishes, dump};
use smt_wire::{MessageId, SessionIndex};
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};
use crate::interrupt::Interrupt;
use crate::standard_error;
use crate::standard_output::standard_output;

/// Show what is in a capture (pcap or pcapng)
///
/// Captures are made with, for example: tcpdump -w FILE udp port 17379. One that is still being
/// made is shown as it grows: tcpdump -U -w - udp port 17379 | smt dump -
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The capture; - is standard input
    file: PathBuf,
    /// Open records and check tags with the secrets in this file. For a capture that is still being
    /// made it may be missing yet, and is read on as it grows
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// Write each whole message into this directory
    #[arg(long, value_name = "DIR", requires = "key_log")]
    out: Option<PathBuf>,
    /// Write a capture with the plaintext of what has opened into this new file, for Wireshark; its
    /// packets are held in memory until the end
    #[arg(long, value_name = "FILE", requires = "key_log")]
    decrypt: Option<PathBuf>,
    /// The server's port
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// The IP protocol number of packets without UDP
    #[arg(long, value_name = "NUMBER", default_value_t = 253)]
    ip_protocol: u8,
    /// Show a row for each RPC instead of each packet: sizes, latency, retransmissions, outcome.
    /// RPCs that travel in bundles are seen with a key log alone
    #[arg(long)]
    rpcs: bool,
    /// One JSON object per line, as docs/DUMP.md describes them
    #[arg(long)]
    json: bool,
    /// Show one session alone: its index of either direction, as lines have it (16 hexadecimal
    /// digits)
    #[arg(long, value_name = "INDEX", value_parser = session)]
    session: Option<SessionIndex>,
    /// Show one RPC alone: packets that name this id
    #[arg(long, value_name = "ID", value_parser = message_id)]
    rpc: Option<MessageId>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_standard = arguments.file == Path::new("-");
    let path = match is_standard {
        true => "standard input".to_owned(),
        false => arguments.file.display().to_string(),
    };
    let is_live = is_standard || is_pipe(&arguments.file);
    let capture: Box<dyn Read> = match is_standard {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(&arguments.file).doing(format!("opening {path}"))?),
    };
    // Ctrl-C ends the program that makes the capture, and so the capture; a second one ends this.
    let _interrupt = is_live.then(Interrupt::on_signals).transpose()?;
    let (keys, more_keys) = match &arguments.key_log {
        // A pipe of keys is read to its end.
        Some(log) if is_live && !is_pipe(log) => {
            let (mut log, mut keys) = (LiveKeys::new(log), Keys::default());
            log.begin(&mut keys)?;
            (Some(keys), Some(Box::new(move |keys: &mut Keys| log.read_on(keys)) as MoreKeys))
        }
        Some(log) => (Some(read_keys(log)?), None),
        None => (None, None),
    };
    let wishes = Wishes {
        port: arguments.port,
        native_protocol: Some(arguments.ip_protocol),
        decrypted: arguments.decrypt.as_deref().map(new_file).transpose()?,
        keys,
        more_keys,
        directory: arguments.out.clone(),
        is_json: arguments.json,
        is_by_rpc: arguments.rpcs,
        session: arguments.session,
        rpc: arguments.rpc,
        is_live,
    };
    let mut output = BufWriter::new(standard_output());
    let summary = match dump(BufReader::new(capture), wishes, &mut output) {
        Err(DumpError::Output(error)) => return Err(error.into()),
        summary => summary.doing(&path)?,
    };
    output.flush()?;
    tell(&summary, arguments.port);
    match summary.stopped_by {
        Some(error @ (DumpError::Message(..) | DumpError::Decrypted(_))) => Err(error.into()),
        Some(error) => Err(error).doing(path),
        None if summary.is_unread() => Err(unreadable(&summary, &path)),
        None => Ok(()),
    }
}

/// Whether a program writes there what is read here.
fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.file_type().is_fifo())
}

/// The failure of a capture without a frame that can be read.
fn unreadable(summary: &Summary, path: &str) -> Failure {
    Failure::new(format!(
        "{path}: no frame can be read here ({}); capture with tcpdump -i any, or have another program \
        write it as Ethernet or raw IP",
        summary.passed_over
    ))
}

/// A file of plaintext, which only its owner may read.
fn new_file(path: &Path) -> Result<Box<dyn Write>, Failure> {
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let file = file.doing(format!("making {}", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn tell(summary: &Summary, port: u16) {
    if summary.is_cut_short {
        tracing::warn!("the capture ends in the middle of a frame");
    }
    standard_error::tell(format_args!("{}", summary.text));
    if summary.packets > 0 || summary.is_unread() {
        return;
    }
    let others: Vec<String> = summary.other_ports.iter().map(|port| port_text(*port)).collect();
    let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    standard_error::tell(format_args!(
        "nothing is of port {port}; other ports in the capture: {others} (choose one with --port)"
    ));
}

/// A port, and the tunnel that is usually behind it.
fn port_text(port: u16) -> String {
    match port {
        4500 => format!("{port} (ESP, not read)"),
        4789 => format!("{port} (VXLAN, not read)"),
        6081 => format!("{port} (Geneve, not read)"),
        _ => port.to_string(),
    }
}

fn session(text: &str) -> Result<SessionIndex, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let index = u64::from_str_radix(digits, 16).map(SessionIndex);
    index.map_err(|_| "give the hexadecimal digits that lines have behind `session`".to_owned())
}

fn message_id(text: &str) -> Result<MessageId, String> {
    let id = text.parse().map(MessageId);
    id.map_err(|_| "give the number that lines have behind `id`".to_owned())
}

fn read_keys(path: &Path) -> Result<Keys, Failure> {
    let bytes = std::fs::read(path).doing(format!("reading {}", path.display()))?;
    Keys::parse(&Zeroizing::new(bytes)).doing(path.display())
}
