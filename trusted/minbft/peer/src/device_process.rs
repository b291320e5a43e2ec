// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Device processes of this program.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_attestation::DeviceId;
use smt_device::{RunError, RunOptions, Store};
use smt_device_client::{Client, DeviceError};
use zeroize::Zeroizing;

use crate::device::Devices;
use crate::keys::GroupKeys;

/// Runs the device of a directory until it is killed.
///
/// # Errors
/// Those of [`smt_device::run`].
pub fn run_device(directory: &Path) -> Result<(), RunError> {
    let (directory, socket) = (directory.to_path_buf(), directory.join("socket"));
    match smt_device::run(&RunOptions {
        directory,
        socket,
        tpm: None,
        account: None,
        clients: None,
    })? {}
}

/// A device in a process and a directory of its own, which end with this value.
#[derive(Debug)]
pub struct DeviceProcess {
    child: Child,
    directory: PathBuf,
}

impl DeviceProcess {
    /// Makes a device with the group's secret, and starts it by `program device DIRECTORY`.
    ///
    /// # Errors
    /// The operating system or the device fails.
    pub fn start(program: &Path, number: u32) -> io::Result<Self> {
        static COUNT: Mutex<u32> = Mutex::new(0);
        // One at a time: a child that another thread is about to start holds the lock of a
        // directory for a moment.
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let name = format!("smt-minbft-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut store =
            Store::create(&directory, DeviceId(number), None).map_err(io::Error::other)?;
        let secret = Zeroizing::new(GroupKeys::secret_bytes());
        store.add_secret(GroupKeys::SECRET, secret).map_err(io::Error::other)?;
        drop(store);
        let mut command = Command::new(program);
        command.arg("device").arg(&directory).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = Self { child: command.spawn()?, directory };
        drop(count);
        let mut lines = BufReader::new(process.child.stderr.take().ok_or(io::ErrorKind::Other)?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        // A process whose pipe is closed or full fails when it writes.
        std::thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
        if !line.contains("serves at") {
            return Err(io::Error::other(format!("the device does not start: {}", line.trim())));
        }
        Ok(process)
    }

    /// A connection.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub fn connect(&self) -> Result<Client, DeviceError> {
        Client::connect(&self.directory.join("socket"))
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Device processes of a group, which threads share.
#[derive(Clone, Debug)]
pub struct Processes(Arc<Vec<Mutex<DeviceProcess>>>);

impl Processes {
    /// Starts so many.
    ///
    /// # Errors
    /// Those of [`DeviceProcess::start`].
    pub fn start(program: &Path, count: u32) -> io::Result<Self> {
        let started = (0..count).map(|it| DeviceProcess::start(program, it).map(Mutex::new));
        Ok(Self(Arc::new(started.collect::<io::Result<_>>()?)))
    }

    /// Kills the device of a replica.
    pub fn kill(&self, number: u32) {
        if let Some(mut process) = self.process(number) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }

    fn process(&self, number: u32) -> Option<MutexGuard<'_, DeviceProcess>> {
        let process = self.0.get(number as usize)?;
        Some(process.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Devices for Processes {
    type Device = Client;

    fn open(&self, number: u32) -> Result<Client, DeviceError> {
        match self.process(number) {
            Some(process) => process.connect(),
            None => Err(DeviceError::Protocol("there is no such device")),
        }
    }
}
