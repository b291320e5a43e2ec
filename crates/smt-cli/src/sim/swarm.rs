// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim swarm`: many seeds, until something is found or the time is over.
//!
//! 1. Threads play seeds (`worker_pool`); a failure is told at once, with the command that plays
//!    its seed again.
//! 2. The first failure ends it unless `--keep-going`; so do the last seed, the time, and Ctrl-C.
//!    Seeds under way then are played to their end.
//! 3. Sums and a table of the reached goals end the output. Each thing must have been reached by
//!    some of many seeds: a swarm does not test what it never meets.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::SCHEMA;
use super::played::Played;
use super::progress::Progress;
use super::seeds::Seeds;
use super::telling::Telling;
use super::totals::Totals;
use super::worker_pool::{News, WorkerPool};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::time_span;

/// Play the cases of many seeds, and stop at the first in which something is found
///
/// Exit code 1 if something was found, or if of 1,000 seeds or more too few have reached a packet
/// type, fault or event. Ctrl-C ends it with what is known so far.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Number of seeds to play
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time to play; ten minutes if no number of seeds is given either
    #[arg(long, value_name = "TIME", value_parser = time_span::parse)]
    time: Option<Duration>,
    /// Number of seeds to play at once; by default one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Count up from this seed; by default from one that the clock gives
    #[arg(long, value_name = "N")]
    first_seed: Option<u64>,
    /// Play the seeds in this file, one a line; # begins a comment
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "time", "first_seed"])]
    seeds: Option<PathBuf>,
    /// Put an attacker on the path of every case; otherwise every tenth case or so has one
    #[arg(long)]
    attacked: bool,
    /// Go on after a failure
    #[arg(long)]
    keep_going: bool,
    /// Least share of seeds that must reach each packet type, fault and event, when 1,000 or more
    /// were played
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    coverage_least: f64,
    /// One JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seeds = match &arguments.seeds {
        Some(path) => Seeds::read(path)?,
        None => Seeds::counted(arguments.first_seed, arguments.count),
    };
    let time = match (arguments.time, seeds.total()) {
        (None, None) => Some(TIME),
        (time, _) => time,
    };
    let jobs = arguments.jobs.map_or_else(machine::cores, usize::from);
    let is_interrupted = interrupted()?;
    let mut telling = Telling::default();
    telling.say(&opening(&seeds, jobs, arguments))?;
    let mut progress = Progress::new(seeds.total(), time);
    let mut totals = Totals::default();
    let play = match arguments.attacked {
        true => Played::play_attacked,
        false => Played::play,
    };
    let mut workers = WorkerPool::start(jobs, CASE_TIME_MAX, seeds, play)?;
    loop {
        match workers.next(TICK) {
            News::None => {}
            News::Over => break,
            News::Played(played) => {
                totals.add(&played);
                if played.has_failed() {
                    progress.clear();
                    telling.say(&told(&played, arguments))?;
                    if !arguments.keep_going {
                        workers.stop();
                    }
                }
            }
        }
        let is_late = time.is_some_and(|time| progress.elapsed() >= time);
        if is_late || is_interrupted.load(Ordering::Relaxed) || telling.is_reader_gone() {
            workers.stop();
        }
        progress.tell(totals.seeds, totals.failed());
    }
    progress.clear();
    if arguments.json {
        for line in totals.json(progress.elapsed()) {
            telling.say(&line.to_string())?;
        }
    } else {
        let text = totals.text(progress.elapsed(), arguments.coverage_least);
        telling.say(text.trim_end())?;
    }
    totals.judge(arguments.coverage_least)
}

/// The first line: with it all of this can be had again.
fn opening(seeds: &Seeds, jobs: usize, arguments: &Arguments) -> String {
    if arguments.json {
        return json!({
            "schema": SCHEMA, "kind": "configuration", "first_seed": seeds.first(), "seeds": seeds.total(),
            "jobs": jobs, "attacked": arguments.attacked,
        })
        .to_string();
    }
    let attacked = if arguments.attacked { ", all attacked" } else { "" };
    match (seeds.first(), seeds.total()) {
        (Some(first), _) => format!("first seed {first}, {jobs} at once{attacked}"),
        (None, total) => format!("{} seeds, {jobs} at once{attacked}", total.unwrap_or_default()),
    }
}

fn told(played: &Played, arguments: &Arguments) -> String {
    match arguments.json {
        true => played.json(arguments.attacked).to_string(),
        false => played.text(arguments.attacked),
    }
}

/// Becomes true at Ctrl-C.
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let interrupt = Interrupt::on_signals()?;
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_interrupted);
    std::thread::spawn(move || {
        interrupt.wait();
        flag.store(true, Ordering::Relaxed);
    });
    Ok(is_interrupted)
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number),
        _ => Err("give a share in percent, 0 to 100, such as 1 or 0.5".to_owned()),
    }
}

/// The time of a swarm without options.
const TIME: Duration = Duration::from_secs(600);
/// A case takes a tenth of a second; this much, and it loops without virtual time passing.
const CASE_TIME_MAX: Duration = Duration::from_secs(120);
/// Between looks at the clock.
const TICK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    mod percent {
        use super::super::percent;

        #[test]
        fn is_a_share() {
            assert_eq!(percent("0.5"), Ok(0.5));
            for wrong in ["", "-1", "101", "NaN", "1%"] {
                assert!(percent(wrong).is_err(), "{wrong}");
            }
        }
    }
}
