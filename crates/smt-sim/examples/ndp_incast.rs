// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Incast with switches that queue eight packets a port: many hosts send to one at once, by NDP's pulls and trimmed
//! packets, and by Homa's grants without use for what was trimmed.
//!
//!     cargo run --release -p smt-sim --example ndp_incast [SENDERS [BYTES]]

use std::error::Error;
use std::time::Duration;

use smt_proto::PullOrder;
use smt_sim::datacenter::{Pattern, Results, Scenario, Transport, run};
use smt_sim::{Topology, Workload, wire_len};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &'static str| given.get(at).map_or(default, String::as_str);
    let senders: u32 = argument(0, "100").parse()?;
    let bytes: u32 = argument(1, "100000").parse()?;
    println!("{senders} hosts send {bytes} B each to one of 10 Gb/s, all at once");
    println!(
        "{:<28} {:>9} {:>8} {:>9} {:>10} {:>9} {:>9} {:>8}",
        "", "last, us", "Gb/s", "queue, KB", "trimmed", "by pull", "by timer", "missing"
    );
    let eight = Some(7 * wire_len(1_472));
    let ndp = Transport::Ndp;
    for (name, transport, trim_above) in [
        ("NDP, in turn", ndp(PullOrder::RoundRobin), eight),
        ("NDP, shortest first", ndp(PullOrder::ShortestFirst), eight),
        ("Homa, eight packets", Transport::Smt, eight),
        ("Homa, buffers of any size", Transport::Smt, None),
    ] {
        let mut topology = Topology::datacenter(10_000_000_000, 40_000_000_000);
        topology.switch.buffer = u64::MAX / 2;
        topology.switch.trim_above = trim_above;
        let results = run(&Scenario {
            topology,
            workload: Workload::Fixed(bytes),
            pattern: Pattern::Incast {
                senders,
                every: Duration::from_secs(1),
            },
            transport,
            duration: Duration::from_millis(1),
            warm_up: Duration::ZERO,
            peers: u32::MAX - 1,
            seed: 1,
        });
        print_row(name, bytes, &results);
    }
    Ok(())
}

fn print_row(name: &str, bytes: u32, results: &Results) {
    let lasted = results.lasted.as_secs_f64();
    let rate = results.count() as f64 * f64::from(bytes) * 8.0 / lasted / 1e9;
    println!(
        "{name:<28} {:>9.0} {rate:>8.2} {:>9} {:>10} {:>9} {:>9} {:>8}",
        lasted * 1e6,
        results.queue_max / 1_000,
        results.trimmed,
        results.asked_by_trimmed,
        results.asked_by_timer,
        results.unfinished
    );
}
