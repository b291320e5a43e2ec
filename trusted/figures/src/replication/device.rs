// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The devices below the replicas: the library, a process for each, or the library with the latency
//! of another system.

use std::path::PathBuf;

use smt_attestation::{
    Attestation, Ballot, DeviceId, Epoch, Group, GroupSecret, Header, PUBLIC_KEY_LEN, Position,
    SIGNATURE_LEN, SigningKey, Start, StreamId,
};
use smt_device_client::{Client, Device, DeviceError, Library, SecretNumber};
use smt_loopback::{DeviceProcess, GivenSecret};

use crate::Failure;
use crate::systems::busy_wait;

/// The number under which each device has the group's secret.
pub(crate) const SECRET: SecretNumber = SecretNumber(1);
/// The group's secret: nothing is secret in a measurement.
pub(crate) const GROUP_SECRET: [u8; 32] = [7; 32];

/// The kind of device that attests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Attesting {
    Library,
    Process,
    /// The library, and so many microseconds for each attestation, check and signature.
    Emulated(&'static str, u64),
}

impl Attesting {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Process => "device process",
            Self::Emulated(name, _) => name,
        }
    }
}

/// The devices of one run, each in its first epoch.
pub(crate) struct Devices {
    attesting: Attesting,
    processes: Vec<DeviceProcess>,
}

impl Devices {
    pub(crate) fn start(attesting: Attesting, count: u32) -> Result<Self, Failure> {
        let processes = match attesting {
            Attesting::Process => {
                let program = std::env::current_exe()?;
                let secret = GivenSecret { number: SECRET, bytes: GROUP_SECRET };
                let start = |number| DeviceProcess::start(&program, number, Some(secret));
                (0..count).map(start).collect::<Result<_, _>>()?
            }
            _ => Vec::new(),
        };
        Ok(Self { attesting, processes })
    }

    /// The way to a replica's device, which another thread may go.
    pub(crate) fn way(&self, replica: u32) -> Way {
        let socket = self.processes.get(replica as usize).map(DeviceProcess::socket);
        Way { attesting: self.attesting, replica, socket }
    }

    /// Processor time that device processes have taken, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        self.processes.iter().map(|it| super::cpu::seconds_of(it.id())).sum()
    }
}

/// The way to a device.
#[derive(Clone)]
pub(crate) struct Way {
    attesting: Attesting,
    replica: u32,
    socket: Option<PathBuf>,
}

impl Way {
    pub(crate) fn open(&self) -> Result<Box<dyn Device>, Failure> {
        if let Some(socket) = &self.socket {
            return Ok(Box::new(Client::connect(socket)?));
        }
        let start = Start { device: DeviceId(self.replica), epoch: Epoch(1), nonce: [0; 16] };
        let key = SigningKey::new(&[self.replica as u8 + 1; 32]);
        let mut library: Library<1, 8, 64> = Library::start(start, key);
        library.add_secret(SECRET, GroupSecret::new(GROUP_SECRET)).map_err(DeviceError::Misuse)?;
        match self.attesting {
            Attesting::Emulated(_, wait) => Ok(Box::new(Emulated { library, wait })),
            _ => Ok(Box::new(library)),
        }
    }
}

/// The library with the latency of another system where that computes a MAC or a signature.
struct Emulated {
    library: Library<1, 8, 64>,
    wait: u64,
}

impl Device for Emulated {
    fn own(&self) -> Start {
        self.library.own()
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.library.public_key()
    }

    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        self.library.open(secret, group)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        busy_wait(self.wait);
        self.library.attest(stream, message)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        busy_wait(self.wait);
        self.library.accept(stream, attestation, message)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        busy_wait(self.wait);
        self.library.check(stream, attestation, message)
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        busy_wait(self.wait);
        self.library.sign(stream, counter, message)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        self.library.reissue(stream, counter)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        self.library.sent(stream)
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        self.library.position(stream, device)
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        self.library.vote(stream, newcomer, about)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.library.admit(stream, newcomer, ballots)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        self.library.synchronize(stream, peer, ballots)
    }
}
