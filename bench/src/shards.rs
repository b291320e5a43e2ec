// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How shards scale: each is a client and a server over memory, in a thread of its own on a core of
//! its own.
//!
//! 1. One thread alone; as many as there are shards, in one process; and as many in a process each.
//!    The processes show what the machine gives, since they share no memory: the difference between
//!    threads and processes is the cost of what shards share.
//! 2. All are connected and warm before any is measured; the three are interleaved, and medians are
//!    compared.
//!
//! The core (smt-proto) over smt-io's memory, without the crate `smt`: it holds a lock per shard,
//! and blocks.

mod pair;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;

use clap::Args;

use crate::certificates::Directory;
use crate::failure::Failure;
use crate::job::{GO, READY};
use crate::machine::Machine;
use crate::process::Process;
use crate::results::Figure;
use pair::{Common, Pair};

/// Measure how shards scale over memory: threads of one process against processes
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Shards, each on a core of its own
    #[arg(long, default_value_t = 2)]
    shards: u16,
    /// Calls in progress in each shard
    #[arg(long, default_value_t = 32)]
    concurrency: usize,
    /// Bytes of a request and of its reply
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 2.0)]
    duration: f64,
    /// Measurements of each kind
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Only the threads of one process, once: for strace and perf
    #[arg(long)]
    threads_only: bool,
    /// Be the process of one shard: its number, and the directory of certificates
    #[arg(long, num_args = 2, hide = true)]
    process: Option<Vec<String>>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.shards.is_power_of_two() || arguments.shards > 256 {
        return Err(Failure::new("--shards must be a power of two, at most 256"));
    }
    if let Some([number, directory]) = arguments.process.as_deref() {
        return be_process(arguments, number.parse()?, &PathBuf::from(directory));
    }
    let directory = Directory::make()?;
    if arguments.threads_only {
        let rate = threads(arguments, &directory.0, arguments.shards)?;
        println!("{} threads: {rate:.0} calls a second", arguments.shards);
        return Ok(());
    }
    let [mut one, mut all, mut apart] = [(); 3].map(|()| Figure::default());
    for _ in 0..arguments.repeat {
        one.add(threads(arguments, &directory.0, 1)?);
        all.add(threads(arguments, &directory.0, arguments.shards)?);
        apart.add(processes(arguments, &directory.0)?);
    }
    let machine = Machine::here();
    println!(
        "{}, {} cores, Linux {}; commit {}, {} build; load average {}\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.commit,
        machine.build,
        machine.load_average
    );
    println!(
        "{} B, {} calls in progress in each shard, {} x {} s\n",
        arguments.size, arguments.concurrency, arguments.repeat, arguments.duration
    );
    println!("| | calls a second | ± | of one thread |\n|---|---|---|---|");
    let rows = [
        ("one thread".to_owned(), &one),
        (format!("{} threads", arguments.shards), &all),
        (format!("{} processes", arguments.shards), &apart),
    ];
    for (name, figure) in rows {
        println!(
            "| {name} | {:.0} | {:.1} % | {:.2} |",
            figure.median,
            figure.spread() * 100.0,
            figure.median / one.median
        );
    }
    println!("\nthreads reach {:.1} % of what processes do", all.median / apart.median * 100.0);
    Ok(())
}

/// Calls a second of `count` shards in threads of this process.
fn threads(arguments: &Arguments, directory: &Path, count: u16) -> Result<f64, Failure> {
    let common = Common::new(directory)?;
    let barrier = Barrier::new(usize::from(count));
    let rates = std::thread::scope(|scope| {
        let shards: Vec<_> = (0..count)
            .map(|number| {
                let (common, barrier) = (&common, &barrier);
                scope.spawn(move || -> Result<f64, Failure> {
                    let warm = warmed_up_pair(arguments, common, number);
                    // A thread that has failed does not keep the others waiting.
                    barrier.wait();
                    Ok(measure(arguments, &mut warm?))
                })
            })
            .collect();
        let rates = shards.into_iter().map(|shard| {
            let failed = |_| Failure::new("a shard's thread has failed");
            shard.join().map_err(failed)?
        });
        rates.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(rates.iter().sum())
}

/// The same in a process each.
fn processes(arguments: &Arguments, directory: &Path) -> Result<f64, Failure> {
    let [size, concurrency] = [arguments.size, arguments.concurrency].map(|n| n.to_string());
    let [duration, shards] = [arguments.duration.to_string(), arguments.shards.to_string()];
    let directory = directory.display().to_string();
    let mut processes = (0..arguments.shards)
        .map(|number| {
            Process::start(
                &[],
                &[
                    "shards",
                    "--process",
                    &number.to_string(),
                    &directory,
                    "--size",
                    &size,
                    "--concurrency",
                    &concurrency,
                    "--duration",
                    &duration,
                    "--shards",
                    &shards,
                ],
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    for process in &mut processes {
        process.hear(ANSWER_WAIT)?;
    }
    for process in &mut processes {
        process.say(GO)?;
    }
    let limit = ANSWER_WAIT + Duration::from_secs_f64(arguments.duration);
    let mut rate = 0.0;
    for process in &mut processes {
        rate += process.hear(limit)?.parse::<f64>()?;
    }
    Ok(rate)
}

fn be_process(arguments: &Arguments, number: u16, directory: &Path) -> Result<(), Failure> {
    let mut pair = warmed_up_pair(arguments, &Common::new(directory)?, number)?;
    println!("{READY}");
    std::io::stdin().lock().read_line(&mut String::new())?;
    println!("{}", measure(arguments, &mut pair));
    Ok(())
}

/// A shard that is connected and has run for a while, on its core.
fn warmed_up_pair(arguments: &Arguments, common: &Common, number: u16) -> Result<Pair, Failure> {
    crate::cpu::pin(usize::from(number))?;
    let mut pair = Pair::connect(common, number, arguments.shards)?;
    pair.begin(arguments.concurrency, arguments.size)?;
    pair.run(WARM_UP);
    Ok(pair)
}

fn measure(arguments: &Arguments, pair: &mut Pair) -> f64 {
    pair.run(Duration::from_secs_f64(arguments.duration))
}

const WARM_UP: Duration = Duration::from_millis(300);
const ANSWER_WAIT: Duration = Duration::from_secs(30);
