// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-bench stream`: a stream of bytes that is longer than any memory, through a call in parts.
//!
//! Client and server are processes of their own. Bytes are made of a seed at one end (`AsyncRead`),
//! copied into the parts of a call (`AsyncWrite`), out of them at the other end, and forgotten
//! there. Both ends count them and make their SHA-256.

mod bytes;
mod client;
mod direction;
mod server;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

pub(crate) use client::run as run_client;
pub(crate) use direction::Direction;
pub(crate) use server::run as run_server;

use crate::certificates::Directory;
use crate::failure::{Doing, Failure};
use crate::job::{Flavor, GO, LISTENING, READY, Setting, Work};
use crate::process::Process;
use crate::size::Size;
use crate::{run, server as process};

/// Stream bytes through calls in parts, and tell their rate, whether all arrived as they were, and
/// how much memory it took
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Megabytes (10^6 bytes) of each stream
    #[arg(long, value_name = "MB", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    megabytes: u64,
    /// Bytes that both ends copy at once; `tokio::io::copy` has 8K
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    buffer: Size,
    /// Directions
    #[arg(long, value_delimiter = ',', default_value = "download,upload")]
    directions: Vec<Direction>,
    /// Seed of the bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most megabytes that a process may take above what it had when it was connected; with more
    /// the program fails
    #[arg(long, value_name = "MB", default_value_t = 32.0)]
    memory_max: f64,
    /// Seconds after which a stream has failed
    #[arg(long, value_name = "S", default_value_t = 300)]
    limit: u64,
    /// The runtime with two workers on both sides, and no cores of their own
    #[arg(long)]
    two_workers: bool,
}

/// The job of both processes.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Job {
    setting: Setting,
    address: SocketAddr,
    direction: Direction,
    bytes: u64,
    buffer: usize,
    seed: u64,
    client_core: Option<usize>,
    server_core: Option<usize>,
}

/// The figures that a client tells of a stream.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Found {
    seconds: f64,
    cpu_s: f64,
    /// When it was connected.
    resident_bytes: u64,
    peak_bytes: u64,
    bytes: u64,
    /// The bytes that were seen at the client and at the server.
    here: String,
    there: String,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let directory = Directory::make()?;
    process::say(HEADING)?;
    for direction in &arguments.directions {
        arguments.measure(&directory, *direction).doing(direction.name())?;
    }
    Ok(())
}

impl Arguments {
    fn measure(&self, directory: &Directory, direction: Direction) -> Result<(), Failure> {
        let job = self.job(directory, direction);
        let text = serde_json::to_string(&job)?;
        let mut server = Process::start(&[], &["stream-serve", &text])?;
        let line = server.hear(START).doing("the server")?;
        let address = line
            .strip_prefix(LISTENING)
            .ok_or_else(|| Failure::new(format!("the server said: {line}")))?;
        let mut client = Process::start(&[], &["stream-client", &text, address])?;
        let line = client.hear(START).doing("the client")?;
        if line != READY {
            return Err(Failure::new(format!("the client said: {line}")));
        }
        let before = run::server_use(&mut server)?;
        client.say(GO)?;
        let limit = Duration::from_secs(self.limit);
        let found: Found = serde_json::from_str(&client.hear(limit).doing("the client")?)?;
        let after = run::server_use(&mut server)?;
        if found.bytes != job.bytes || found.here != found.there {
            return Err(Failure::new(format!(
                "the ends have seen other bytes: {} at the client, {} at the server",
                found.here, found.there
            )));
        }
        let gigabytes = job.bytes as f64 / 1e9;
        let above = |most: f64, first: f64| (most - first) / 1e6;
        let memory = [
            above(found.peak_bytes as f64, found.resident_bytes as f64),
            above(after.peak_bytes, before.resident_bytes),
        ];
        let server_cpu_s = after.cpu_s - before.cpu_s;
        process::say(&format!(
            "| {} | {gigabytes} | {} | {:.2} | {:.3} | {:.2} + {:.2} | {:.1} + {:.1} | {:.1} + {:.1} | {} |",
            direction.name(),
            self.buffer,
            found.seconds,
            gigabytes / found.seconds,
            found.cpu_s / gigabytes,
            server_cpu_s / gigabytes,
            found.resident_bytes as f64 / 1e6,
            before.resident_bytes / 1e6,
            memory[0],
            memory[1],
            found.here.split(' ').next_back().unwrap_or_default(),
        ))?;
        match memory.into_iter().find(|above| *above > self.memory_max) {
            Some(above) => Err(Failure::new(format!(
                "a process took {above:.1} MB above what it had, and {} MB are allowed",
                self.memory_max
            ))),
            None => Ok(()),
        }
    }

    fn job(&self, directory: &Directory, direction: Direction) -> Job {
        let mut setting = Setting::new(directory.0.clone(), LOOPBACK_MTU, &Work::Fresh);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let core = |core: usize| (!self.two_workers).then_some(core.min(cores - 1));
        let (client_core, server_core) = (core(0), core(1));
        if self.two_workers {
            setting.on_tokio.flavor = Flavor::TwoWorkers;
        }
        Job {
            setting,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            direction,
            bytes: self.megabytes * 1_000_000,
            buffer: self.buffer.0 as usize,
            seed: self.seed,
            client_core,
            server_core,
        }
    }
}

const HEADING: &str = "Client + server. SHA-256 is made at both ends, and is part of the CPU.\n\n\
    | stream | GB | copied at once | s | GB/s | CPU s per GB | MB when connected | most MB above that | SHA-256, the same at both ends |\n\
    |---|---|---|---|---|---|---|---|---|";
const START: Duration = Duration::from_secs(20);
const LOOPBACK_MTU: u32 = 65_536;
