// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TNIC paper's figures 7 to 14 and tables 3, 4 and 5, with what runs here.
//!
//! `smt-trusted-figures run DIR` measures for half a minute, and writes `figures.md` and plots into
//! DIR. It starts a device process and a server process of its own, on this machine.
//! `smt-trusted-figures systems DIR` does so for the systems over such devices, and
//! `smt-trusted-figures batches` prints what batches gain.
//!
//! There is no FPGA, SGX or SEV. Their latencies are the paper's, as busy waits, and each row and
//! line that has one says "emulated".
#![forbid(unsafe_code)]

mod append;
mod latency;
mod machine;
mod replication;
mod sending;
mod streams;
mod systems;
mod times;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::machine::Processes;

/// The TNIC paper's figures and tables of attestation, sending and attested memory
#[derive(Parser)]
#[command(name = "smt-trusted-figures", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures, and writes figures.md and plots
    Run {
        /// Where the files go; made if need be
        directory: PathBuf,
        /// Divides all counts, for a quick look
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        less: u32,
    },
    /// Measures BFT, chain replication and PeerReview, and writes systems.md and plots
    Systems {
        /// Where the files go; made if need be
        directory: PathBuf,
        /// Divides all counts, for a quick look
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
        less: u32,
    },
    /// Measures what batches gain in BFT, sizes one after the other in each round, and prints it
    Batches {
        /// How many rounds
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Requests of each run
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(32..))]
        requests: u64,
    },
    /// Measures how quickly a replica of BFT that was away catches up, and prints it
    CatchingUp,
    /// A system in this process, started by `systems` to count its instructions
    #[command(hide = true)]
    InMemory {
        /// Its protocol
        kind: String,
        /// Its devices
        attesting: String,
        /// How many clients there are
        clients: u32,
        /// How many requests each makes
        requests: u64,
    },
    /// A device process, started by `run` and `systems`
    #[command(hide = true)]
    Device {
        /// Its directory
        directory: PathBuf,
    },
    /// A server process over sockets, started by `run`
    #[command(hide = true)]
    Server,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    match Arguments::parse().command {
        Command::Run { directory, less } => run(&directory, less as usize),
        Command::Systems { directory, less } => systems_of(&directory, less as usize),
        Command::Batches { rounds, requests } => {
            let tables = replication::batches(rounds as usize, requests)?;
            tables.iter().for_each(|it| println!("{}", it.markdown()));
            Ok(())
        }
        Command::CatchingUp => {
            println!("{}", replication::catching_up()?.markdown());
            Ok(())
        }
        Command::InMemory { kind, attesting, clients, requests } => {
            let system = replication::System::parse(&kind, &attesting);
            replication::run_in_memory(&system.ok_or("no such system")?, clients, requests)
                .map(|_| ())
        }
        Command::Device { directory } => Ok(smt_loopback::run_device(&directory)?),
        Command::Server => systems::serve(),
    }
}

/// A page with pictures beside it.
struct Report<'d> {
    directory: &'d Path,
    text: String,
}

impl Report<'_> {
    fn section(&mut self, heading: &str, text: &str) {
        println!("{heading}");
        self.text += &format!("\n## {heading}\n{text}\n");
    }

    fn table(&mut self, table: &smt_report::Table) {
        self.text += &format!("\n{}", table.markdown());
    }

    fn picture(&mut self, name: &str, svg: &str, colors: usize) -> Result<(), Failure> {
        let file = format!("{name}.svg");
        std::fs::write(self.directory.join(&file), smt_report::svg_file(svg, colors))?;
        self.text += &format!("\n![{name}]({file})\n");
        Ok(())
    }
}

fn systems_of(directory: &Path, less: usize) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    let begin = Instant::now();
    let mut report = Report { directory, text: String::from("# Trusted systems, measured\n") };
    report.text += "Made by `smt-trusted-figures systems`: three replicas and all clients in one \
                    process, each with an endpoint of its own, over SMT by UDP on the loopback, \
                    with logs in memory. Numbers in parentheses are the paper's, on its machines. \
                    Rows with \"emulated\" are the library, with a busy wait of the paper's \
                    latency for each attestation, check and signature. \"CPU\" is processor time \
                    of a request in all processes; \"instructions\" are counted by valgrind in \
                    one process over a network in memory, without those of device processes.\n";
    replication::figures_11_to_14(&mut report, less)?;
    let seconds = begin.elapsed().as_secs();
    report.text += &format!("\nMeasured in {seconds} seconds.\n");
    std::fs::write(directory.join("systems.md"), &report.text)?;
    println!("{seconds} seconds, {}", directory.join("systems.md").display());
    Ok(())
}

fn run(directory: &Path, less: usize) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    let begin = Instant::now();
    let processes = Processes::start()?;
    let mut report = Report { directory, text: String::from("# Trusted messages, measured\n") };
    report.text += "Made by `smt-trusted-figures run`. Numbers in parentheses are the paper's, on \
                    its machines. Rows with \"emulated\" are the library and a busy wait of the \
                    paper's latency.\n";
    latency::figure_7(&processes, &mut report, less)?;
    latency::rates(&processes, &mut report, less)?;
    sending::figures_8_and_9(&mut report, less)?;
    append::table_3(&processes, &mut report, less)?;
    machine::table_4(&mut report)?;
    streams::table_5(&mut report, less)?;
    let seconds = begin.elapsed().as_secs();
    report.text += &format!("\nMeasured in {seconds} seconds.\n");
    std::fs::write(directory.join("figures.md"), &report.text)?;
    println!("{seconds} seconds, {}", directory.join("figures.md").display());
    Ok(())
}
