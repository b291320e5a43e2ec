// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which connections are worth an entry: the engine's own rules over transfers of many lengths,
//! most of them short. The engine seals a packet for each that is offloaded.

use std::collections::HashMap;

use kit_process::{Doing, Failure};
use smt_nic::quic::{
    AdmissionPolicy, Batch, ConnectionKeys, Handle, HeaderProtectionKey, PhaseKey, QuicConfig,
    QuicEngine, Suite,
};
use smt_report::{Axis, Line, Plot, Table};

/// Entries of the device.
const ENTRIES: [u32; 6] = [8, 16, 32, 64, 128, 256];

/// The share of packets that the device does, and writes of entries for 1,000 packets.
pub(super) fn policies() -> Result<(Table, Plot), Failure> {
    let long = AdmissionPolicy { bytes_min: 100_000, ..AdmissionPolicy::ALL };
    let rules = [
        ("all", AdmissionPolicy::ALL),
        ("from 100 kB", long),
        ("all, LRU out", AdmissionPolicy { evicted_after: Some(IDLE), ..AdmissionPolicy::ALL }),
        ("from 100 kB, LRU out", AdmissionPolicy { evicted_after: Some(IDLE), ..long }),
    ];
    let mut table = Table {
        corner: "entries".to_owned(),
        columns: rules.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: Vec::new(),
    };
    let mut lines: Vec<Line> = rules
        .iter()
        .enumerate()
        .map(|(color, (name, _))| Line { name: (*name).to_owned(), color, points: Vec::new() })
        .collect();
    for entries in ENTRIES {
        let mut cells = Vec::new();
        for ((_, policy), line) in rules.iter().zip(&mut lines) {
            let outcome = simulate(policy, entries)?;
            let share = outcome.offloaded as f64 / outcome.packets as f64 * 100.0;
            let writes = outcome.writes as f64 / outcome.packets as f64 * 1_000.0;
            cells.push(format!("{share:.1} %, {writes:.2} writes"));
            line.points.push((f64::from(entries).log2(), share));
        }
        table.rows.push((entries.to_string(), cells));
    }
    let plot = Plot {
        title: "Packets of offloaded connections, 100 at once, most of them short".to_owned(),
        x: Axis::linear("entries, logarithm to base 2", 8.0),
        y: Axis::linear("% of packets", 100.0),
        lines,
    };
    Ok((table, plot))
}

#[derive(Default)]
struct Outcome {
    packets: u64,
    offloaded: u64,
    writes: u64,
}

/// A transfer that is under way.
struct Transfer {
    id: u64,
    packets_left: u64,
    bytes_seen: u64,
    handle: Option<Handle>,
    /// It ends without its host's knowledge: a peer that goes away.
    is_abandoned: bool,
}

/// As many transfers at once as [`AT_ONCE`]; one that ends is followed by another.
fn simulate(policy: &AdmissionPolicy, entries: u32) -> Result<Outcome, Failure> {
    let what = "beginning the engine";
    let mut engine = QuicEngine::new(&QuicConfig {
        connections_max: entries,
        id_places: 16,
        id_length: 8,
        hash_key: [1; 16],
    })
    .doing(what)?;
    let keys = keys().doing(what)?;
    let mut random = Random(7);
    let mut outcome = Outcome::default();
    let mut owners: HashMap<Handle, u64> = HashMap::new();
    let mut transfers: Vec<Transfer> = (0..AT_ONCE).map(|id| random.transfer(id)).collect();
    let mut next = AT_ONCE;
    while outcome.packets < PACKETS {
        let place = random.below(AT_ONCE) as usize;
        let transfer = &mut transfers[place];
        outcome.packets += 1;
        transfer.bytes_seen += 1_350;
        // The connection that gave up its entry has lost it to another.
        let handle = transfer.handle.filter(|of| owners.get(of) == Some(&transfer.id));
        match handle {
            Some(handle) => {
                outcome.offloaded += 1;
                seal(&mut engine, handle);
            }
            None => {
                if let Ok(admitted) = engine.admit(policy, &keys, transfer.bytes_seen) {
                    outcome.writes += 1;
                    if let Some((evicted, _)) = admitted.evicted {
                        owners.remove(&evicted);
                    }
                    owners.insert(admitted.connection, transfer.id);
                    transfer.handle = Some(admitted.connection);
                }
            }
        }
        transfer.packets_left -= 1;
        if transfer.packets_left == 0 {
            let ended = std::mem::replace(transfer, random.transfer(next));
            next += 1;
            if let Some(handle) = ended.handle.filter(|_| !ended.is_abandoned)
                && owners.remove(&handle).is_some()
            {
                engine.remove(handle);
            }
        }
    }
    Ok(outcome)
}

/// The smallest packet that can be sealed: the engine counts it as one of the connection.
fn seal(engine: &mut QuicEngine, handle: Handle) {
    let mut packet = [0; 30];
    packet[0] = 0x40;
    let mut batch = Batch { packets: &mut packet, stride: 30, id_length: 8, numbers: &[0] };
    // The nonce is always the same: nothing of it leaves this model.
    let _ = engine.seal(handle, &mut batch);
}

fn keys() -> Result<ConnectionKeys, smt_nic::quic::BadKeyLength> {
    let suite = Suite::ChaCha20Poly1305;
    let header = HeaderProtectionKey::new(suite, &[1; 32])?;
    let phase = PhaseKey::new(suite, &[2; 32], [3; 12])?;
    Ok(ConnectionKeys {
        receive: phase.clone(),
        receive_next: None,
        receive_header: header.clone(),
        transmit: phase,
        transmit_header: header,
        generation: 0,
        largest: None,
        sealed: 0,
    })
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        (self.unit() * limit as f64) as u64
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Pareto with exponent 1.1 from two packets on: half of the transfers have fewer than four
    /// packets, and few have most of all packets.
    fn transfer(&mut self, id: u64) -> Transfer {
        let packets = 2.0 / (1.0 - self.unit()).powf(1.0 / 1.1);
        Transfer {
            id,
            packets_left: (packets as u64).clamp(1, LONGEST),
            bytes_seen: 0,
            handle: None,
            is_abandoned: self.unit() < ABANDONED,
        }
    }
}

const AT_ONCE: u64 = 100;
const PACKETS: u64 = 300_000;
/// Packets of the longest transfer: 50 MB.
const LONGEST: u64 = 37_000;
/// The share of transfers that end without a word, whose entries stay until they are evicted.
const ABANDONED: f64 = 0.02;
/// An entry that was not used for so many packets of others may be given away.
const IDLE: u64 = 1_000;
