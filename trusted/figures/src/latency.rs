// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figure 7: how long an attestation takes, and how much of that is the way to whoever attests.
//! Beside it the rates of batches.

use smt_attestation::StreamId;
use smt_report::{Bar, Bars, Table};

use crate::machine::Processes;
use crate::systems::{Attestor, EMULATED, InProcess, library, open};
use crate::times::{Times, told};
use crate::{Failure, Report};

const STREAM: StreamId = StreamId(7);
const LENGTHS: [usize; 2] = [64, 128];

/// Attestations one at a time.
pub(crate) fn figure_7(
    processes: &Processes,
    report: &mut Report<'_>,
    less: usize,
) -> Result<(), Failure> {
    report.section(
        "Figure 7: latency of an attestation",
        "One at a time, in microseconds. \"Empty\" is a request that computes no MAC, hence the \
         way alone; \"way\" is its share of the mean. (The paper: FPGA 23, of which the way takes \
         70 %; SEV 30 and more, with tails of 200 to 500; SGX more than twice the FPGA.)",
    );
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    let mut measure = |name: &str, of: &mut dyn Attestor, count: usize| -> Result<(), Failure> {
        let count = (count / less).max(50);
        for length in LENGTHS {
            let (mut times, empty) = latencies(of, length, count)?;
            let is_emulated = name.contains("emulated");
            bars.push(Bar {
                name: format!("{name}, {length} B"),
                color: 0,
                value: times.below(0.5),
            });
            rows.push(row(&format!("{name}, {length} B"), times, empty, is_emulated));
        }
        Ok(())
    };
    let mut own = InProcess { device: library(), wait: 0 };
    open(&mut own.device, STREAM)?;
    measure("library", &mut own, 100_000)?;
    let mut device = processes.device()?;
    open(&mut device, STREAM)?;
    measure("device process", &mut device, 30_000)?;
    let mut server = processes.server()?;
    server.open(STREAM)?;
    measure("server process (TCP)", &mut server, 30_000)?;
    for (name, wait) in EMULATED {
        let mut emulated = InProcess { device: library(), wait };
        open(&mut emulated.device, STREAM)?;
        measure(name, &mut emulated, 5_000)?;
    }
    let titles = ["mean", "median", "99 %", "99.9 %", "most", "empty", "way"];
    let columns = titles.map(str::to_owned).to_vec();
    report.table(&Table { corner: "system".to_owned(), columns, rows });
    let title = "Microseconds of an attestation (median)".to_owned();
    report.picture("figure-7", &Bars { title, bars }.svg(), 2)
}

fn latencies(
    of: &mut dyn Attestor,
    length: usize,
    count: usize,
) -> Result<(Times, Times), Failure> {
    let message = vec![7; length];
    let [mut times, mut empty] = [Times::of_batches(1), Times::of_batches(1)];
    for _ in 0..count {
        times.time(|| of.attest(STREAM, &message))?;
        empty.time(|| of.nothing(STREAM))?;
    }
    Ok((times, empty))
}

fn row(name: &str, mut times: Times, empty: Times, is_emulated: bool) -> (String, Vec<String>) {
    let (mean, way) = (times.mean(), empty.mean());
    let mut values = vec![told(mean)];
    values.extend([0.5, 0.99, 0.999, 1.0].map(|share| told(times.below(share))));
    // A busy wait has no way.
    values.extend(match is_emulated {
        true => ["".to_owned(), "".to_owned()],
        false => [told(way), format!("{:.0} %", 100.0 * way / mean)],
    });
    (name.to_owned(), values)
}

const BATCH: usize = 1024;

/// Attestations and checks in batches: the device works on one while the host writes the next.
pub(crate) fn rates(
    processes: &Processes,
    report: &mut Report<'_>,
    less: usize,
) -> Result<(), Failure> {
    report.section(
        "Rates in batches",
        "Operations in a second, by the quickest of many batches of 1,024 requests, which leaves out what other processes take. A batch of one system \
         is followed by a batch of the other, so both see the same machine. The issue asks for a \
         share of 0.33 at least for attestations of 64 bytes, and about 1 for checks.",
    );
    let mut own = InProcess { device: library(), wait: 0 };
    let mut device = processes.device()?;
    let mut rows = Vec::new();
    for length in [64, 128, 1024, 4096, 16_384] {
        let stream = StreamId(100 + (length as u32).ilog2());
        open(&mut own.device, stream)?;
        open(&mut device, stream)?;
        let message = vec![7; length];
        let rounds = (200 * 64 / length.max(64) / less).clamp(15, 200);
        let mut times = [(); 4].map(|()| Times::of_batches(BATCH));
        for _ in 0..rounds {
            let attested = times[0].time(|| own.attest_many(stream, &message, BATCH))?;
            times[1].time(|| own.check_many(stream, &attested, &message))?;
            let attested = times[2].time(|| device.attest_many(stream, &message, BATCH))?;
            times[3].time(|| device.check_many(stream, &attested, &message))?;
        }
        let rates = times.each_mut().map(Times::rate);
        for (name, library, device) in
            [("attest", rates[0], rates[2]), ("check", rates[1], rates[3])]
        {
            let values = vec![told(library), told(device), format!("{:.2}", device / library)];
            rows.push((format!("{name} {length} B"), values));
        }
    }
    let columns = ["library", "device process", "share"].map(str::to_owned).to_vec();
    report.table(&Table { corner: "operation".to_owned(), columns, rows });
    Ok(())
}
