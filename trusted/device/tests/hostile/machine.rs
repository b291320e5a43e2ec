// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ground under a device: its files, its TPM and the way to it. The host owns all of that.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use smt_attestation::{DeviceId, Start};
use smt_device::tpm::Transport;
use smt_device::{Core, Store, StoreError};
use smt_device_client::{Logs, SecretNumber};
use smt_simulation::Random;
use smt_test_machine::Tpm;
use zeroize::Zeroizing;

use super::SECRET;

/// The deed of the way to the TPM at one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trick {
    /// A bit of the response changes.
    Change(u64),
    /// The connection ends instead of the response, though the TPM has done its work.
    Lose,
    /// The connection ends before the TPM gets the command.
    Hold,
}

/// A directory with a device, and its TPM if this machine has `swtpm`.
pub(crate) struct Machine {
    root: PathBuf,
    has_tpm: bool,
    /// The TPM since its last power-on, which comes before each start of the device.
    running: RefCell<Option<Tpm>>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Self {
        let name = format!("smt-hostile-{}-{seed}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("tpm")).unwrap();
        let mut machine = Self { root, has_tpm: true, running: RefCell::default() };
        machine.has_tpm = Tpm::start(&machine.root.join("tpm")).is_some();
        let mut way = machine.tpm().map(|socket| way_to(&socket));
        let mut store = Store::create(&machine.device(), DeviceId(1), way.as_mut()).unwrap();
        store.add_secret(SecretNumber(1), Zeroizing::new(SECRET)).unwrap();
        machine
    }

    pub(crate) fn has_tpm(&self) -> bool {
        self.has_tpm
    }

    pub(crate) fn device(&self) -> PathBuf {
        self.root.join("device")
    }

    /// Keeps a copy of the device's files under a name.
    pub(crate) fn save(&self, name: &str) {
        copy(&self.device(), &self.root.join(name));
    }

    /// Puts a copy in the place of the files.
    pub(crate) fn restore(&self, name: &str) {
        copy(&self.root.join(name), &self.device());
    }

    /// Starts the device as its process does.
    pub(crate) fn start(&self, nonce: [u8; 16]) -> Result<Box<Core>, StoreError> {
        self.start_in(&self.device(), nonce)
    }

    fn start_in(&self, directory: &Path, nonce: [u8; 16]) -> Result<Box<Core>, StoreError> {
        let way = self.tpm().map(|socket| way_to(&socket));
        start(directory, way, nonce)
    }

    /// Starts the copy of that name.
    pub(crate) fn start_copy(&self, name: &str, nonce: [u8; 16]) -> Result<Box<Core>, StoreError> {
        self.start_in(&self.root.join(name), nonce)
    }

    /// Puts the files of the logs' ends of a copy in the place of the newest ones.
    pub(crate) fn restore_memory(&self, name: &str) {
        for file in ["memory.0", "memory.1"] {
            std::fs::copy(self.root.join(name).join(file), self.device().join(file)).unwrap();
        }
    }

    /// Starts the device with a trick on the way to its TPM.
    pub(crate) fn start_with(
        &self,
        random: &mut Random,
        trick: Trick,
    ) -> Result<Box<Core>, StoreError> {
        let socket = self.tpm().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let place = random.below(EXCHANGES);
        let between = std::thread::spawn(move || stand_between(theirs, &socket, place, trick));
        let started = start(&self.device(), Some(Transport::Unix(ours)), random.nonce());
        // A device that has started keeps the way open until it is killed.
        if started.is_err() {
            between.join().unwrap();
        }
        started
    }

    /// The secrets that the host must not see. The root secret is known where no TPM seals it.
    pub(crate) fn secrets(&self) -> Vec<[u8; 32]> {
        let mut way = self.tpm().map(|socket| way_to(&socket));
        let store = Store::open(&self.device(), way.as_mut()).unwrap();
        let mut all = vec![SECRET, *store.hardware_seed()];
        if !self.has_tpm {
            let keys = std::fs::read(self.device().join("keys")).unwrap();
            let keyed = <Hmac<Sha256> as KeyInit>::new_from_slice(&keys[21..53]).unwrap();
            all.push(keyed.chain_update(b"SMT device sign ").finalize().into_bytes().into());
        }
        all
    }

    /// All bytes of the device's files.
    pub(crate) fn files(&self) -> Vec<u8> {
        let entries = std::fs::read_dir(self.device()).unwrap().map(Result::unwrap);
        entries.flat_map(|entry| std::fs::read(entry.path()).unwrap()).collect()
    }

    /// The socket of the TPM, which is switched off and on again.
    fn tpm(&self) -> Option<String> {
        let mut running = self.running.borrow_mut();
        // One process at a time has the TPM's state.
        *running = None;
        if self.has_tpm {
            *running = Tpm::start(&self.root.join("tpm"));
        }
        running.as_ref().map(|tpm| tpm.socket.clone())
    }
}

fn start(
    directory: &Path,
    mut way: Option<Transport>,
    nonce: [u8; 16],
) -> Result<Box<Core>, StoreError> {
    let mut store = Store::open(directory, way.as_mut())?;
    let epoch = store.next_epoch(way.as_mut())?;
    let own = Start { device: store.device(), epoch, nonce };
    let mut core = Box::new(Core::start(own, store.signing_key()));
    let logs = store.open_logs(way)?;
    let ends = logs.ends().to_vec();
    core.remember(Logs::new(&ends, Some(Box::new(logs))).unwrap());
    for (number, secret) in store.secrets() {
        core.add_secret(number, secret).unwrap();
    }
    Ok(core)
}

/// The way to a TPM that runs as long as one start of the device: a broken start leaves objects in
/// it, which the next power-on takes away.
fn way_to(socket: &str) -> Transport {
    Transport::open(socket).unwrap()
}

/// The exchanges of a start with its TPM, and one more.
const EXCHANGES: u64 = 22;

fn stand_between(mut device: UnixStream, tpm: &str, place: u64, trick: Trick) {
    let mut tpm = UnixStream::connect(tpm).unwrap();
    for number in 0.. {
        let is_place = number == place;
        let Some(command) = message(&mut device) else {
            return;
        };
        if is_place && matches!(trick, Trick::Hold) || tpm.write_all(&command).is_err() {
            return;
        }
        let Some(mut response) = message(&mut tpm) else {
            return;
        };
        match trick {
            Trick::Lose if is_place => return,
            // Not the size, which would only stop the exchange.
            Trick::Change(bit) if is_place && response.len() > 10 => {
                let bits = 8 * (response.len() as u64 - 6);
                let bit = 6 * 8 + bit % bits;
                response[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            _ => {}
        }
        if device.write_all(&response).is_err() {
            return;
        }
    }
}

/// A command or a response: its third to sixth byte are its size.
fn message(from: &mut UnixStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 10];
    from.read_exact(&mut bytes).ok()?;
    let size = u32::from_be_bytes(bytes[2..6].try_into().unwrap()) as usize;
    bytes.resize(size.max(10), 0);
    from.read_exact(&mut bytes[10..]).ok()?;
    Some(bytes)
}

/// Copies all files of a directory.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
