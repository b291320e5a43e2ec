// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The core workloads A to F of YCSB (Cooper and others, SoCC 2010), and their operations.

use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;

use crate::numbers::{Zipfian, scrambled};

/// A core workload.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Workload {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of the latest, 5 % inserts.
    D,
    /// 95 % scans of up to 100 records, 5 % inserts.
    E,
    /// Half reads, half reads that are followed by a write of the record.
    F,
}

/// An operation, by number of its record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    Read(u64),
    Update(u64),
    Insert(u64),
    Scan { from: u64, count: u64 },
    ReadModifyWrite(u64),
}

impl Workload {
    /// Those of these letters.
    pub(crate) fn all_of(letters: &str) -> Result<Vec<Self>, String> {
        let one = |letter: char| match letter.to_ascii_uppercase() {
            'A' => Ok(Self::A),
            'B' => Ok(Self::B),
            'C' => Ok(Self::C),
            'D' => Ok(Self::D),
            'E' => Ok(Self::E),
            'F' => Ok(Self::F),
            other => Err(format!("caller: there is no workload {other}: A to F")),
        };
        letters.chars().filter(|letter| *letter != ',').map(one).collect()
    }
}

/// Draws the operations of one client.
pub(crate) struct Operations<'a> {
    workload: Workload,
    random: Rng,
    latest: Zipfian,
    /// How many records there are, for all clients.
    records: &'a AtomicU64,
}

impl<'a> Operations<'a> {
    pub(crate) fn new(workload: Workload, seed: u64, records: &'a AtomicU64) -> Self {
        Self {
            workload,
            random: Rng::with_seed(seed),
            latest: Zipfian::new(records.load(Ordering::Relaxed)),
            records,
        }
    }

    pub(crate) fn next(&mut self) -> Operation {
        let share = self.random.f64();
        match self.workload {
            Workload::A if share < 0.5 => Operation::Read(self.popular()),
            Workload::B if share < 0.95 => Operation::Read(self.popular()),
            Workload::A | Workload::B => Operation::Update(self.popular()),
            Workload::C => Operation::Read(self.popular()),
            Workload::D if share < 0.95 => Operation::Read(self.latest()),
            Workload::E if share < 0.95 => {
                Operation::Scan { from: self.popular(), count: self.random.u64(1..=100) }
            }
            Workload::D | Workload::E => {
                Operation::Insert(self.records.fetch_add(1, Ordering::Relaxed))
            }
            Workload::F if share < 0.5 => Operation::Read(self.popular()),
            Workload::F => Operation::ReadModifyWrite(self.popular()),
        }
    }

    /// Seconds to the next arrival of a Poisson process of this rate.
    pub(crate) fn pause(&mut self, rate: f64) -> f64 {
        -(1.0 - self.random.f64()).ln() / rate
    }

    fn popular(&mut self) -> u64 {
        scrambled(self.records.load(Ordering::Relaxed), &mut self.random)
    }

    fn latest(&mut self) -> u64 {
        let records = self.records.load(Ordering::Relaxed);
        self.latest.grow(records);
        records - 1 - self.latest.next(&mut self.random).min(records - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(workload: Workload) -> [f64; 5] {
        let records = AtomicU64::new(1_000);
        let mut operations = Operations::new(workload, 5, &records);
        let mut counts = [0_u32; 5];
        for _ in 0..20_000 {
            counts[match operations.next() {
                Operation::Read(_) => 0,
                Operation::Update(_) => 1,
                Operation::Insert(_) => 2,
                Operation::Scan { count, .. } => {
                    assert!((1..=100).contains(&count));
                    3
                }
                Operation::ReadModifyWrite(_) => 4,
            }] += 1;
        }
        counts.map(|count| f64::from(count) / 20_000.0)
    }

    #[test]
    fn workloads_have_the_published_shares() {
        for (workload, expected) in [
            (Workload::A, [0.5, 0.5, 0.0, 0.0, 0.0]),
            (Workload::B, [0.95, 0.05, 0.0, 0.0, 0.0]),
            (Workload::C, [1.0, 0.0, 0.0, 0.0, 0.0]),
            (Workload::D, [0.95, 0.0, 0.05, 0.0, 0.0]),
            (Workload::E, [0.0, 0.0, 0.05, 0.95, 0.0]),
            (Workload::F, [0.5, 0.0, 0.0, 0.0, 0.5]),
        ] {
            for (share, expected) in shares(workload).iter().zip(expected) {
                assert!((share - expected).abs() < 0.02, "{workload:?}: {share}, not {expected}");
            }
        }
    }

    #[test]
    fn the_latest_records_are_read_most() {
        let records = AtomicU64::new(1_000);
        let mut operations = Operations::new(Workload::D, 9, &records);
        let mut late = 0;
        for _ in 0..10_000 {
            if let Operation::Read(record) = operations.next() {
                late += u32::from(record + 100 >= records.load(Ordering::Relaxed));
            }
        }
        assert!(late > 5_000, "{late}");
    }
}
