// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host writes the table while packets come: all orders of a small case.
//!
//! The host adds a connection with an id, tells the keys of two later phases, replaces the id,
//! forgets old keys and removes the connection, in this order. Five packets of three phases come in
//! any order among themselves (120), and anywhere between the writes (3,003 places): 360,360
//! orders. A packet that the engine leaves is the host's, which opens it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod quic_peer;

use quic_peer::{Peer, engine, id, key_of, keys};
use smt_nic::quic::{Freshness, Handle, QuicEngine, Received, Untouched};

/// A write of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Write {
    Add,
    AddId(u8),
    RemoveId(u8),
    SetNextKey(u64),
    DropPreviousKey,
    /// A key of a phase that is over, or is not the next: it changes nothing.
    SetStaleKey,
    Remove,
}

const WRITES: [Write; 10] = [
    Write::Add,
    Write::AddId(1),
    Write::SetNextKey(1),
    Write::AddId(2),
    Write::SetStaleKey,
    Write::RemoveId(1),
    Write::SetNextKey(2),
    Write::SetNextKey(2),
    Write::DropPreviousKey,
    Write::Remove,
];

/// A packet of the peer: its number, its phase, its id.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    generation: u64,
    id: u8,
}

const fn sent(number: u64, generation: u64, id: u8) -> Sent {
    Sent { number, generation, id }
}

/// The last is the fourth once more: a repetition.
const PACKETS: [Sent; 5] =
    [sent(10, 0, 1), sent(11, 0, 1), sent(12, 1, 2), sent(13, 2, 2), sent(12, 1, 2)];

/// The contents that the table should have after the writes and packets so far.
#[derive(Default)]
struct Model {
    is_there: bool,
    ids: Vec<u8>,
    generation: u64,
    /// The next phase's key is there.
    has_next: bool,
    has_previous: bool,
    /// The lowest number that the present key has opened.
    first: Option<u64>,
    largest: Option<u64>,
}

impl Model {
    /// Whether a packet must be opened: a table that leaves everything to software would be right,
    /// and useless.
    fn opens(&self, packet: Sent) -> bool {
        let is_known = self.is_there && self.ids.contains(&packet.id);
        let by_phase = if packet.generation == self.generation {
            true
        } else if packet.generation == self.generation + 1 {
            self.has_next && self.largest.is_none_or(|largest| packet.number >= largest)
        } else {
            packet.generation + 1 == self.generation
                && self.has_previous
                && self.first.is_some_and(|first| packet.number < first)
        };
        is_known && by_phase
    }

    fn opened(&mut self, packet: Sent) {
        if packet.generation == self.generation + 1 {
            self.generation += 1;
            (self.has_next, self.has_previous) = (false, true);
            self.first = Some(packet.number);
        } else if packet.generation == self.generation {
            self.first = Some(self.first.map_or(packet.number, |of| of.min(packet.number)));
        }
        self.largest = self.largest.max(Some(packet.number));
    }
}

struct Case {
    engine: QuicEngine,
    connection: Option<Handle>,
    model: Model,
    /// Numbers that went up as new.
    new: Vec<u64>,
}

impl Case {
    fn new() -> Self {
        Self { engine: engine(1), connection: None, model: Model::default(), new: Vec::new() }
    }

    fn write(&mut self, write: Write) {
        let connection = self.connection;
        let of = || connection.unwrap();
        match write {
            Write::Add => {
                self.connection = Some(self.engine.add(&keys()).unwrap());
                self.model.is_there = true;
            }
            Write::AddId(byte) => {
                self.engine.add_id(of(), id(byte)).unwrap();
                self.model.ids.push(byte);
            }
            Write::RemoveId(byte) => {
                let was_there = self.engine.remove_id(of(), &id(byte));
                assert_eq!(was_there, self.model.ids.contains(&byte));
                self.model.ids.retain(|of| *of != byte);
            }
            Write::SetNextKey(generation) => {
                let is_next = generation == self.model.generation + 1;
                let set = self.engine.set_next_key(of(), &key_of(generation), generation);
                assert_eq!(set, is_next);
                self.model.has_next |= is_next;
            }
            Write::SetStaleKey => {
                assert!(!self.engine.set_next_key(of(), &key_of(40), 0));
                assert!(!self.engine.set_next_key(of(), &key_of(41), 9));
            }
            Write::DropPreviousKey => {
                self.engine.drop_previous_key(of());
                self.model.has_previous = false;
            }
            Write::Remove => {
                assert!(self.engine.remove(of()).is_some());
                self.model.is_there = false;
            }
        }
    }

    fn packet(&mut self, sent: Sent, bytes: &[u8]) {
        let must_open = self.model.opens(sent);
        let mut received = bytes.to_vec();
        match self.engine.receive(&mut received) {
            Received::Opened(opened) => {
                assert!(must_open, "{sent:?} was opened");
                assert_eq!((opened.number, opened.generation), (sent.number, sent.generation));
                assert_eq!(received[opened.payload], sent.number.to_be_bytes());
                let is_new = opened.freshness == Freshness::New;
                assert_eq!(is_new, !self.new.contains(&sent.number), "{sent:?}");
                self.new.push(sent.number);
                self.model.opened(sent);
            }
            Received::Untouched(why) => {
                assert!(!must_open, "{sent:?} was not opened: {why:?}");
                assert_eq!(received, bytes, "it goes up as it came");
                let is_known = self.model.is_there && self.model.ids.contains(&sent.id);
                assert_eq!(why == Untouched::UnknownConnection, !is_known);
            }
        }
    }
}

/// All orders of the places of packets between the writes.
fn merges(writes: usize, packets: usize, so_far: &mut Vec<bool>, run: &mut impl FnMut(&[bool])) {
    if writes == 0 && packets == 0 {
        return run(so_far);
    }
    for (is_write, left) in [(true, writes), (false, packets)] {
        if left > 0 {
            so_far.push(is_write);
            let (writes, packets) = match is_write {
                true => (writes - 1, packets),
                false => (writes, packets - 1),
            };
            merges(writes, packets, so_far, run);
            so_far.pop();
        }
    }
}

/// All orders of the packets.
fn permutations(places: usize) -> Vec<Vec<usize>> {
    match places {
        0 => vec![Vec::new()],
        _ => permutations(places - 1)
            .into_iter()
            .flat_map(|shorter| {
                (0..places).map(move |at| {
                    let mut longer = shorter.clone();
                    longer.insert(at, places - 1);
                    longer
                })
            })
            .collect(),
    }
}

#[test]
fn every_order_of_writes_and_packets_opens_what_can_be_opened_and_nothing_else() {
    let mut peers = [Peer::new(0), Peer::new(1), Peer::new(2)];
    let bytes = PACKETS.map(|sent| {
        let peer = &mut peers[sent.generation as usize];
        peer.seal(sent.number, sent.generation, &id(sent.id))
    });
    let orders = permutations(PACKETS.len());
    let (mut cases, mut opened) = (0_u64, 0_u64);
    merges(WRITES.len(), PACKETS.len(), &mut Vec::new(), &mut |merge| {
        for order in &orders {
            let mut case = Case::new();
            let (mut writes, mut packets) = (WRITES.iter(), order.iter());
            for is_write in merge {
                match is_write {
                    true => case.write(*writes.next().unwrap()),
                    false => {
                        let place = *packets.next().unwrap();
                        case.packet(PACKETS[place], &bytes[place]);
                    }
                }
            }
            cases += 1;
            opened += case.new.len() as u64;
            assert_eq!(case.engine.sizes(), (0, 0), "nothing stays behind");
        }
    });
    assert_eq!(cases, 360_360);
    println!("{cases} orders, {opened} packets opened");
    assert!(opened > cases / 2, "{opened}");
}
