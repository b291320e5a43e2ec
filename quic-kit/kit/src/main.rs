// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks of QUIC, measured as processes through an emulator of paths: what NiQUIC's measurements
//! (its section 2) are with today's stacks.
//!
//! 1. [`plan`] names the measurements, [`measure`] makes one: a server, an emulator and a client
//!    are processes, and [`samples`] and [`rules`] say what their CPU time went to.
//! 2. [`results`] keeps all of them, and [`page`] writes tables and plots beside the paper's.
//! 3. [`emulator`] and [`path`] are the emulator, which this program is too.
//! 4. [`cost`] is the model of what an offload saves and costs, as plots.
#![forbid(unsafe_code)]

mod certificates;
mod child;
mod cost;
mod emulator;
mod measure;
mod page;
mod path;
mod plan;
mod results;
mod rules;
mod samples;
mod stacks;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use kit_process::Failure;

#[derive(Parser)]
#[command(about = "Stacks of QUIC, measured as processes")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, and write results, tables, plots and a page.
    Run(RunOptions),
    /// Write tables, plots and the page anew from results.
    Page(PageOptions),
    /// Say what the samples of a file went to, and which symbols no rule catches.
    Classify(ClassifyOptions),
    /// Forward packets with delay, loss and reordering.
    Emulator(emulator::EmulatorOptions),
    /// Write the plots and tables of the cost model.
    Cost(cost::CostOptions),
}

/// The choice of what to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// Everything that the paper's tables and figures need.
    #[arg(long, conflicts_with = "smoke")]
    paper: bool,
    /// Does everything work? Few megabytes, figures worth nothing.
    #[arg(long)]
    smoke: bool,
    /// These of the paper's tables and figures alone: t2, f3, f4, f5, f7, f8, settings, offload.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// These stacks alone.
    #[arg(long, value_delimiter = ',')]
    stacks: Vec<String>,
    /// Bytes of a transfer.
    #[arg(long, default_value_t = 50_000_000)]
    bytes: u64,
    /// Bytes of a transfer of a stack in Python.
    #[arg(long, default_value_t = 5_000_000)]
    slow_bytes: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 15)]
    repeat: u32,
    /// Connections at most.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// The seed of the emulator; each repetition but those of the offload adds one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder for results.
    #[arg(long, default_value = "target/paper")]
    into: PathBuf,
    /// The rules that classify samples.
    #[arg(long, default_value = "rules.txt")]
    rules: PathBuf,
    /// The interpreter that has aioquic.
    #[arg(long, default_value = "target/python/bin/python3")]
    python: PathBuf,
}

#[derive(Args, Clone, Debug)]
struct PageOptions {
    /// The folder with `results.json`.
    #[arg(long, default_value = "target/paper")]
    into: PathBuf,
}

#[derive(Args, Clone, Debug)]
struct ClassifyOptions {
    /// Stacks as `kit-aioquic` or `perf script -F ip,sym,dso` write them.
    file: PathBuf,
    /// The rules.
    #[arg(long, default_value = "rules.txt")]
    rules: PathBuf,
}

fn main() -> ExitCode {
    let ended = match CommandLine::parse().command {
        Command::Run(options) => plan::run(&options),
        Command::Page(options) => page::again(&options.into),
        Command::Classify(options) => classify(&options),
        Command::Emulator(options) => emulator::run(options),
        Command::Cost(options) => cost::run(&options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("quic-kit: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn classify(options: &ClassifyOptions) -> Result<(), Failure> {
    let rules = rules::Rules::read(&options.rules)?;
    let shares = samples::read(&options.file)?.classified(&rules);
    for (class, count) in &shares.classes {
        println!("{count:8} {class}");
    }
    for (symbol, count) in shares.uncaught.iter().take(40) {
        println!("{count:8} uncaught: {symbol}");
    }
    Ok(())
}
