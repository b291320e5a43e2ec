// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case of one seed, and its outcome.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use smt::{KeyLog, KeyLogFile};
use smt_sim::swarm::{Case, Observers, Verdict};

use super::played::Played;
use super::recording::{self, Recording};
use super::telling::Telling;
use super::{SCHEMA, case_text};
use crate::failure::{Doing, Failure};
use crate::time_span;

/// Options for a case, which a scenario does not have.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Play the case this many times, and fail if the traces differ
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(conflicts_with_all = ["scenario", "capture", "key_log"])]
    repeat: u32,
    /// Put an attacker on the path, whether the case has one or not
    #[arg(long, conflicts_with = "scenario")]
    attacked: bool,
    /// Append the case's secrets to this file, for smt dump --key-log
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    key_log: Option<PathBuf>,
}

/// Plays it.
pub(super) fn run(
    seed: u64,
    arguments: &Arguments,
    recorded: &recording::Arguments,
    is_json: bool,
) -> Result<(), Failure> {
    let mut case = Case::new(seed);
    if arguments.attacked {
        case = case.attacked();
    }
    // A file that cannot be made is found out before anything is told.
    let plan = recording::Plan { hosts: case.hosts(), racks: 1, spines: 0 };
    let mut recording = Recording::start(recorded, plan)?;
    let key_log = arguments.key_log.as_deref().map(key_log).transpose()?;
    let told = match is_json {
        true => case_text::json(&case).to_string(),
        false => case_text::text(&case),
    };
    let mut telling = Telling::default();
    telling.say(&told)?;
    let mut first = None;
    for time in 1..=arguments.repeat {
        let observers =
            Observers { tap: recording.as_ref().map(Recording::tap), key_log: key_log.clone() };
        let began = Instant::now();
        let played = Played::of(&case, observers);
        tracing::info!("played in {}", time_span::display(began.elapsed()));
        let told = match is_json {
            true => json(&played, time).to_string(),
            false => text(&played),
        };
        telling.say(&told)?;
        recording.take().map_or(Ok(()), Recording::finish)?;
        judge(&played, &mut first)?;
    }
    Ok(())
}

fn key_log(path: &Path) -> Result<Arc<dyn KeyLog>, Failure> {
    let log = KeyLogFile::append(path).doing(format!("opening {}", path.display()))?;
    Ok(Arc::new(log))
}

/// Fails if something was found, or if the trace is another than in the first time.
fn judge(played: &Played, first: &mut Option<u128>) -> Result<(), Failure> {
    let seed = played.seed;
    if played.has_failed() {
        let count = played.findings.len();
        return Err(Failure::finding(format!("seed {seed} failed: {count} found")));
    }
    let Some(verdict) = &played.verdict else {
        return Ok(());
    };
    let first = *first.get_or_insert(verdict.trace);
    if first == verdict.trace {
        return Ok(());
    }
    Err(Failure::finding(format!(
        "seed {seed} does not repeat: trace {:032x}, before {first:032x}; something in it is not of the seed",
        verdict.trace
    )))
}

fn text(played: &Played) -> String {
    let mut lines = Vec::new();
    if let Some(verdict) = &played.verdict {
        let Verdict { trace, messages: (messages, several), succeeded, packets, .. } = verdict;
        lines.push(format!("trace     {trace:032x}"));
        lines.push(format!(
            "delivered {messages} messages ({several} of several records); {succeeded} succeeded, {packets} packets"
        ));
    }
    if played.findings.is_empty() {
        lines.push("found     nothing".to_owned());
    }
    for finding in &played.findings {
        lines.push(format!("found     {}: {}", finding.checker, finding.text));
    }
    lines.join("\n")
}

fn json(played: &Played, time: u32) -> serde_json::Value {
    let mut line = json!({
        "schema": SCHEMA, "kind": "verdict", "seed": played.seed, "repetition": time, "findings": played.findings,
    });
    if let Some(verdict) = &played.verdict {
        line["trace"] = json!(format!("{:032x}", verdict.trace));
        line["messages"] = json!(verdict.messages.0);
        line["messages_of_several_records"] = json!(verdict.messages.1);
        line["succeeded"] = json!(verdict.succeeded);
        line["packets"] = json!(verdict.packets);
    }
    line
}

#[cfg(test)]
mod tests {
    mod judge {
        use super::super::{Played, judge};

        #[test]
        fn another_trace_is_a_failure() {
            let mut played = Played::play(1);
            let mut first = None;
            assert!(judge(&played, &mut first).is_ok());
            assert!(judge(&played, &mut first).is_ok());
            if let Some(verdict) = &mut played.verdict {
                verdict.trace ^= 1;
            }
            let failure = judge(&played, &mut first).unwrap_err();
            assert!(failure.text().contains("seed 1 does not repeat"));
        }
    }
}
