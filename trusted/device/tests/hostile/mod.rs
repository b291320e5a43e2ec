// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A search for what a hostile host can get out of the device.
//!
//! The host writes requests, sound ones and others; changes any word of the shared memory, also
//! between two accesses of the device; drops connections; kills the device and starts it again;
//! damages, restores and copies its files; and stands between device and TPM. The device reads no
//! clock, so a host that sets it changes nothing.
//!
//! All that the device's kernel does is recorded where the host cannot reach, and judged: each
//! counter once over all starts, messages taken in order and once, no key in anything that the host
//! sees. After each stop the device starts again, and attests.

mod host;
mod machine;
mod report;
mod sight;
mod witness;

use std::cell::Cell;
use std::rc::Rc;

use smt_attestation::{GroupSecret, Start};
use smt_device::{Session, StoreError};
use smt_device_client::{Device, hostile};
use smt_simulation::Random;

use host::Host;
use machine::{Machine, Trick};
pub(crate) use report::Report;
pub(crate) use sight::Sight;
use witness::{History, Witness};

/// A group secret that occurs nowhere else.
const SECRET: [u8; 32] = *b"\x91\x7c\xd0group secret of the search\x03\xfe\xa8";

/// Tries operations of a hostile host. Panics if the device breaks a promise.
pub(crate) fn search(operations: u64, seed: u64) -> Report {
    let mut search = Search::new(operations, seed);
    while search.report.operations < operations {
        search.step();
    }
    search.finish()
}

struct Search {
    random: Random,
    /// One of so many operations is of each kind that stops the device.
    rare: u64,
    machine: Machine,
    device: Witness,
    session: Session,
    host: Host,
    history: History,
    sight: Sight,
    changed: Rc<Cell<u64>>,
    report: Report,
}

impl Search {
    fn new(operations: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let machine = Machine::new(seed);
        let (sight, history) = (Sight::new(&machine.secrets()), History::default());
        let device = Witness::new(machine.start(random.nonce()).unwrap());
        let (session, _) = Session::create().unwrap();
        let host = Host::new(&session);
        let (rare, changed) = ((operations / 12).clamp(500, 100_000), Rc::default());
        let report = Report { has_tpm: machine.has_tpm(), ..Report::default() };
        let mut search =
            Self { random, rare, machine, device, session, host, history, sight, changed, report };
        search.started();
        search
    }

    fn step(&mut self) {
        self.report.operations += 1;
        match self.random.below(self.rare) {
            0 => self.restart(),
            1 => self.damage(),
            2 if self.machine.has_tpm() => self.restore(),
            3 if self.machine.has_tpm() => self.copy(),
            4 if self.machine.has_tpm() => self.trick(),
            5 if self.machine.has_tpm() => self.restore_memory(),
            _ => match self.random.below(10_000) {
                0..5 => self.reconnect(),
                5..200 => self.host.change(&mut self.random),
                _ => self.host.request(&mut self.random, self.device.own()),
            },
        }
        if self.report.operations.is_multiple_of(8) {
            self.serve();
        }
    }

    /// The device works, and the host writes between its accesses.
    fn serve(&mut self) {
        let mut random = Random::new(self.random.next_u64());
        let (rate, changed) = ([64, 512, 4096][random.below(3) as usize], self.changed.clone());
        let change = move |memory: &smt_device_client::SharedMemory, index| {
            if random.below(rate) == 0 {
                host::change_word(memory, &mut random, index);
                changed.set(changed.get() + 1);
            }
        };
        let (session, device) = (&mut self.session, &mut self.device);
        let served = hostile::with(Box::new(change), || session.serve(device, 64));
        self.host.read(&mut self.sight);
        if served.is_err() {
            self.report.dropped += 1;
            self.reconnect();
        }
    }

    /// A connection that the host has broken is cured by another one.
    fn reconnect(&mut self) {
        if self.random.below(16) == 0 {
            self.host.shows_all(&mut self.sight);
        }
        self.session = Session::create().unwrap().0;
        self.host.connect(&self.session);
        self.host.asks_soundly(&mut self.session, &mut self.device);
    }

    /// Ends this start of the device, as a kill does.
    fn kill(&mut self) {
        self.device.hand_over(&mut self.history, &mut self.report);
        self.sight.sees(&self.machine.files());
        self.host.shows_all(&mut self.sight);
    }

    /// Starts the device in its next epoch, which no trick of before may keep it from.
    fn cure(&mut self) {
        let started = self.machine.start(self.random.nonce());
        let core = started.unwrap_or_else(|why| panic!("the device never starts again: {why}"));
        self.device = Witness::new(core);
        self.started();
    }

    fn started(&mut self) {
        self.report.starts += 1;
        self.history.begin(&mut self.device);
        self.sight.sees(&self.device.public_key());
        self.reconnect();
        self.host.opens_and_attests(&mut self.session, &mut self.device);
        self.host.finds_the_logs(&mut self.session, &mut self.device);
        // Some starts are left to the host from their first request on.
        if self.random.chance(75) {
            self.host.opens_the_group(&mut self.session, &mut self.device);
        }
    }

    fn restart(&mut self) {
        self.kill();
        self.cure();
    }

    /// Damages a file while the device is down. The device does not start until it is whole again.
    fn damage(&mut self) {
        self.kill();
        let name = ["keys", "state"][self.random.below(2) as usize];
        let path = self.machine.device().join(name);
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        match self.random.below(3) {
            0 => bad.truncate(self.random.below(good.len() as u64) as usize),
            1 => bad.extend([0; 3]),
            _ => {
                let bit = self.random.below(8 * good.len() as u64) as usize;
                bad[bit / 8] ^= 1 << (bit % 8);
            }
        }
        std::fs::write(&path, bad).unwrap();
        match self.machine.start(self.random.nonce()) {
            Ok(_) => panic!("a damaged file was taken"),
            Err(StoreError::Restored { .. } | StoreError::Copied) => {
                panic!("a damaged file was taken for a restored one")
            }
            Err(_) => self.report.damaged += 1,
        }
        std::fs::write(&path, good).unwrap();
        self.cure();
    }

    /// Starts the device with files of an earlier start.
    fn restore(&mut self) {
        self.machine.save("older");
        self.restart();
        self.kill();
        self.machine.save("newest");
        self.machine.restore("older");
        match self.machine.start(self.random.nonce()) {
            Err(StoreError::Restored { .. }) => self.report.restored += 1,
            other => panic!("restored files: {:?}", other.map(|core| core.own())),
        }
        self.machine.restore("newest");
        self.cure();
    }

    /// Starts with the logs' ends of an earlier sealing, and with no such files.
    fn restore_memory(&mut self) {
        self.machine.save("older");
        // A sealing may have failed with its TPM, and a connection may be broken: another start.
        self.restart();
        self.host.seals_an_entry(&mut self.session, &mut self.device);
        self.kill();
        self.machine.save("newest");
        self.machine.restore_memory("older");
        match self.machine.start(self.random.nonce()) {
            Err(StoreError::MemoryRestored) => self.report.restored += 1,
            other => panic!("restored logs: {:?}", other.map(|core| core.own())),
        }
        for file in ["memory.0", "memory.1"] {
            std::fs::remove_file(self.machine.device().join(file)).unwrap();
        }
        match self.machine.start(self.random.nonce()) {
            Err(StoreError::MemoryRestored) => self.report.restored += 1,
            other => panic!("removed logs: {:?}", other.map(|core| core.own())),
        }
        self.machine.restore_memory("newest");
        self.cure();
    }

    /// Starts a copy. The original never starts again, and the copy goes on in its place.
    fn copy(&mut self) {
        self.kill();
        self.machine.save("copy");
        let copy = self.machine.start_copy("copy", self.random.nonce()).unwrap();
        match self.machine.start(self.random.nonce()) {
            Err(StoreError::Restored { .. }) => self.report.restored += 1,
            other => panic!("an original beside its copy: {:?}", other.map(|core| core.own())),
        }
        self.machine.restore("copy");
        self.device = Witness::new(copy);
        self.started();
    }

    /// Starts the device over a way to its TPM that breaks or lies once.
    fn trick(&mut self) {
        self.kill();
        let trick = match self.random.below(3) {
            0 => Trick::Change(self.random.next_u64()),
            1 => Trick::Lose,
            _ => Trick::Hold,
        };
        match self.machine.start_with(&mut self.random, trick) {
            Err(_) => self.report.broken_off += 1,
            Ok(core) => {
                self.device = Witness::new(core);
                self.started();
                self.kill();
            }
        }
        self.cure();
    }

    fn finish(mut self) -> Report {
        self.serve();
        self.kill();
        self.sight.look();
        self.report.malformed = self.host.malformed;
        self.report.changed = self.host.changed + self.changed.get();
        self.report
    }
}

/// The secret of the group whose other member the host has a kernel of.
pub(crate) fn group_secret() -> GroupSecret {
    GroupSecret::new(SECRET)
}

/// A start, often that of the device.
pub(crate) fn any_start(random: &mut Random, own: Start) -> Start {
    if random.chance(50) {
        return own;
    }
    let device = smt_attestation::DeviceId(1 + random.below(3) as u32);
    let epoch = smt_attestation::Epoch(random.below(8));
    Start { device, epoch, nonce: [random.below(3) as u8; 16] }
}
