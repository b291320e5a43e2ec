// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The totals of a swarm: sums, failed seeds, and reached goals.

use std::time::Duration;

use serde_json::json;
use smt_sim::swarm::Coverage;

use super::SCHEMA;
use super::played::Played;
use super::progress;
use crate::failure::Failure;
use crate::time_span;

/// Sums over seeds.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) seeds: u64,
    failed: Vec<u64>,
    messages: u64,
    messages_of_several_records: u64,
    succeeded: u64,
    calls_in_parts: u64,
    parts: u64,
    packets: u64,
    coverage: Coverage,
}

impl Totals {
    /// Adds a seed.
    pub(super) fn add(&mut self, played: &Played) {
        self.seeds += 1;
        if played.has_failed() {
            self.failed.push(played.seed);
        }
        let Some(verdict) = &played.verdict else {
            return;
        };
        self.messages += verdict.messages.0;
        self.messages_of_several_records += verdict.messages.1;
        self.succeeded += verdict.succeeded;
        self.calls_in_parts += verdict.parts.0;
        self.parts += verdict.parts.1;
        self.packets += verdict.packets;
        self.coverage.add(&verdict.coverage);
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.len() as u64
    }

    /// The verdict on failed seeds and missed goals. Each goal is to be reached in `least` percent
    /// of the seeds.
    pub(super) fn judge(&self, least: f64) -> Result<(), Failure> {
        if !self.failed.is_empty() {
            let first = self.failed.iter().take(NAMED_MAX).map(u64::to_string);
            let named = first.collect::<Vec<_>>().join(", ");
            let more = match self.failed.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Err(Failure::finding(format!(
                "{} of {} seeds failed: {named}{more}",
                self.failed.len(),
                self.seeds
            )));
        }
        let missed = self.missed(least);
        if missed.is_empty() {
            return Ok(());
        }
        let told = |(name, share): &(String, f64)| format!("{name} ({share:.2} %)");
        Err(Failure::finding(format!(
            "reached in fewer than {least} % of {} seeds: {}",
            self.seeds,
            missed.iter().map(told).collect::<Vec<_>>().join(", ")
        )))
    }

    /// For people: sums, and a table of the reached goals.
    pub(super) fn text(&self, elapsed: Duration, least: f64) -> String {
        let mut text = format!(
            "{} seeds in {}, {:.1} a second, {} failed\n\
             {} messages delivered ({} of several records), {} succeeded; {} calls in parts, {} parts taken; {} packets\n",
            self.seeds,
            time_span::display(elapsed),
            progress::rate(self.seeds, elapsed),
            self.failed(),
            self.messages,
            self.messages_of_several_records,
            self.succeeded,
            self.calls_in_parts,
            self.parts,
            self.packets,
        );
        text.push_str("\nreached, in % of the seeds\n");
        let missed = self.missed(least);
        for goal in self.coverage.shares() {
            let mark = if missed.contains(&goal) { "!" } else { " " };
            text.push_str(&format!("{mark} {:6.2}  {}\n", goal.1, goal.0));
        }
        text
    }

    /// For programs: the same in two lines.
    pub(super) fn json(&self, elapsed: Duration) -> [serde_json::Value; 2] {
        let totals = json!({
            "schema": SCHEMA, "kind": "totals", "seeds": self.seeds, "failed": self.failed,
            "elapsed_s": elapsed.as_secs_f64(), "seeds_per_s": progress::rate(self.seeds, elapsed),
            "messages": self.messages,
            "messages_of_several_records": self.messages_of_several_records,
            "succeeded": self.succeeded, "calls_in_parts": self.calls_in_parts,
            "parts": self.parts, "packets": self.packets,
        });
        let goal = |(name, share): &(String, f64)| json!({"name": name, "percent": share});
        let goals: Vec<_> = self.coverage.shares().iter().map(goal).collect();
        let reached = json!({"schema": SCHEMA, "kind": "coverage", "goals": goals});
        [totals, reached]
    }

    /// Goals that were reached by fewer seeds. Few seeds say nothing about that.
    fn missed(&self, least: f64) -> Vec<(String, f64)> {
        let mut goals = self.coverage.shares();
        goals.retain(|(_, share)| self.seeds >= SEEDS_TO_JUDGE && *share < least);
        goals
    }
}

/// Seeds that the last line names at most; each was told when it failed.
const NAMED_MAX: usize = 20;
/// With fewer seeds, chance decides what is reached.
const SEEDS_TO_JUDGE: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn well(seed: u64) -> Played {
        Played { seed, findings: Vec::new(), verdict: None }
    }

    fn totals(seeds: u64) -> Totals {
        let mut totals = Totals::default();
        (0..seeds).for_each(|seed| totals.add(&well(seed)));
        totals
    }

    mod judge {
        use super::*;

        #[test]
        fn failed_seeds_are_named() {
            let mut totals = totals(10);
            totals.add(&Played::without_end(77, "Panic", "x".to_owned()));
            assert_eq!(totals.judge(1.0).unwrap_err().text(), "1 of 11 seeds failed: 77");
            for seed in 100..130 {
                totals.add(&Played::without_end(seed, "Panic", "x".to_owned()));
            }
            let text = totals.judge(1.0).unwrap_err().text().to_owned();
            assert!(text.ends_with("118 and 11 more"), "{text}");
        }

        #[test]
        fn goals_are_asked_for_from_a_thousand_seeds_on() {
            // These seeds have reached nothing.
            assert!(totals(999).judge(1.0).is_ok());
            let text = totals(1_000).judge(1.0).unwrap_err().text().to_owned();
            assert!(text.contains("fewer than 1 % of 1000 seeds: "), "{text}");
            assert!(text.contains("fault Loss (0.00 %)"), "{text}");
            assert!(totals(1_000).judge(0.0).is_ok());
        }
    }

    mod text {
        use super::*;

        #[test]
        fn missed_goals_are_marked() {
            let marked = |seeds| {
                let text = totals(seeds).text(Duration::from_secs(1), 1.0);
                text.lines().filter(|line| line.starts_with('!')).count()
            };
            assert_eq!(marked(999), 0);
            assert!(marked(1_000) > 20);
        }
    }
}
