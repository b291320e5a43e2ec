// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All orders in which a device may read the descriptors of several queues (SMT paper §3.2).
//!
//! Two messages of two records each leave by three queues. The naive driver has one context for a
//! session: it puts a resync before each segment, and relies on the device to read the pair
//! together. The driver of paper §4.4.2 has a context for each queue. A watcher knows which record
//! must have which number, and looks at what was sealed.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

use smt_nic::descriptor::{ContextId, Work};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig, Step};

use super::support::{Host, header, tls_block, unsealed};

/// The queues of the device.
const QUEUES: u16 = 3;
const KEY: [u8; 16] = [0x11; 16];
const IV: [u8; 12] = [0x22; 12];

/// A record that a driver wants to be sealed.
#[derive(Clone, Copy, Debug)]
struct Record {
    message: u64,
    index: u64,
}

impl Record {
    /// The composite number with 16 index bits (SPEC §5.1).
    fn number(self) -> u64 {
        self.message << 16 | self.index
    }

    /// A plaintext that no other record has.
    fn plaintext(self) -> [u8; 4] {
        [self.message as u8, self.index as u8, 0xEE, 0x17]
    }
}

/// How a driver uses contexts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Driver {
    /// One context for all queues, with a resync before each segment.
    OneContext,
    /// A context for each queue, with a resync before each segment.
    ContextPerQueue,
}

impl Driver {
    fn context(self, queue: u16) -> ContextId {
        match self {
            Self::OneContext => ContextId(1),
            Self::ContextPerQueue => ContextId(u32::from(queue) + 1),
        }
    }
}

/// The world of an exploration: the host, its device, and the steps so far.
#[derive(Clone)]
struct World {
    host: Host,
    nic: Nic<TlsEngine>,
    /// The number of steps that each queue has done.
    steps: Vec<usize>,
    trace: Vec<String>,
}

/// The findings of an exploration.
#[derive(Debug, Default)]
struct Explored {
    states: usize,
    orders_ended: usize,
    /// The trace of the first order in which a record has met a wrong number.
    wrong: Option<String>,
}

fn world(driver: Driver, work: &[(u16, Record)]) -> World {
    let (mut host, mut nic) = (Host::default(), Nic::new(NicConfig::default(), TlsEngine));
    for _ in 0..QUEUES {
        host.add_queue(&mut nic, 16);
    }
    let contexts: BTreeSet<ContextId> = (0..QUEUES).map(|queue| driver.context(queue)).collect();
    for context in contexts {
        let create = host.create(context, &tls_block(0x1301, &KEY, IV, 0));
        host.post(&mut nic, 0, create);
    }
    host.run(&mut nic, 0);
    for (queue, record) in work {
        let context = driver.context(*queue);
        let number = record.number();
        host.post(&mut nic, *queue, Work::Resync { context, number });
        let segment = host.segment(Some(context), &unsealed(&record.plaintext()), 0);
        host.post(&mut nic, *queue, segment);
    }
    World { host, nic, steps: vec![0; usize::from(QUEUES)], trace: Vec::new() }
}

/// The bytes of each record under its own number: what a device must send.
fn right(work: &[(u16, Record)]) -> Vec<Vec<u8>> {
    let sealed = |record: &Record| {
        let (mut host, mut nic) = (Host::default(), Nic::new(NicConfig::default(), TlsEngine));
        let queue = host.add_queue(&mut nic, 4);
        let create = host.create(ContextId(1), &tls_block(0x1301, &KEY, IV, record.number()));
        host.post(&mut nic, queue, create);
        let segment = host.segment(Some(ContextId(1)), &unsealed(&record.plaintext()), 0);
        host.post(&mut nic, queue, segment);
        host.run(&mut nic, queue).stream()
    };
    work.iter().map(|(_, record)| sealed(record)).collect()
}

/// Goes through all orders of steps, shorter ones first; states that were seen are not gone through
/// again.
fn explore(driver: Driver, work: &[(u16, Record)]) -> Explored {
    let right = right(work);
    let mut explored = Explored::default();
    let mut seen = BTreeSet::new();
    let mut to_do = VecDeque::from([world(driver, work)]);
    while let Some(world) = to_do.pop_front() {
        explored.states += 1;
        let ready: Vec<u16> = (0..QUEUES).filter(|of| world.nic.has_work(*of)).collect();
        explored.orders_ended += usize::from(ready.is_empty());
        for queue in ready {
            let mut next = world.clone();
            if let Err(trace) = next.step(driver, queue, &right) {
                explored.wrong.get_or_insert(trace);
            } else if seen.insert(next.key(driver)) {
                to_do.push_back(next);
            }
        }
    }
    explored
}

impl World {
    /// All that the future depends on: how far the queues are, and the numbers of the contexts.
    fn key(&self, driver: Driver) -> (Vec<usize>, Vec<Option<u64>>) {
        let number = |queue| {
            let context = self.nic.context(driver.context(queue));
            context.and_then(|context| context.number())
        };
        (self.steps.clone(), (0..QUEUES).map(number).collect())
    }

    /// Takes a step of a queue; an error is the trace that has led to a wrong record.
    fn step(&mut self, driver: Driver, queue: u16, right: &[Vec<u8>]) -> Result<(), String> {
        let mut sent = Vec::new();
        let step = self.nic.step(queue, &mut self.host, &mut |packet| {
            sent.push(packet[header().len()..].to_vec());
        });
        self.steps[usize::from(queue)] += 1;
        let context = driver.context(queue);
        let number = self.nic.context(context).and_then(|of| of.number());
        let did = match step.unwrap() {
            Step::Fetched => "fetches a descriptor".to_owned(),
            Step::Executed(_) if sent.is_empty() => {
                format!("sets {context:?} to number {:#x}", number.unwrap_or_default())
            }
            Step::Executed(_) => format!(
                "seals and sends under number {:#x} of {context:?}",
                number.unwrap_or_default().wrapping_sub(1)
            ),
            Step::Idle | Step::Blocked => unreachable!("the queue had work"),
        };
        self.trace.push(format!("queue {queue} {did}"));
        if sent.iter().all(|payload| right.contains(payload)) {
            return Ok(());
        }
        let mut trace = String::new();
        for (number, line) in self.trace.iter().enumerate() {
            writeln!(trace, "{:>2}. {line}", number + 1).unwrap();
        }
        trace.push_str("    which is another record's number\n");
        Err(trace)
    }
}

/// Two messages of two records, and a third message, over three queues.
fn work() -> Vec<(u16, Record)> {
    let record = |message, index| Record { message, index };
    vec![
        (0, record(1, 0)),
        (0, record(1, 1)),
        (1, record(2, 0)),
        (1, record(2, 1)),
        (2, record(3, 0)),
    ]
}

#[test]
fn one_context_for_several_queues_seals_under_wrong_numbers() {
    let explored = explore(Driver::OneContext, &work());
    let trace = explored.wrong.expect("the naive driver is wrong in some order");
    println!("{trace}");
    // The trace tells the hazard of the paper: two resyncs, then a segment of the first.
    assert!(trace.contains("sets ContextId(1)") && trace.contains("which is another"));
}

#[test]
fn a_context_for_each_queue_is_right_in_every_order() {
    let explored = explore(Driver::ContextPerQueue, &work());
    println!("{} states, {} of them ends", explored.states, explored.orders_ended);
    assert_eq!(explored.wrong, None);
    assert!(explored.orders_ended > 0);
    // Eight, eight and four steps: every combination of how far the queues are.
    assert_eq!(explored.states, 9 * 9 * 5);
}

/// The twin of both: one queue alone is right with one context, so that what the first test finds
/// is the order, and not the driver's numbers.
#[test]
fn one_context_is_right_where_one_queue_has_all_the_work() {
    let work: Vec<(u16, Record)> = work().into_iter().map(|(_, record)| (1, record)).collect();
    let explored = explore(Driver::OneContext, &work);
    assert_eq!((explored.wrong, explored.orders_ended), (None, 1));
}
