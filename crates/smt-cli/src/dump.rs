// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt dump`: a capture as one line per packet, and with a key log what is in them (`smt-dump`).

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use smt::DEFAULT_PORT;
use smt_dump::{DumpError, Keys, Wishes, dump};
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};
use crate::standard_error;

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
    let path = arguments.file.display();
    let capture = File::open(&arguments.file).doing(format!("opening {path}"))?;
    let wishes = Wishes {
        port: arguments.port,
        keys: arguments.key_log.as_deref().map(read_keys).transpose()?,
        directory: arguments.out.clone(),
    };
    let mut output = BufWriter::new(std::io::stdout().lock());
    let summary = match dump(BufReader::new(capture), wishes, &mut output) {
        Err(DumpError::Output(error)) => return Err(error.into()),
        Err(error @ DumpError::Message(..)) => return Err(error.into()),
        summary => summary.doing(path)?,
    };
    output.flush()?;
    if summary.is_cut_short {
        tracing::warn!("the capture ends in the middle of a frame");
    }
    standard_error::tell(format_args!("{}", summary.text));
    if summary.is_empty {
        let others: Vec<String> = summary.other_ports.iter().map(u16::to_string).collect();
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

fn read_keys(path: &Path) -> Result<Keys, Failure> {
    let bytes = std::fs::read(path).doing(format!("reading {}", path.display()))?;
    Keys::parse(&Zeroizing::new(bytes)).doing(path.display())
}
