// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tails as text, and `smt-trusted a2m verify-tail` for whoever has no key of the device.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;
use data_encoding::HEXLOWER;
use smt_a2m::{End, Entry, EntryKind, LogId, Statement, Tail, TailError, verify_tail};
use smt_attestation::{ATTESTATION_LEN, Attestation, PUBLIC_KEY_LEN, SIGNATURE_LEN};

/// A longer text is no tail.
const LEN_MAX: u64 = 64 << 10;

/// Verifies where a log ended after a nonce was chosen
#[derive(Args)]
pub(crate) struct VerifyTailArguments {
    /// The number of the log
    log: u32,
    /// The device's public key, as `smt-trusted device show` or its maker printed it: not the one
    /// that came with the tail
    #[arg(long, value_name = "HEX", value_parser = hexadecimal::<PUBLIC_KEY_LEN>)]
    key: [u8; PUBLIC_KEY_LEN],
    /// The text that was given to `tail`, chosen for this tail alone
    #[arg(long)]
    nonce: String,
    /// An end of the log that was verified before: what followed `known`
    #[arg(long, value_name = "NUMBER:DIGEST", value_parser = end)]
    known: Option<End>,
    /// The file with what `tail` printed; without it, standard input
    file: Option<PathBuf>,
}

/// Why a tail proves nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyTailError {
    /// The file cannot be read.
    #[error("your files: {0} cannot be read")]
    Read(String, #[source] io::Error),
    /// The text is no tail.
    #[error("your files: {0} is not what `smt-trusted a2m tail` printed")]
    Malformed(String),
    /// It proves nothing.
    #[error("the tail or its sender: {0}")]
    Unproven(TailError),
    /// The log is not the one that the client knows.
    #[error("the host of the log: {0}")]
    Broken(TailError),
    /// Standard output failed.
    #[error("the operating system: standard output failed")]
    Output(#[from] io::Error),
}

impl From<TailError> for VerifyTailError {
    fn from(error: TailError) -> Self {
        match error {
            TailError::RolledBack { .. } | TailError::Forked(_) => Self::Broken(error),
            _ => Self::Unproven(error),
        }
    }
}

impl VerifyTailArguments {
    pub(crate) fn run(&self) -> Result<(), VerifyTailError> {
        let (log, nonce) = (LogId(self.log), self.nonce.as_bytes());
        let tail = self.read()?;
        let end = verify_tail(&self.key, log, nonce, &tail, self.known)?;
        let epoch = tail.entry.attestation.claim().map_or(0, |claim| claim.epoch.0);
        let mut out = io::stdout().lock();
        writeln!(out, "log {} ends with entry {}", self.log, end.sequence)?;
        writeln!(out, "epoch {epoch}")?;
        writeln!(out, "known {}:{}", end.sequence, HEXLOWER.encode(&end.digest))?;
        Ok(())
    }

    fn read(&self) -> Result<Tail, VerifyTailError> {
        let name = self.file.as_ref().map(|file| file.display().to_string());
        let name = name.unwrap_or_else(|| "standard input".to_owned());
        let mut text = String::new();
        let read = match &self.file {
            Some(path) => {
                File::open(path).and_then(|file| file.take(LEN_MAX).read_to_string(&mut text))
            }
            None => io::stdin().lock().take(LEN_MAX).read_to_string(&mut text),
        };
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(VerifyTailError::Read(name, error)),
        }
        parse_tail(&text, self.nonce.as_bytes()).ok_or(VerifyTailError::Malformed(name))
    }
}

/// Prints a tail, one field a line.
pub(crate) fn print_tail(
    out: &mut impl Write,
    tail: &Tail,
    public_key: &[u8; PUBLIC_KEY_LEN],
) -> io::Result<()> {
    let (entry, statement) = (&tail.entry, &tail.entry.statement);
    writeln!(out, "log {}", entry.log.0)?;
    writeln!(out, "number {}", statement.sequence)?;
    writeln!(out, "context hash {}", HEXLOWER.encode(&statement.context_hash))?;
    writeln!(out, "digest before {}", HEXLOWER.encode(&statement.previous))?;
    writeln!(out, "attestation {}", HEXLOWER.encode(&entry.attestation.0))?;
    writeln!(out, "signature {}", HEXLOWER.encode(&tail.signature))?;
    writeln!(out, "public key {}", HEXLOWER.encode(public_key))
}

/// Reads what [`print_tail`] wrote, for the nonce that the client has chosen.
fn parse_tail(text: &str, nonce: &[u8]) -> Option<Tail> {
    let field = |name: &str| {
        let mut found = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    };
    let log = LogId(field("log")?.parse().ok()?);
    let statement = Statement {
        kind: EntryKind::Tail,
        sequence: field("number")?.parse().ok()?,
        context_hash: hexadecimal(field("context hash")?).ok()?,
        previous: hexadecimal(field("digest before")?).ok()?,
    };
    let attestation = Attestation(hexadecimal::<ATTESTATION_LEN>(field("attestation")?).ok()?);
    let signature = hexadecimal::<SIGNATURE_LEN>(field("signature")?).ok()?;
    let entry = Entry { log, statement, attestation, context: nonce.to_vec() };
    Some(Tail { entry, signature })
}

fn hexadecimal<const N: usize>(text: &str) -> Result<[u8; N], String> {
    let bytes = HEXLOWER.decode(text.as_bytes()).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("not {} hexadecimal digits in lower case", 2 * N))
}

fn end(text: &str) -> Result<End, String> {
    let (number, digest) = text.split_once(':').ok_or("not of the form NUMBER:DIGEST")?;
    let sequence = number.parse().map_err(|_| "the number is none".to_owned())?;
    Ok(End { sequence, digest: hexadecimal(digest)? })
}
