// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seed that was played, and the findings of a checker or of the code's own assertions.

use std::panic::AssertUnwindSafe;

use serde::Serialize;
use serde_json::json;
use smt_sim::swarm::{Case, Observers, Verdict, run_observed};

use super::{SCHEMA, panics};

/// The outcome of a seed.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) seed: u64,
    /// Empty if all is well.
    pub(super) findings: Vec<Finding>,
    /// `None` if the case did not come to an end.
    pub(super) verdict: Option<Verdict>,
}

/// One thing that must not be.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Finding {
    /// The checker that found it: one of the simulator's, or one of those below.
    pub(super) checker: String,
    pub(super) text: String,
}

impl Played {
    /// Plays a seed.
    pub(super) fn play(seed: u64) -> Self {
        Self::repeated(&Case::new(seed))
    }

    /// Plays a seed with an attacker on the path.
    pub(super) fn play_attacked(seed: u64) -> Self {
        Self::repeated(&Case::new(seed).attacked())
    }

    /// Plays a case, and some cases twice: a difference that is not of the seed would show.
    fn repeated(case: &Case) -> Self {
        let mut played = Self::of(case, Observers::default());
        if case.seed.is_multiple_of(REPEAT_EVERY) {
            let again = Self::of(case, Observers::default());
            let trace = |played: &Self| played.verdict.as_ref().map(|verdict| verdict.trace);
            if trace(&again) != trace(&played) {
                played.findings.push(Finding {
                    checker: TRACE.to_owned(),
                    text: "it does not repeat: the trace is another the second time".to_owned(),
                });
            }
        }
        played
    }

    /// Plays a case under the eyes of observers.
    pub(super) fn of(case: &Case, observers: Observers) -> Self {
        let seed = case.seed;
        // After a panic an observer has seen what came before, and is not broken.
        let play = AssertUnwindSafe(|| run_observed(case, observers));
        match panics::catch(play) {
            Ok(verdict) => Self {
                seed,
                findings: verdict.failures.iter().map(Finding::from).collect(),
                verdict: Some(verdict),
            },
            Err(text) => Self::without_end(seed, PANIC, text),
        }
    }

    /// The case was broken off.
    pub(super) fn without_end(seed: u64, checker: &str, text: String) -> Self {
        let checker = checker.to_owned();
        Self { seed, findings: vec![Finding { checker, text }], verdict: None }
    }

    pub(super) fn has_failed(&self) -> bool {
        !self.findings.is_empty()
    }

    /// The command that plays it again.
    fn replay(&self, is_attacked: bool) -> String {
        // The command as the user has called it, so that it can be typed again.
        let program = std::env::args_os().next().unwrap_or_else(|| "smt".into());
        let program = program.to_string_lossy();
        let attacked = if is_attacked { " --attacked" } else { "" };
        format!("{program} sim run --seed {}{attacked}", self.seed)
    }

    /// The findings, for people. The seeds may all have been attacked.
    pub(super) fn text(&self, is_attacked: bool) -> String {
        let mut text = format!("seed {} failed\n", self.seed);
        for Finding { checker, text: found } in &self.findings {
            text.push_str(&format!("  {checker}: {found}\n"));
        }
        text + &format!("  replay: {}", self.replay(is_attacked))
    }

    /// The findings, for programs.
    pub(super) fn json(&self, is_attacked: bool) -> serde_json::Value {
        json!({
            "schema": SCHEMA, "kind": "failure", "seed": self.seed, "findings": self.findings,
            "replay": self.replay(is_attacked),
        })
    }
}

impl From<&smt_sim::swarm::check::Failure> for Finding {
    fn from(failure: &smt_sim::swarm::check::Failure) -> Self {
        Self { checker: format!("{:?}", failure.checker), text: failure.text.clone() }
    }
}

/// One seed of this many is played twice.
const REPEAT_EVERY: u64 = 50;
/// The case does not repeat.
const TRACE: &str = "Trace";
/// The code has panicked.
const PANIC: &str = "Panic";
/// The case takes more real time than any should.
pub(super) const STUCK: &str = "Stuck";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_seed_what_was_found_and_how_to_see_it_again() {
        let played = Played::without_end(17, PANIC, "at x.rs:1".to_owned());
        let text = played.text(false);
        assert!(text.starts_with("seed 17 failed\n  Panic: at x.rs:1\n  replay: "), "{text}");
        assert!(text.ends_with(" sim run --seed 17"), "{text}");
        let attacked = played.text(true);
        assert!(attacked.ends_with(" sim run --seed 17 --attacked"), "{attacked}");
        assert_eq!(played.json(false)["findings"][0]["checker"], "Panic");
    }
}
