// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All outcomes of a run, and what is computed of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kit_process::{Doing, Failure};
use serde::{Deserialize, Serialize};

use crate::child::Fields;
use crate::measure::{Outcome, Setting, mean};

/// The results of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Results {
    /// The machine, its load and the options.
    pub(crate) about: Vec<String>,
    /// Stacks that could not be measured, and measurements that failed.
    pub(crate) missing: Vec<String>,
    /// Outcomes by the part that they are of.
    pub(crate) parts: BTreeMap<String, Vec<Outcome>>,
}

impl Results {
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(folder.join(FILE)).doing("reading the results")?;
        serde_json::from_str(&text).doing("reading the results")
    }

    /// After each measurement, so that a run that is ended has its results.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).doing("writing the results")?;
        fs::write(folder.join(FILE), text).doing("writing the results")
    }

    /// The outcomes of a part that a stack's server has, of equal settings together.
    pub(crate) fn groups(&self, part: &str) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for outcome in self.parts.get(part).into_iter().flatten() {
            let known = groups.iter_mut().find(|group| group.has(outcome));
            match known {
                Some(group) => group.outcomes.push(outcome),
                None => groups.push(Group { outcomes: vec![outcome] }),
            }
        }
        groups
    }
}

/// The repetitions of one measurement: at least one.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) outcomes: Vec<&'a Outcome>,
}

impl Group<'_> {
    fn has(&self, outcome: &Outcome) -> bool {
        let first = self.first();
        let setting = Setting { seed: first.setting.seed, ..outcome.setting.clone() };
        let of = (&first.server, &first.client, &first.setting);
        of == (&outcome.server, &outcome.client, &setting)
    }

    pub(crate) fn first(&self) -> &Outcome {
        self.outcomes[0]
    }

    pub(crate) fn setting(&self) -> &Setting {
        &self.first().setting
    }

    /// The median over the repetitions.
    pub(crate) fn median(&self, of: impl Fn(&Outcome) -> f64) -> f64 {
        let mut values: Vec<f64> = self.outcomes.iter().map(|outcome| of(outcome)).collect();
        middle(&mut values)
    }

    /// The mean, the minimum and the 95th percentile of single connections' rates.
    pub(crate) fn each(&self) -> [f64; 3] {
        let each = self.outcomes.iter().flat_map(|outcome| &outcome.each);
        let mut all: Vec<f64> = each.copied().collect();
        let mean = mean(all.iter().copied());
        [mean, quantile(&mut all, 0.0), quantile(&mut all, 0.95)]
    }

    /// The sum of samples by class, of all sampled repetitions.
    pub(crate) fn samples(&self, of: impl Fn(&Outcome) -> Option<&Fields>) -> Fields {
        let mut sum = Fields::new();
        for outcome in &self.outcomes {
            for (class, count) in of(outcome).into_iter().flatten() {
                *sum.entry(class.clone()).or_default() += count;
            }
        }
        sum
    }
}

impl Outcome {
    /// Percent of one core, over the transfer: seconds of CPU time for a gigabyte, times gigabytes
    /// a second. The drain of a connection, for which some clients wait, is not in it.
    pub(crate) fn cpu_percent(&self, report: &Fields) -> f64 {
        self.cpu_per_gigabyte(report) * self.all / 8_000.0 * 100.0
    }

    /// Seconds of CPU time for a gigabyte.
    pub(crate) fn cpu_per_gigabyte(&self, report: &Fields) -> f64 {
        let bytes = self.setting.bytes as f64 * f64::from(self.setting.connections);
        field(report, "cpu_us") / 1e6 / (bytes / 1e9)
    }

    /// Percent of the packets that the server has sent and taken for lost.
    pub(crate) fn lost_percent(&self) -> f64 {
        let sent = field(&self.server_report, "sent").max(1.0);
        field(&self.server_report, "lost") / sent * 100.0
    }
}

/// A field of a report, 0 if it is not there.
pub(crate) fn field(report: &Fields, name: &str) -> f64 {
    report.get(name).copied().unwrap_or_default() as f64
}

/// The middle value, or the mean of the two in the middle; 0 of none.
fn middle(values: &mut [f64]) -> f64 {
    let upper = quantile(values, 0.5);
    match values.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => f64::midpoint(values[count / 2 - 1], upper),
        _ => upper,
    }
}

/// The value below which this share is; 0 of none.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(place).copied().unwrap_or_default()
}

const FILE: &str = "results.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_two_is_their_mean() {
        assert_eq!(middle(&mut [4.0, 2.0]), 3.0);
        assert_eq!(middle(&mut [9.0, 1.0, 2.0]), 2.0);
        assert_eq!(middle(&mut [7.0, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(middle(&mut []), 0.0);
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let mut values = [3.0, 1.0, 2.0];
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 0.5), 2.0);
        assert_eq!(quantile(&mut values, 0.95), 3.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
