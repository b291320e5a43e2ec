// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resyncs of a NIC's TLS engine under loss: TLS over TCP, as the kernel's TLS offload has it, and
//! SMT, by the same engine and driver.
//!
//!     cargo run --release -p smt-sim --example resyncs
//!
//! One host sends messages to another over 10 Gb/s, some at once, and a share of all packets is
//! lost. Seals are checked: a record that TCP's NIC seals again has the same bytes as before, or
//! this panics; SMT's NIC is watched by the simulator's random cases.

mod ktls;
mod smt;

use std::time::Duration;

use smt_proto::Time;
use smt_sim::Random;
use smt_sim::net::{Link, LinkRule, Network, Packet, Topology};

/// Bytes of a message.
const MESSAGE: u32 = 65_536;
/// Messages in all, and at once.
const MESSAGES: u32 = 1_000;
const AT_ONCE: u32 = 4;

/// The work of a NIC for all messages.
struct Work {
    /// Segments whose records the engine has sealed.
    segments: u64,
    /// Record numbers that were set anew.
    resyncs: u64,
    /// Records that the engine has sealed.
    sealed: u64,
    /// Bytes of the host's memory that were read again for records that were sealed before.
    reread_bytes: u64,
}

/// Packets are lost at random.
struct Loss {
    millionths: u32,
    random: Random,
}

impl LinkRule for Loss {
    fn pass(&mut self, _now: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
        if !self.random.chance(self.millionths) {
            out.push((packet, 0));
        }
    }
}

/// Two hosts at a switch, where so many of a million packets are lost from now on.
fn network() -> Network {
    let edge = Link { rate: 10_000_000_000, delay: Duration::from_micros(1), payload_max: 1_472 };
    Network::new(&Topology::rack(2, edge), &mut Random::new(1))
}

fn loss(millionths: u32) -> Box<dyn LinkRule> {
    Box::new(Loss { millionths, random: Random::new(7) })
}

fn row(name: &str, millionths: u32, work: &Work) {
    let megabytes = f64::from(MESSAGES) * f64::from(MESSAGE) / 1e6;
    println!(
        "| {name} | {} % | {} | {} | {:.2} | {} | {} |",
        f64::from(millionths) / 1e4,
        work.segments,
        work.resyncs,
        work.resyncs as f64 / megabytes,
        work.sealed,
        work.reread_bytes / 1_000,
    );
}

fn main() {
    println!(
        "| transport | loss | segments to the engine | resyncs | a MB | records sealed by the NIC | read again, KB |"
    );
    println!("|:--|--:|--:|--:|--:|--:|--:|");
    for millionths in [0, 1_000, 10_000, 30_000] {
        row("TLS over TCP", millionths, &ktls::run(millionths));
        for contexts in [1, 4] {
            let name = format!("SMT, contexts of a session: {contexts}");
            row(&name, millionths, &smt::run(millionths, contexts));
        }
    }
}
