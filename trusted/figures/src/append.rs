// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Table 3: attested append-only memory, in memory and on disk.

use std::hint::black_box;

use smt_a2m::{A2m, Disk, Durability, LogId, Memory, OwnDevice, Storage};
use smt_device_client::AppendOnly;
use smt_report::Table;

use crate::machine::Processes;
use crate::systems::{EMULATED, busy_wait, library};
use crate::times::{Times, told};
use crate::{Failure, Report};

/// The log of each memory.
const LOG: LogId = LogId(1);
/// Bytes of a context: with its attestation and statement, an entry has what the paper's has.
const CONTEXT: [u8; 64] = [7; 64];
const BATCH: usize = 1024;

/// Appends and lookups of all systems.
pub(crate) fn table_3(
    processes: &Processes,
    report: &mut Report<'_>,
    less: usize,
) -> Result<(), Failure> {
    report.section(
        "Table 3: attested append-only memory",
        "Operations in a second by the quickest batch, and microseconds of one in the mean. Contexts \
         of 64 bytes, appends in batches of 1,024, lookups without verification one after the \
         other; on disk a commit follows each batch. Rows with \"emulated\" append one entry at a \
         time, and their rates are those of the mean. (The paper, with a log of 100 million entries: library 790K appends \
         and 256M lookups, SGX 380K and 3.8M, SEV 30K and 263M, FPGA 158K and 257M. Its lookup \
         reads a place of an array; ours copies the entry.) The issue asks for appends by the \
         device of half the library's at least, and for equal lookups.",
    );
    let rounds = (200 / less).max(3);
    let mut rows = Vec::new();
    // A round of the library is followed by one of the device, so both see the same machine.
    let mut own = Log::new(A2m::open_own(library(), Memory::default())?);
    let mut device = Log::new(A2m::open_with(processes.device()?, Memory::default())?);
    for _ in 0..rounds {
        own.round()?;
        device.round()?;
    }
    let shares = [device.appends.rate() / own.appends.rate(), device.rate() / own.rate()];
    rows.push(own.row("library, in memory"));
    rows.push(device.row("device process, in memory"));
    rows.push((
        "share".to_owned(),
        shares
            .map(|it| format!("{it:.2}"))
            .into_iter()
            .chain([String::new(), String::new()])
            .collect(),
    ));
    let disk = |name: &str| Disk::open(&processes.place(name), Durability::Anchored);
    let mut own = Log::new(A2m::open_own(library(), disk("library")?)?);
    // A device has one memory.
    let other = processes.other_device()?;
    let mut device = Log::new(A2m::open_with(other.connect()?, disk("device")?)?);
    for _ in 0..rounds / 4 + 1 {
        own.round()?;
        device.round()?;
    }
    rows.push(own.row("library, on disk"));
    rows.push(device.row("device process, on disk"));
    for (name, wait) in EMULATED {
        rows.push(emulated(name, wait, (20_000 / less).max(100))?);
    }
    let titles = ["appends/s", "lookups/s", "us of an append", "us of a lookup"];
    let columns = titles.map(str::to_owned).to_vec();
    report.table(&Table { corner: "system".to_owned(), columns, rows });
    Ok(())
}

struct Log<S, D> {
    memory: A2m<S, D>,
    appends: Times,
    lookups: Times,
    sequence: u64,
}

impl<S: Storage, D: AppendOnly> Log<S, D> {
    fn new(memory: A2m<S, D>) -> Self {
        let [appends, lookups] = [(); 2].map(|()| Times::of_batches(BATCH));
        Self { memory, appends, lookups, sequence: 2 }
    }

    fn round(&mut self) -> Result<(), Failure> {
        let contexts = [&CONTEXT[..]; BATCH];
        self.appends.time(|| -> Result<(), Failure> {
            self.memory.append_all(LOG, &contexts)?;
            Ok(self.memory.commit()?)
        })?;
        let first = self.sequence;
        self.sequence += BATCH as u64;
        let last = self.sequence;
        let memory = &self.memory;
        self.lookups.time(|| -> Result<(), Failure> {
            (first..last).try_for_each(|it| {
                black_box(memory.lookup(LOG, it)?);
                Ok(())
            })
        })
    }

    fn rate(&mut self) -> f64 {
        self.lookups.rate()
    }

    fn row(&mut self, name: &str) -> (String, Vec<String>) {
        let values =
            [self.appends.rate(), self.lookups.rate(), self.appends.mean(), self.lookups.mean()];
        (name.to_owned(), values.map(told).to_vec())
    }
}

/// One append at a time by the library, after a busy wait.
fn emulated(name: &str, wait: u64, count: usize) -> Result<(String, Vec<String>), Failure> {
    let mut memory: A2m<Memory, OwnDevice> = A2m::open_own(library(), Memory::default())?;
    let [mut appends, mut lookups] = [(); 2].map(|()| Times::of_batches(1));
    for number in 0..count as u64 {
        appends.time(|| {
            busy_wait(wait);
            memory.append(LOG, &CONTEXT)
        })?;
        lookups.time(|| memory.lookup(LOG, number + 2))?;
    }
    let values = [1e6 / appends.mean(), 1e6 / lookups.mean(), appends.mean(), lookups.mean()];
    Ok((format!("{name}, one at a time, mean"), values.map(told).to_vec()))
}
