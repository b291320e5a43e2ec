// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures to begin with: random cases of the simulator, cut short, with their key logs in front.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use smt_record::{KeyLog, KeyLogEntry};
use smt_sim::net::{Capture, CaptureTap, HostId, View};
use smt_sim::swarm::{self, Case, Observers};

/// Each as pcap with and without keys, and as pcapng with them.
pub(crate) fn captures() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for seed in 1..=6 {
        let (log, pcap) = play(seed);
        seeds.push([log.as_bytes(), b"\n", &pcap].concat());
        seeds.push([log.as_bytes(), b"\n", &pcapng(&pcap)].concat());
        seeds.push(pcap);
    }
    seeds
}

/// The keys that host 0 shares with its first peers, and what its cable carries at first.
fn play(seed: u64) -> (String, Vec<u8>) {
    let (bytes, log) = (Bytes::default(), Arc::new(Log::default()));
    let view = View::Host(HostId(0));
    let capture = Capture::create(Box::new(bytes.clone()), view, CAPTURE_BYTES).unwrap();
    let capture = Rc::new(RefCell::new(capture));
    let observers = Observers {
        tap: Some(Box::new(CaptureTap(Rc::clone(&capture)))),
        key_log: Some(log.clone()),
    };
    swarm::run_observed(&Case::new(seed), observers);
    capture.borrow_mut().finish().unwrap();
    let lines = log.0.lock().unwrap();
    let first = lines.iter().take(KEYS).cloned().collect();
    (first, bytes.0.take())
}

/// The same frames in pcapng.
fn pcapng(pcap: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let order: [u32; 4] = [0x1A2B_3C4D, 1, u32::MAX, u32::MAX];
    block(&mut file, 0x0A0D_0D0A, &words(&order));
    // The same link type, and frames of any length.
    block(&mut file, 1, &[&pcap[20..24], &[0; 4]].concat());
    let mut rest = &pcap[24..];
    while let Some((header, after)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap());
        let (frame, after) = after.split_at(length as usize);
        block(&mut file, 6, &[&words(&[0, 0, 0, length, length]), frame].concat());
        rest = after;
    }
    file
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = (12 + body.len() + padding) as u32;
    file.extend(words(&[kind, length]));
    file.extend(body);
    file.extend(&[0; 3][..padding]);
    file.extend(words(&[length]));
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[derive(Clone, Default)]
struct Bytes(Rc<RefCell<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl KeyLog for Log {
    fn log(&self, line: &KeyLogEntry<'_>) {
        self.0.lock().unwrap().push(format!("{line}\n"));
    }
}

/// A handshake and some messages.
const CAPTURE_BYTES: u64 = 16_000;
/// Lines of a few sessions.
const KEYS: usize = 24;
