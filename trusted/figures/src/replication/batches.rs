// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The gain of a batch, in rounds of runs: one of each size after the other.

use smt_report::Table;

use super::device::Attesting;
use super::figures::{BATCHES, IN_PROGRESS};
use super::over_smt::{Load, Measured, measure};
use super::system::{Kind, System};
use crate::Failure;
use crate::times::told;

/// Measures BFT with each size of batch once in each round, over the library and over device
/// processes, and returns a table of medians for each.
pub(crate) fn batches(rounds: usize, requests: u64) -> Result<Vec<Table>, Failure> {
    let load = Load { in_progress: IN_PROGRESS, requests };
    [Attesting::Library, Attesting::Process].map(|it| table(it, rounds, load)).into_iter().collect()
}

/// The runs of one size, a round each.
type Rounds = Vec<Measured>;

fn table(attesting: Attesting, rounds: usize, load: Load) -> Result<Table, Failure> {
    let mut runs = BATCHES.map(|_| Rounds::new());
    for _ in 0..rounds {
        for (batch, runs) in BATCHES.into_iter().zip(&mut runs) {
            runs.push(measure(&System { kind: Kind::Bft { batch }, attesting }, load)?);
        }
    }
    let [first, ..] = &runs;
    let row = |(batch, runs): (usize, &Rounds)| (format!("batch {batch}"), columns(runs, first));
    Ok(Table {
        corner: attesting.name().to_owned(),
        columns: ["requests/s", "CPU, us", "beside the first"].map(str::to_owned).to_vec(),
        rows: BATCHES.into_iter().zip(&runs).map(row).collect(),
    })
}

/// Medians, and the rate beside that of the first size in the same round: median, least and most.
fn columns(runs: &Rounds, first: &Rounds) -> Vec<String> {
    let ratios = sorted(runs.iter().zip(first).map(|(own, first)| own.rate / first.rate));
    let (least, most) = (ratios.first().unwrap_or(&0.0), ratios.last().unwrap_or(&0.0));
    vec![
        told(middle(&sorted(runs.iter().map(|it| it.rate)))),
        told(middle(&sorted(runs.iter().map(|it| it.cpu)))),
        format!("{:.2} ({least:.2} to {most:.2})", middle(&ratios)),
    ]
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn each_size_of_a_batch_has_a_row_beside_batches_of_one() {
        let load = Load { in_progress: IN_PROGRESS, requests: 64 };
        let table = table(Attesting::Library, 1, load).unwrap();
        let names: Vec<_> = table.rows.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["batch 1", "batch 8", "batch 16"]);
        assert_eq!(table.rows[0].1[2], "1.00 (1.00 to 1.00)");
    }
}
