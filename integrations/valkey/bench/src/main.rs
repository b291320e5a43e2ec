// SPDX-License-Identifier: Apache-2.0 OR MIT
//! YCSB against one Valkey server over TCP, TLS and SMT, in turn and in one run.
//!
//! Flow: 1. a server is started and its records are loaded  2. each workload, size of value and way
//! runs for some seconds, the ways in turn  3. operations, latency and the server's CPU are
//! printed.

mod certificates;
mod client;
mod figure;
mod load;
mod measured;
mod numbers;
mod server;
mod way;
mod workload;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use load::{Load, Plan};
use measured::Measured;
use server::Server;
use way::Way;
use workload::Workload;

#[derive(Debug, Parser)]
#[command(about = "YCSB against Valkey over TCP, TLS and SMT")]
struct Arguments {
    /// Prints the paper's Figure 9: all workloads and sizes, ways saturated.
    #[arg(long)]
    paper: bool,
    /// Workloads, letters of A to F.
    #[arg(long, default_value = "ABCDEF")]
    workloads: String,
    /// Bytes of a value.
    #[arg(long, value_delimiter = ',', default_value = "64,1024,4096")]
    values: Vec<usize>,
    /// Ways: tcp, tls, smt, smt-alone (a socket for each connection).
    #[arg(long, value_delimiter = ',', default_value = "tcp,tls,smt")]
    ways: Vec<Way>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Clients, each with a connection.
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Records.
    #[arg(long, default_value_t = 10_000)]
    records: u64,
    /// Operations a second in an open loop; without it each client waits for its reply.
    #[arg(long)]
    rate: Option<f64>,
    /// Runs each case a second time, in an open loop of so many percent of what its way has reached
    /// in the first.
    #[arg(long, conflicts_with = "rate")]
    load: Option<f64>,
    /// New sessions a second beside the load.
    #[arg(long)]
    new_sessions: Option<f64>,
    /// Seed of keys and operations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes the plot as a page into this file.
    #[arg(long)]
    page: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(&arguments)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ycsb: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let workloads = Workload::all_of(&arguments.workloads)?;
    let plan = Plan {
        clients: arguments.clients,
        time: Duration::from_secs_f64(arguments.seconds),
        rate: arguments.rate,
        new_sessions: arguments.new_sessions,
        seed: arguments.seed,
    };
    let (mut all, mut loaded) = (Vec::new(), Vec::new());
    for size in &arguments.values {
        // A fresh server for each size: records of another would stay.
        let server = Server::start().await?;
        let load = Load::prepare(&server, *size, arguments.records).await?;
        for workload in &workloads {
            for way in &arguments.ways {
                let measured = load.run(*workload, *way, &plan).await?;
                println!("{measured}");
                if let Some(percent) = arguments.load {
                    let rate = Some(measured.rate * percent / 100.0);
                    let plan = Plan { rate, ..plan };
                    let part = load.run(*workload, *way, &plan).await?;
                    println!("{part}   at {percent} %");
                    loaded.push(part);
                }
                all.push(measured);
            }
        }
    }
    report(arguments, &all, &loaded)
}

fn report(
    arguments: &Arguments,
    all: &[Measured],
    loaded: &[Measured],
) -> Result<(), Box<dyn Error>> {
    println!("\n{}", figure::table(all).markdown());
    if let Some(percent) = arguments.load {
        println!("At {percent} % of that, in an open loop:\n");
        println!("{}", figure::table(loaded).markdown());
    }
    if arguments.paper {
        println!("{}", figure::paper_table(all).markdown());
    }
    if let Some(file) = &arguments.page {
        std::fs::write(file, figure::page(all))?;
    }
    Ok(())
}
