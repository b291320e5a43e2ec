// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Devices of one group, as a test needs them.

use std::cell::Cell;
use std::path::Path;

use smt_attestation::{Algorithm, DeviceId, Epoch, Group, GroupSecret, Member, SigningKey, Start};
use smt_attestation::{Attestation, StreamId};
use smt_device_client::{Client, Device, Library};
use smt_loopback::DeviceProcess;
use smt_minbft::{Devices, GroupKeys, InProcess};
use smt_usig::{DeviceUsig, Parties};

/// The library as [`InProcess`] has it.
pub(crate) type Kernel = <InProcess as Devices>::Device;

pub(crate) const STREAM: StreamId = StreamId(1);
const DEVICES: u32 = 8;

/// The members of the group of all tests.
pub(crate) fn members() -> Vec<Member> {
    (0..DEVICES).map(|it| Member { device: DeviceId(it), epoch: Epoch(1) }).collect()
}

/// Opens the group's stream.
pub(crate) fn opened<D: Device>(mut device: D) -> D {
    let (algorithm, members) = (Algorithm::HmacSha256, members());
    let group = Group { stream: STREAM, algorithm, quorum: 2, members: &members };
    device.open(GroupKeys::SECRET, &group).unwrap();
    device
}

pub(crate) fn library(number: u32) -> Kernel {
    opened(InProcess.open(number).unwrap())
}

/// A library in a later epoch: the device after a restart.
pub(crate) fn restarted(number: u32) -> Kernel {
    let start = Start { device: DeviceId(number), epoch: Epoch(2), nonce: [1; 16] };
    let mut library = Library::start(start, SigningKey::new(&[0; 32]));
    library.add_secret(GroupKeys::SECRET, GroupKeys::secret()).unwrap();
    opened(library)
}

/// A library with another secret.
pub(crate) fn foreign(number: u32) -> Kernel {
    let start = Start { device: DeviceId(number), epoch: Epoch(1), nonce: [0; 16] };
    let mut library = Library::start(start, SigningKey::new(&[0; 32]));
    library.add_secret(GroupKeys::SECRET, GroupSecret::new([9; 32])).unwrap();
    opened(library)
}

pub(crate) fn process(number: u32) -> DeviceProcess {
    DeviceProcess::start(
        Path::new(env!("CARGO_BIN_EXE_smt-minbft")),
        number,
        Some(GroupKeys::given_secret()),
    )
    .unwrap()
}

/// A USIG of a group's member.
pub(crate) fn usig<D: Device>(device: D) -> DeviceUsig<D> {
    DeviceUsig::new(device, STREAM, Parties::OfGroup(members())).unwrap()
}

/// The next device of this test. Each test has a thread of its own.
fn next() -> u32 {
    thread_local!(static NEXT: Cell<u32> = const { Cell::new(0) });
    NEXT.replace(NEXT.get() + 1)
}

/// A USIG of the next device, a library, by the rules of the crate `usig`.
pub(crate) fn next_library() -> DeviceUsig<Kernel> {
    DeviceUsig::new(library(next()), STREAM, Parties::AsIntroduced).unwrap()
}

/// The same with a device process, which ends with the test's thread.
pub(crate) fn next_process() -> DeviceUsig<Client> {
    thread_local!(static RUNNING: Cell<Vec<DeviceProcess>> = const { Cell::new(Vec::new()) });
    let process = process(next());
    let device = opened(process.connect().unwrap());
    let mut running = RUNNING.take();
    running.push(process);
    RUNNING.set(running);
    DeviceUsig::new(device, STREAM, Parties::AsIntroduced).unwrap()
}

/// An attestation with a bit of its MAC turned.
pub(crate) fn damaged(attestation: &Attestation) -> Attestation {
    let mut bytes = *attestation;
    bytes.0[40] ^= 1;
    bytes
}
