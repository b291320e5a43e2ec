// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted a2m`.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use smt_a2m::{A2m, Disk, Durability, Entry, LogId, Tail, verify_tail};

use crate::command_error::CommandError;
use crate::keys;

#[derive(Subcommand)]
pub(crate) enum A2mCommand {
    /// Makes the keys of a device in a new directory
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
        /// The directory
        directory: PathBuf,
    },
}

/// A log.
#[derive(Args)]
pub(crate) struct Place {
    /// The directory
    directory: PathBuf,
    /// The number of the log, from 1; 0 is the manifest
    log: u32,
}

impl A2mCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        match self {
            Self::Init { directory } => {
                keys::create(&directory)?;
                let key = open_to_read(&directory)?.public_key();
                writeln!(out, "public key {}", HEXLOWER.encode(&key))?;
            }
            Self::Append { place, text, fast } => {
                let durability = if fast { Durability::Fast } else { Durability::Anchored };
                let numbers = append(&place, text, durability)?;
                numbers.iter().try_for_each(|number| writeln!(out, "{number}"))?;
            }
            Self::Lookup { place, number, unverified } => {
                let memory = open_to_read(&place.directory)?;
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
                let mut memory = open(&place.directory, Durability::Anchored)?;
                let tail = memory.tail(LogId(place.log), nonce.as_bytes())?;
                let key = memory.public_key();
                let verified = verify_tail(&key, LogId(place.log), nonce.as_bytes(), &tail);
                print(&mut out, &tail, &key, verified)?;
            }
            Self::Truncate { place, head, nonce } => {
                let mut memory = open(&place.directory, Durability::Anchored)?;
                let proof = memory.truncate(LogId(place.log), head, nonce.as_bytes())?;
                writeln!(out, "log {} begins at {head}", place.log)?;
                writeln!(out, "manifest entry {}", proof.entry.statement.sequence)?;
            }
            Self::Verify { directory } => {
                let memory = open_to_read(&directory)?;
                for (log, lowest, highest) in memory.logs() {
                    writeln!(out, "log {}: {lowest} to {highest}", log.0)?;
                }
            }
        }
        Ok(())
    }
}

/// Appends, and returns the numbers when all are durable.
fn append(
    place: &Place,
    text: Option<String>,
    durability: Durability,
) -> Result<Vec<u64>, CommandError> {
    let mut memory = open(&place.directory, durability)?;
    let mut one = |text: &str| memory.append(LogId(place.log), text.as_bytes());
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

/// Opens the memory in a new epoch.
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

fn print(out: &mut impl Write, tail: &Tail, key: &[u8; 32], verified: bool) -> io::Result<()> {
    let entry = &tail.entry;
    writeln!(out, "number {}", entry.statement.sequence)?;
    writeln!(out, "digest before {}", HEXLOWER.encode(&entry.statement.previous))?;
    writeln!(out, "attestation {}", HEXLOWER.encode(&entry.attestation.0))?;
    writeln!(out, "signature {}", HEXLOWER.encode(&tail.signature))?;
    writeln!(out, "public key {}", HEXLOWER.encode(key))?;
    writeln!(out, "{}", if verified { "verified" } else { "does not verify" })
}
