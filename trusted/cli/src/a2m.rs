// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted a2m`.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use smt_a2m::{A2m, Disk, Durability, Entry, LogId, Tail};
use smt_device_client::{AppendOnly, Client};

use crate::command_error::CommandError;
use crate::keys;
use crate::tail::{VerifyTailArguments, print_tail};

#[derive(Subcommand)]
pub(crate) enum A2mCommand {
    /// Makes the keys of a device of this program in a new directory. With --device none are needed
    Init {
        /// The directory
        directory: PathBuf,
    },
    /// Appends a text, or each line of standard input, and prints its number
    Append {
        #[command(flatten)]
        place: Place,
        /// The text; without it, lines are read, and all become durable together
        text: Option<String>,
        /// Does not move the anchor: a log from before this command is taken later
        #[arg(long)]
        fast: bool,
    },
    /// Prints an entry, verified
    Lookup {
        #[command(flatten)]
        place: Place,
        /// The sequence number
        number: u64,
        /// Reads what is stored, and verifies nothing of it
        #[arg(long)]
        unverified: bool,
    },
    /// Proves by a signature where a log ends
    Tail {
        #[command(flatten)]
        place: Place,
        /// Text that the client chose just now
        #[arg(long)]
        nonce: String,
    },
    /// Forgets all entries of a log before a number
    Truncate {
        #[command(flatten)]
        place: Place,
        /// The first number that stays
        head: u64,
        /// Text that the client chose just now
        #[arg(long)]
        nonce: String,
    },
    /// Verifies all entries of all logs, and prints where each begins and ends
    Verify {
        #[command(flatten)]
        memory: MemoryPlace,
    },
    /// Verifies by a device's public key where a log ended, as `tail` printed it on another host
    VerifyTail(VerifyTailArguments),
}

/// A memory.
#[derive(Args)]
pub(crate) struct MemoryPlace {
    /// The directory
    directory: PathBuf,
    /// The socket of a device process that remembers logs: `smt-trusted device run --memory`.
    /// Without it this program attests with the keys of the directory, and believes its files
    #[arg(long, value_name = "SOCKET")]
    device: Option<PathBuf>,
}

/// A log.
#[derive(Args)]
pub(crate) struct Place {
    #[command(flatten)]
    memory: MemoryPlace,
    /// The number of the log, from 1; 0 is the manifest
    log: u32,
}

impl A2mCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let place = match &self {
            Self::Init { directory } => return init(directory),
            Self::VerifyTail(arguments) => return Ok(arguments.run()?),
            Self::Verify { memory } => memory,
            Self::Append { place, .. }
            | Self::Lookup { place, .. }
            | Self::Tail { place, .. }
            | Self::Truncate { place, .. } => &place.memory,
        };
        let is_fast = matches!(self, Self::Append { fast: true, .. });
        let durability = if is_fast { Durability::Fast } else { Durability::Anchored };
        let MemoryPlace { directory, device } = place;
        let Some(socket) = device else {
            let reads = matches!(self, Self::Lookup { .. } | Self::Verify { .. });
            let memory = if reads { open_to_read(directory) } else { open(directory, durability) };
            return self.run_on(memory?);
        };
        let device = Client::connect(socket)?;
        let memory = A2m::open_with(device, Disk::open(directory, durability)?)?;
        self.run_on(memory)
    }

    fn run_on<D: AppendOnly>(self, mut memory: A2m<Disk, D>) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        match self {
            Self::Append { place, text, .. } => {
                let numbers = append(&mut memory, LogId(place.log), text)?;
                numbers.iter().try_for_each(|number| writeln!(out, "{number}"))?;
            }
            Self::Lookup { place, number, unverified } => {
                let log = LogId(place.log);
                let entry = if unverified {
                    memory.lookup(log, number)?
                } else {
                    memory.verified_lookup(log, number)?
                };
                out.write_all(&entry.context)?;
                out.write_all(b"\n")?;
            }
            Self::Tail { place, nonce } => {
                let tail: Tail = memory.tail(LogId(place.log), nonce.as_bytes())?;
                print_tail(&mut out, &tail, &memory.public_key())?;
            }
            Self::Truncate { place, head, nonce } => {
                let proof = memory.truncate(LogId(place.log), head, nonce.as_bytes())?;
                writeln!(out, "log {} begins at {head}", place.log)?;
                writeln!(out, "manifest entry {}", proof.entry.statement.sequence)?;
            }
            Self::Verify { .. } => {
                for (log, lowest, highest) in memory.logs() {
                    writeln!(out, "log {}: {lowest} to {highest}", log.0)?;
                }
            }
            Self::Init { .. } | Self::VerifyTail(_) => unreachable!("neither has a memory"),
        }
        Ok(())
    }
}

fn init(directory: &Path) -> Result<(), CommandError> {
    keys::create(directory)?;
    let key = open_to_read(directory)?.public_key();
    Ok(writeln!(io::stdout().lock(), "public key {}", HEXLOWER.encode(&key))?)
}

/// Appends, and returns the numbers when all are durable.
fn append<D: AppendOnly>(
    memory: &mut A2m<Disk, D>,
    log: LogId,
    text: Option<String>,
) -> Result<Vec<u64>, CommandError> {
    let mut one = |text: &str| memory.append(log, text.as_bytes());
    let entries: Vec<Entry> = match text {
        Some(text) => vec![one(&text)?],
        None => {
            let lines = io::stdin().lock().lines();
            lines.map(|line| Ok(one(&line?)?)).collect::<Result<_, CommandError>>()?
        }
    };
    memory.commit()?;
    Ok(entries.iter().map(|entry| entry.statement.sequence).collect())
}

/// Opens the memory of keys in a new epoch.
fn open(directory: &Path, durability: Durability) -> Result<A2m<Disk>, CommandError> {
    let identity = keys::read(directory)?;
    let mut disk = Disk::open(directory, durability)?;
    let epoch = disk.next_epoch()?;
    Ok(A2m::open(identity, epoch, disk)?)
}

fn open_to_read(directory: &Path) -> Result<A2m<Disk>, CommandError> {
    let identity = keys::read(directory)?;
    let disk = Disk::open(directory, Durability::Anchored)?;
    Ok(A2m::open_to_read(identity, disk)?)
}
