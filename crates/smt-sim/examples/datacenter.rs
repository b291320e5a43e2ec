// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Homa papers' datacenter (144 hosts, 10 and 40 Gb/s) under load, and the slowdown of messages by size.
//!
//!     cargo run --release -p smt-sim --example datacenter [WORKLOAD [LOAD [MICROSECONDS [smt|stream|pool]]]]

use std::error::Error;
use std::time::Duration;

use smt_sim::datacenter::{Pattern, Scenario, SlowdownRow, Transport, run};
use smt_sim::{Pooling, Spreading, Topology, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &'static str| given.get(at).map_or(default, String::as_str);
    let workload: Workload = argument(0, "w1").parse()?;
    let load: f64 = argument(1, "0.8").parse()?;
    let duration = Duration::from_micros(argument(2, "20").parse()?);
    let mut topology = Topology::datacenter(10_000_000_000, 40_000_000_000);
    // As in the papers, so that queues are seen and not cut off.
    topology.switch.buffer = u64::MAX / 2;
    let transport = match argument(3, "smt") {
        "smt" => Transport::Smt,
        "stream" => Transport::Stream(Pooling::OnePerPair),
        "pool" => Transport::Stream(Pooling::Pool(4)),
        other => return Err(format!("a transport is smt, stream or pool, not {other:?}").into()),
    };
    if transport != Transport::Smt {
        topology.switch.mark_above = Some(100_000);
        topology.switch.spreading = Spreading::ByEntropy;
    }
    let results = run(&Scenario {
        topology,
        workload,
        pattern: Pattern::Uniform { load },
        transport,
        duration,
        warm_up: duration / 10,
        peers: u32::MAX - 1,
        seed: 1,
    });
    println!(
        "{} at load {load}, {transport:?}: {} messages in {duration:?} ({} unfinished, {} refused)",
        workload.name(),
        results.count(),
        results.unfinished,
        results.refused
    );
    println!(
        "links used {:.1} %, goodput {:.2} Gb/s a host, longest queue {} KB, {} packets over {} hops",
        100.0 * results.used,
        results.goodput / 1e9,
        results.queue_max / 1_000,
        results.counts.delivered,
        results.counts.hops
    );
    println!(
        "{:>12} {:>9} {:>8} {:>8} {:>8}",
        "bytes up to", "messages", "p50", "p99", "max"
    );
    let print = |name: String, row: SlowdownRow| {
        let SlowdownRow {
            count,
            p50,
            p99,
            max,
            ..
        } = row;
        println!("{name:>12} {count:>9} {p50:>8.2} {p99:>8.2} {max:>8.2}");
    };
    results
        .rows()
        .into_iter()
        .for_each(|row| print(row.up_to.to_string(), row));
    results
        .shorter_half()
        .into_iter()
        .for_each(|row| print("shorter half".to_owned(), row));
    results
        .all()
        .into_iter()
        .for_each(|row| print("all".to_owned(), row));
    Ok(())
}
