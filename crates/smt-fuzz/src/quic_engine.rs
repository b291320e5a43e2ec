// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The QUIC engine of a NIC: hostile packets, and a host that writes its table at any time.
//!
//! - A packet that no peer has sealed is left with its bytes as they came.
//! - A packet that is opened has the frames, number and key phase that its peer gave it.
//! - A number is told as new once, as long as a connection has its entry.
//! - A batch is sealed as a whole, or left as it was; connections, ids and slots are bounded.
//! - Packets that were put into order all go up, once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arbitrary::Arbitrary;
use smt_nic::quic::reordering::{Arrived, Reordering, Slots};
use smt_nic::quic::{
    AdmissionPolicy, Batch, ConnectionId, ConnectionKeys, Freshness, Handle, HeaderProtectionKey,
    PhaseKey, QuicConfig, QuicEngine, Received, Suite,
};

/// One case: steps of a host and of the network.
#[derive(Arbitrary, Debug)]
pub struct Case {
    suite: u8,
    steps: Vec<Step>,
}

/// A step.
#[derive(Arbitrary, Debug)]
enum Step {
    /// The host adds a connection by a rule.
    Admit {
        bytes: u8,
        evicts: bool,
    },
    AddId {
        connection: u8,
        id: u8,
    },
    RemoveId {
        connection: u8,
        id: u8,
    },
    Remove {
        connection: u8,
    },
    SetNextKey {
        connection: u8,
        generation: u8,
    },
    SetTransmitKey {
        connection: u8,
        generation: u8,
    },
    DropPreviousKey {
        connection: u8,
    },
    NoteOpened {
        connection: u8,
        number: u16,
    },
    CountFailures {
        connection: u8,
        failures: u8,
    },
    /// A packet that a peer has sealed.
    Packet {
        id: u8,
        number: u16,
        generation: u8,
        frames: u8,
    },
    /// One that was changed on its way.
    Changed {
        id: u8,
        number: u16,
        generation: u8,
        at: u8,
        mask: u8,
        cut: u8,
    },
    /// Any bytes, behind a known id if asked.
    Bytes {
        id: Option<u8>,
        bytes: Vec<u8>,
    },
    /// The host seals packets that it has built, or claims to have.
    Seal {
        connection: u8,
        bytes: Vec<u8>,
        stride: u8,
        id_length: u8,
        numbers: Vec<u64>,
    },
    /// Opened packets are put into order.
    Order {
        numbers: Vec<(u8, u8)>,
        slots: u8,
    },
}

struct World {
    suite: Suite,
    engine: QuicEngine,
    /// A peer for each generation, which seals by its key.
    peers: Vec<(QuicEngine, Handle)>,
    connections: Vec<Handle>,
    /// Numbers told as new, by connection.
    new: BTreeMap<usize, BTreeSet<u64>>,
}

/// Runs the case.
pub fn check(case: &Case) {
    let suites = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
    let mut world = World::new(suites[usize::from(case.suite) % suites.len()]);
    for step in case.steps.iter().take(STEPS) {
        world.step(step);
        let (connections, ids) = world.engine.sizes();
        assert!(connections <= CONNECTIONS as usize && ids <= 8 * connections);
    }
}

impl World {
    fn new(suite: Suite) -> Self {
        let peers = (0..GENERATIONS).map(|generation| {
            let mut engine = engine(1);
            let keys = keys(suite, generation);
            let handle = engine.add(&keys).expect("there is room for one");
            (engine, handle)
        });
        Self {
            suite,
            engine: engine(CONNECTIONS),
            peers: peers.collect(),
            connections: Vec::new(),
            new: BTreeMap::new(),
        }
    }

    /// A connection of now or of before.
    fn connection(&self, of: u8) -> Option<Handle> {
        let place = usize::from(of) % self.connections.len().max(1);
        self.connections.get(place).copied()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Admit { bytes, evicts } => self.admit(*bytes, *evicts),
            Step::Packet { id, number, generation, frames } => {
                let sealed = self.sealed(*id, u64::from(*number), *generation, *frames);
                self.receive(&sealed, Some((u64::from(*number), *generation, *frames)));
            }
            Step::Changed { id, number, generation, at, mask, cut } => {
                let mut packet = self.sealed(*id, u64::from(*number), *generation, 8);
                let whole = packet.clone();
                let place = usize::from(*at) % packet.len();
                packet[place] ^= mask;
                packet.truncate(packet.len() - usize::from(*cut) % packet.len());
                match packet == whole {
                    true => self.receive(&packet, Some((u64::from(*number), *generation, 8))),
                    false => self.receive(&packet, None),
                }
            }
            Step::Bytes { id, bytes } => {
                let head = id.map_or(Vec::new(), |id| [&[0x40][..], &id_bytes(id)].concat());
                self.receive(&[&head[..], bytes].concat(), None);
            }
            Step::Seal { connection, bytes, stride, id_length, numbers } => {
                if let Some(connection) = self.connection(*connection) {
                    let lengths = (usize::from(*stride), usize::from(*id_length));
                    self.seal(connection, bytes, lengths, numbers);
                }
            }
            Step::Order { numbers, slots } => order(numbers, *slots),
            table => self.write(table),
        }
    }

    fn admit(&mut self, bytes: u8, evicts: bool) {
        let policy = AdmissionPolicy { bytes_min: 10, evicted_after: evicts.then_some(2) };
        let admitted = self.engine.admit(&policy, &keys(self.suite, 0), bytes.into());
        if let Ok(admitted) = admitted {
            assert!(bytes >= 10, "a short transfer got an entry");
            assert!(admitted.evicted.is_none() || evicts);
            assert!(!self.connections.contains(&admitted.connection));
            self.connections.push(admitted.connection);
        }
    }

    fn write(&mut self, step: &Step) {
        let of = match step {
            Step::AddId { connection, .. }
            | Step::RemoveId { connection, .. }
            | Step::Remove { connection }
            | Step::SetNextKey { connection, .. }
            | Step::SetTransmitKey { connection, .. }
            | Step::DropPreviousKey { connection }
            | Step::NoteOpened { connection, .. }
            | Step::CountFailures { connection, .. } => self.connection(*connection),
            _ => None,
        };
        let Some(of) = of else { return };
        let engine = &mut self.engine;
        match step {
            Step::AddId { id, .. } => {
                let _ = engine.add_id(of, id_of(*id));
            }
            Step::RemoveId { id, .. } => {
                engine.remove_id(of, &id_of(*id));
            }
            Step::Remove { .. } => {
                engine.remove(of);
                assert_eq!(engine.remove(of), None, "a connection was removed twice");
            }
            Step::SetNextKey { generation, .. } => {
                let generation = u64::from(*generation) % GENERATIONS;
                engine.set_next_key(of, &key(self.suite, generation), generation);
            }
            Step::SetTransmitKey { generation, .. } => {
                let generation = u64::from(*generation) % GENERATIONS;
                engine.set_transmit_key(of, &key(self.suite, generation), generation);
            }
            Step::DropPreviousKey { .. } => engine.drop_previous_key(of),
            Step::NoteOpened { number, .. } => {
                engine.note_opened(of, u64::from(*number));
                let place = self.connections.iter().position(|other| *other == of);
                let new = self.new.entry(place.unwrap_or_default()).or_default();
                new.insert(u64::from(*number));
            }
            Step::CountFailures { failures, .. } => engine.count_failures(of, (*failures).into()),
            _ => {}
        }
    }

    fn sealed(&mut self, id: u8, number: u64, generation: u8, frames: u8) -> Vec<u8> {
        let generation = u64::from(generation) % GENERATIONS;
        let first = 0x43 | if generation % 2 == 1 { 0x04 } else { 0 };
        let low = (number as u32).to_be_bytes();
        let body = vec![frames; usize::from(frames)];
        let mut packet = [&[first][..], &id_bytes(id), &low, &body, &[0; 16]].concat();
        let stride = packet.len();
        let (peer, handle) = &mut self.peers[generation as usize];
        let mut batch =
            Batch { packets: &mut packet, stride, id_length: ID_LENGTH, numbers: &[number] };
        peer.seal(*handle, &mut batch).expect("a good packet is sealed");
        packet
    }

    /// `sealed`: what the peer has given the packet, if it has sealed it.
    fn receive(&mut self, packet: &[u8], sealed: Option<(u64, u8, u8)>) {
        let mut received = packet.to_vec();
        match self.engine.receive(&mut received) {
            Received::Untouched(_) => assert_eq!(received, packet, "it goes up as it came"),
            Received::Opened(opened) => {
                let (number, generation, frames) = sealed.expect("nobody has sealed it");
                assert_eq!(opened.number, number);
                assert_eq!(opened.generation, u64::from(generation) % GENERATIONS);
                assert!(!opened.has_reserved_bits);
                let body = vec![frames; usize::from(frames)];
                assert_eq!(received[opened.payload], body);
                let place = self.connections.iter().position(|of| *of == opened.connection);
                let new = self.new.entry(place.expect("the host has added it")).or_default();
                let is_first = new.insert(number);
                match opened.freshness {
                    Freshness::New => assert!(is_first, "{number} was new twice"),
                    Freshness::Duplicate => assert!(!is_first, "{number} is no repetition"),
                    Freshness::Old => {}
                }
            }
        }
    }

    fn seal(&mut self, of: Handle, bytes: &[u8], lengths: (usize, usize), numbers: &[u64]) {
        let mut packets = bytes.to_vec();
        let before = self.engine.counters().sealed;
        let mut batch =
            Batch { packets: &mut packets, stride: lengths.0, id_length: lengths.1, numbers };
        let outcome = self.engine.seal(of, &mut batch);
        let sealed = self.engine.counters().sealed - before;
        match outcome {
            Ok(()) => assert_eq!(sealed, numbers.len() as u64),
            Err(_) => {
                assert_eq!(sealed, 0);
                assert_eq!(packets, bytes, "a batch that is refused stays as it was");
            }
        }
    }
}

/// All of them go up, each once, and the slots are free in the end.
fn order(numbers: &[(u8, u8)], most: u8) {
    let mut slots = Slots::new(most.into());
    let mut reordering = Reordering::new(0, Duration::from_micros(500));
    let (mut taken, mut up) = (BTreeSet::new(), Vec::new());
    let mut now = Duration::ZERO;
    for (number, wait) in numbers {
        now += Duration::from_micros((*wait).into());
        let mut go_up = |arrived: Arrived<()>| up.push(arrived.number);
        reordering.handle_timeout(&mut slots, now, &mut go_up);
        if taken.insert(u64::from(*number)) {
            let arrived = Arrived { number: (*number).into(), at: now, packet: () };
            reordering.take(&mut slots, arrived, &mut go_up);
        }
        assert!(slots.used() <= most.into());
        assert_eq!(up.len() + reordering.held() as usize, taken.len());
    }
    reordering.release_all(&mut slots, &mut |arrived| up.push(arrived.number));
    up.sort_unstable();
    assert!(up.into_iter().eq(taken));
    assert_eq!(slots.used(), 0);
}

fn engine(connections_max: u32) -> QuicEngine {
    let config = QuicConfig {
        connections_max,
        id_places: 16,
        id_length: ID_LENGTH as u8,
        hash_key: [3; 16],
    };
    QuicEngine::new(&config).expect("a good length of ids")
}

fn keys(suite: Suite, generation: u64) -> ConnectionKeys {
    let header = HeaderProtectionKey::new(suite, &[200; 32][..suite.key_bytes()]);
    let header = header.expect("the suite's length");
    ConnectionKeys {
        receive: key(suite, generation),
        receive_next: None,
        receive_header: header.clone(),
        transmit: key(suite, generation),
        transmit_header: header,
        generation,
        largest: None,
        sealed: 0,
    }
}

fn key(suite: Suite, generation: u64) -> PhaseKey {
    let byte = 1 + generation as u8;
    let key = PhaseKey::new(suite, &[byte; 32][..suite.key_bytes()], [byte; 12]);
    key.expect("the suite's length")
}

/// One of few, so that ids meet.
fn id_bytes(id: u8) -> [u8; ID_LENGTH] {
    [id % 12; ID_LENGTH]
}

fn id_of(id: u8) -> ConnectionId {
    ConnectionId::new(&id_bytes(id)).expect("a length of QUIC's")
}

const ID_LENGTH: usize = 8;
const CONNECTIONS: u32 = 3;
/// Key phases of a case.
const GENERATIONS: u64 = 4;
/// Steps of a case at most.
const STEPS: usize = 200;
