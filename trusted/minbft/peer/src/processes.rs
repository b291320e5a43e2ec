// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Device processes of a group.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_device_client::{Client, DeviceError};
use smt_loopback::DeviceProcess;

use crate::device::Devices;
use crate::keys::GroupKeys;

/// Device processes of a group, which threads share.
#[derive(Clone, Debug)]
pub struct Processes(Arc<Vec<Mutex<DeviceProcess>>>);

impl Processes {
    /// Starts so many.
    ///
    /// # Errors
    /// Those of [`DeviceProcess::start`].
    pub fn start(program: &Path, count: u32) -> io::Result<Self> {
        let secret = Some(GroupKeys::given_secret());
        let started =
            (0..count).map(|it| DeviceProcess::start(program, it, secret).map(Mutex::new));
        Ok(Self(Arc::new(started.collect::<io::Result<_>>()?)))
    }

    /// Kills the device of a replica.
    pub fn kill(&self, number: u32) {
        if let Some(mut process) = self.process(number) {
            process.kill();
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
