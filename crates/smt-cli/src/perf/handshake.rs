// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt perf handshake`: the time from nothing to the first reply of a new session, by each kind of
//! handshake, in one run (paper §5.6).
//!
//! Client and server are two threads of this process, so that the CPU of both is counted together.
//! Kinds take turns: whatever changes on the machine meanwhile meets all of them alike. All of them
//! verify all that a client of theirs verifies; tickets are verified before, as they are in use.
//! With `--paper` the paper's Table I stands before it: the cost of each operation.

mod operations;
mod smt_kind;
mod tls_kind;

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use smt::pki::KeyKind;
use smt::{Group, Suite};

use super::cpu;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::scratch::Scratch;
use crate::standard_output::standard_output;

/// Measure the first reply of a new session by each kind of handshake
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// New sessions by each kind
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    samples: u32,
    /// The algorithms
    #[arg(long, value_name = "WHICH", default_value = "paper")]
    algorithms: Algorithms,
    /// Clients show a certificate, too
    #[arg(long)]
    mutual: bool,
    /// Print the paper's Table I as well, by ECDSA and RSA, and the paper's ratios beside ours
    #[arg(long, conflicts_with = "algorithms")]
    paper: bool,
    /// Write a line of JSON for each kind
    #[arg(long)]
    json: bool,
}

/// The algorithms of all kinds.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Algorithms {
    /// Those of the SMT paper: secp256r1, AES-128-GCM, ECDSA P-256
    Paper,
    /// Those that SMT prefers: X25519MLKEM768, AES-128-GCM, ECDSA P-256
    Default,
    /// Certificates that are safe against quantum computers to come, too: X25519MLKEM768,
    /// AES-128-GCM, ML-DSA-65
    PostQuantum,
}

impl Algorithms {
    const fn group(self) -> Group {
        match self {
            Self::Paper => Group::P256,
            Self::Default | Self::PostQuantum => Group::X25519MlKem768,
        }
    }

    const fn suite(self) -> Suite {
        Suite::Aes128Gcm
    }
}

/// A kind of handshake, ready to begin sessions.
trait Kind {
    fn name(&self) -> &'static str;

    /// The paper's name for it, and its ratio there.
    fn paper(&self) -> &'static str {
        ""
    }

    /// Makes ready what a session of this kind finds ready.
    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes it away.
    fn clean_up(&mut self) {}

    /// Begins a session, has one reply, and ends the session. Returns the time until the reply.
    fn first_reply(&mut self) -> Result<Duration, Failure>;
}

/// The figures of one kind.
#[derive(Clone, Debug, Default)]
struct Samples {
    times: Vec<Duration>,
    cpu: Duration,
}

impl Samples {
    fn percentile(&self, percent: usize) -> f64 {
        let at = (self.times.len() - 1) * percent / 100;
        micros(self.times[at])
    }

    fn cpu_each(&self) -> f64 {
        micros(self.cpu) / self.times.len() as f64
    }
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.paper {
        operations::report(arguments.samples, arguments.mutual, arguments.json)?;
        if !arguments.json {
            say("")?;
        }
    }
    let scratch = Scratch::new()?;
    let files = scratch.ephemeral_with_keys(arguments.algorithms.key_kind())?;
    let mut kinds = smt_kind::all(&files, arguments)?;
    kinds.push(tls_kind::over_tcp(&files, arguments)?);
    let mut samples = vec![Samples::default(); kinds.len()];
    // The first of each kind pays for tables and pages that the others find.
    for round in 0..=arguments.samples {
        for (kind, samples) in kinds.iter_mut().zip(&mut samples) {
            kind.prepare()?;
            let before = cpu::used();
            let time = kind.first_reply()?;
            let used = cpu::used().saturating_sub(before);
            kind.clean_up();
            if round > 0 {
                samples.cpu += used;
                samples.times.push(time);
            }
        }
    }
    samples.iter_mut().for_each(|samples| samples.times.sort());
    report(arguments, &kinds, &samples)
}

fn report(
    arguments: &Arguments,
    kinds: &[Box<dyn Kind>],
    samples: &[Samples],
) -> Result<(), Failure> {
    // The first is TLS over SMT in one round trip: the others are told by it.
    let base = samples[0].percentile(50);
    if !arguments.json {
        say(&format!(
            "{}\n{} sessions by each kind, {}, {}, {}{}\n\n{:<44}{:>9}{:>9}{:>9}{:>10}{}",
            Machine::here(),
            arguments.samples,
            arguments.algorithms.group_name(),
            arguments.algorithms.key_kind().name(),
            arguments.algorithms.suite(),
            if arguments.mutual { ", both show certificates" } else { "" },
            "first reply of a new session",
            "p50 us",
            "p99 us",
            "ratio",
            "CPU us",
            if arguments.paper { "   paper" } else { "" },
        ))?;
    }
    for (kind, samples) in kinds.iter().zip(samples) {
        let (p50, p99) = (samples.percentile(50), samples.percentile(99));
        let (ratio, cpu) = (p50 / base, samples.cpu_each());
        let line = match arguments.json {
            true => json!({
                "kind": kind.name(), "samples": arguments.samples, "p50_us": p50, "p99_us": p99,
                "ratio": ratio, "cpu_us": cpu, "mutual": arguments.mutual,
                "group": arguments.algorithms.group_name(),
                "keys": arguments.algorithms.key_kind().name(),
            })
            .to_string(),
            false => {
                let name = kind.name();
                let paper = match arguments.paper {
                    true => format!("   {}", kind.paper()),
                    false => String::new(),
                };
                let line = format!("{name:<44}{p50:>9.1}{p99:>9.1}{ratio:>9.2}{cpu:>10.1}{paper}");
                line.trim_end().to_owned()
            }
        };
        say(&line)?;
    }
    Ok(())
}

impl Algorithms {
    const fn group_name(self) -> &'static str {
        match self {
            Self::Paper => "secp256r1",
            Self::Default | Self::PostQuantum => "X25519MLKEM768",
        }
    }

    const fn key_kind(self) -> KeyKind {
        match self {
            Self::Paper | Self::Default => KeyKind::EcdsaP256,
            Self::PostQuantum => KeyKind::MlDsa65,
        }
    }
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(standard_output(), "{line}")?)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The server's name.
const NAME: &str = "localhost";
/// The body of each request and of its reply.
const BODY: [u8; 64] = [7; 64];
/// A session that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(5);
