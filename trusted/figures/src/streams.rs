// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Table 5 and Figure 13: memory and time by the number of streams.

use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Kernel, Member, Start, Stream, StreamId,
};
use smt_report::{Axis, Line, Plot, Table};

use crate::times::{Times, told};
use crate::{Failure, Report};

/// Members besides the device, and attestations that a stream keeps: those of a device process.
const PEERS: usize = 15;
const RECENT: usize = 64;
const BATCH: usize = 64;

/// Measures kernels of 1 to 10,000 streams.
pub(crate) fn table_5(report: &mut Report<'_>, less: usize) -> Result<(), Failure> {
    report.section(
        "Table 5 and Figure 13: cost and memory by streams",
        "Kernels of so many streams, all open, each of a group of 16 with the last 64 attestations. \
         Nanoseconds of an attestation of 64 bytes by any of the streams in turn. A device process \
         has 128 streams. (The paper has connections: its FPGA takes 32 of them, and each takes \
         logic for an attestation kernel of its own.)",
    );
    // A kernel is one value without pointers, so the largest needs a stack that has room for it.
    let measured = std::thread::Builder::new()
        .stack_size(1 << 28)
        .spawn(move || {
            let rounds = (200 / less).max(20);
            Ok(vec![
                measure::<1>(rounds)?,
                measure::<10>(rounds)?,
                measure::<100>(rounds)?,
                measure::<1_000>(rounds)?,
                measure::<10_000>(rounds)?,
            ])
        })?
        .join()
        .map_err(|_| "a thread has failed")?;
    let measured: Vec<Measured> = measured.map_err(|it: String| it)?;
    let row = |it: &Measured| {
        let kilobytes = it.bytes as f64 / 1024.0;
        (it.streams.to_string(), vec![told(kilobytes), told(it.nanoseconds)])
    };
    report.table(&Table {
        corner: "streams".to_owned(),
        columns: ["KiB of the kernel", "ns of an attestation"].map(str::to_owned).to_vec(),
        rows: measured.iter().map(row).collect(),
    });
    let bytes = size_of::<Stream<PEERS, RECENT>>();
    report.text += &format!("\nA stream has {bytes} bytes, and nothing else grows with them.\n");
    let points: Vec<_> = measured.iter().map(|it| (it.streams as f64, it.nanoseconds)).collect();
    let most = points.iter().map(|it| it.1).fold(0.0, f64::max);
    let plot = Plot {
        title: "Nanoseconds of an attestation by the number of streams".to_owned(),
        x: Axis::logarithmic("streams", 1.0, 10_000.0),
        y: Axis::linear("ns", most),
        lines: vec![Line { name: "attest 64 B".to_owned(), color: 0, points }],
    };
    report.picture("figure-13", &plot.svg(), 2)
}

struct Measured {
    streams: usize,
    bytes: usize,
    nanoseconds: f64,
}

fn measure<const STREAMS: usize>(rounds: usize) -> Result<Measured, String> {
    let own = Start { device: DeviceId(1), epoch: Epoch(1), nonce: [0; 16] };
    let mut kernel = Box::new(Kernel::<STREAMS, PEERS, RECENT>::start(own));
    let members: Vec<Member> =
        (1..=16).map(|it| Member { device: DeviceId(it), epoch: Epoch(1) }).collect();
    let secret = GroupSecret::new([1; 32]);
    let algorithm = Algorithm::HmacSha256;
    for number in 0..STREAMS as u32 {
        let stream = StreamId(number);
        let group = Group { stream, algorithm, quorum: 8, members: &members };
        kernel.open(&secret, &group).map_err(|why| format!("a stream does not open: {why:?}"))?;
    }
    let mut times = Times::of_batches(BATCH);
    let mut number = 0_u32;
    for _ in 0..rounds {
        times.time(|| {
            for _ in 0..BATCH {
                // A step that has no factor with the number of streams meets all of them.
                number = (number + 7919) % STREAMS as u32;
                let stream = kernel.stream_mut(StreamId(number)).ok_or("a stream is missing")?;
                stream.attest(&[7; 64]).map_err(|_| "a stream does not attest")?;
            }
            Ok::<_, &str>(())
        })?;
    }
    let bytes = size_of::<Kernel<STREAMS, PEERS, RECENT>>();
    Ok(Measured { streams: STREAMS, bytes, nanoseconds: 1e3 * times.below(0.5) })
}
