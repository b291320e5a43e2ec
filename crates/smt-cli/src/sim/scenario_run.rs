// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A scenario: read, changed by options, run, and told.
//!
//! 1. The scenario is a name that comes along, or a file; a mistake in it is told as FILE:LINE:
//!    FIELD.
//! 2. Options put another transport, load, duration or seed in place of the file's.
//! 3. The outcome is told as a table or as JSON, which `smt sim report` reads.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use smt_sim::lab::{Named, Scenario, ScenarioFile, Standing, Transport, Watch, run_watched};

use super::outcome::Outcome;
use super::outcome_text;
use super::recording::{self, Recording};
use super::status_line::StatusLine;
use crate::failure::{Doing, Failure};
use crate::standard_output::standard_output;
use crate::time_span;

/// Options for a scenario, which a case does not have.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Another transport than the file's: smt, ndp (pulls in turn, trimmed packets), ndp-shortest
    /// (shortest first), stream (one a pair of hosts), or pool-4 (four a pair; 1 to 64)
    #[arg(long, value_name = "T", requires = "scenario")]
    transport: Option<Transport>,
    /// Another load, 0.001 to 1 of each host's link
    #[arg(long, value_name = "L", requires = "scenario", value_parser = load)]
    load: Option<f64>,
    /// Another time during which messages begin, 1us to 10s
    #[arg(long, value_name = "TIME", requires = "scenario", value_parser = duration)]
    duration: Option<Duration>,
    /// Write what came of it into this file too, for smt sim report
    #[arg(long, value_name = "FILE", requires = "scenario")]
    results: Option<PathBuf>,
    /// Print the scenario's file with its comments instead of running it
    #[arg(long, requires = "scenario")]
    #[arg(conflicts_with_all = ["transport", "load", "duration", "results", "seed", "json", "capture"])]
    show: bool,
}

/// Which scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which<'a> {
    pub(super) scenario: &'a str,
    /// Instead of the file's.
    pub(super) seed: Option<u64>,
}

/// Runs it.
pub(super) fn run(
    which: Which<'_>,
    arguments: &Arguments,
    recorded: &recording::Arguments,
    is_json: bool,
) -> Result<(), Failure> {
    let (name, text) = read(which.scenario)?;
    if arguments.show {
        return Ok(write!(standard_output(), "{text}")?);
    }
    let mut file = parse(which.scenario, &text)?;
    change(&mut file, which, arguments)?;
    // A file that cannot be written is found out before the run, and not after it.
    if let Some(path) = &arguments.results {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(path);
        file.doing(format!("opening {}", path.display()))?;
    }
    let scenario = file.scenario();
    let outcome = play(&file, &scenario, recorded, name)?;
    let line = serde_json::to_string(&outcome)?;
    if let Some(path) = &arguments.results {
        std::fs::write(path, format!("{line}\n")).doing(format!("writing {}", path.display()))?;
    }
    let told = match is_json {
        true => line,
        false => outcome_text::text(&outcome),
    };
    Ok(writeln!(standard_output(), "{told}")?)
}

fn play(
    file: &ScenarioFile,
    scenario: &Scenario,
    recorded: &recording::Arguments,
    name: String,
) -> Result<Outcome, Failure> {
    let plan = recording::Plan {
        hosts: scenario.topology.hosts(),
        racks: scenario.topology.racks,
        spines: scenario.topology.spines,
    };
    let recording = Recording::start(recorded, plan)?;
    let began = Instant::now();
    let mut status = StatusLine::new();
    let mut tell = |standing: Standing| status.tell(|| line(standing, scenario.duration));
    let watch = Watch { tap: recording.as_ref().map(Recording::tap), tell: Some(&mut tell) };
    let results = run_watched(scenario, watch);
    status.clear();
    let results = results.map_err(|why| Failure::new(format!("{name} cannot run: {why}")))?;
    tracing::info!("ran in {}", time_span::display(began.elapsed()));
    recording.map_or(Ok(()), Recording::finish)?;
    Ok(Outcome::new(name, file.about.clone(), scenario, &results))
}

/// The progress of a run. After the duration, the run lasts until the slowest message that counts
/// has ended.
fn line(Standing { at, awaited }: Standing, duration: Duration) -> String {
    let [at, of] = [at, duration].map(time_span::display);
    format!("{at} of virtual time; of the messages of the first {of} {awaited} are under way")
}

/// The scenario's name and its text. An argument that looks like a path, or that names a file, is a
/// path.
fn read(scenario: &str) -> Result<(String, String), Failure> {
    if let Some(named) = Named::find(scenario) {
        return Ok((named.name.to_owned(), named.text.to_owned()));
    }
    let path = PathBuf::from(scenario);
    if !scenario.contains(['/', '.']) && !path.exists() {
        let names: Vec<_> = Named::ALL.iter().map(|named| named.name).collect();
        let names = names.join(", ");
        return Err(Failure::new(match scenario.parse::<u64>() {
            Ok(seed) => {
                format!("{seed} is no scenario; the random case of this seed is --seed {seed}")
            }
            Err(_) => format!("{scenario:?} is no scenario: give a file, or one of {names}"),
        }));
    }
    let text = std::fs::read_to_string(scenario).doing(format!("reading {scenario}"))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok((name.into_owned(), text))
}

fn parse(scenario: &str, text: &str) -> Result<ScenarioFile, Failure> {
    ScenarioFile::parse(text).map_err(|error| Failure::new(format!("{scenario}:{error}")))
}

fn change(file: &mut ScenarioFile, which: Which<'_>, arguments: &Arguments) -> Result<(), Failure> {
    if let Some(transport) = arguments.transport {
        file.set_transport(transport);
    }
    if let Some(duration) = arguments.duration {
        file.set_duration(duration);
    }
    if let Some(seed) = which.seed {
        file.set_seed(seed);
    }
    if let Some(load) = arguments.load
        && !file.set_load(load)
    {
        let text = format!("{} has no load: its pattern is incast", which.scenario);
        return Err(Failure::new(text));
    }
    Ok(())
}

fn load(text: &str) -> Result<f64, String> {
    const LOADS: RangeInclusive<f64> = ScenarioFile::LOADS;
    match text.parse() {
        Ok(load) if LOADS.contains(&load) => Ok(load),
        _ => Err(format!("a load is from {} to {}", LOADS.start(), LOADS.end())),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = time_span::parse(text)?;
    let range = ScenarioFile::DURATIONS_US;
    let [least, most] = [*range.start(), *range.end()].map(Duration::from_micros);
    match (least..=most).contains(&duration) {
        true => Ok(duration),
        false => Err("a scenario lasts from 1us to 10s".to_owned()),
    }
}
