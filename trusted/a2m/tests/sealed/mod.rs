// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Devices that remember logs across their starts, as one with a TPM does.

use std::io;
use std::sync::{Arc, Mutex};

use smt_a2m::{End, LogId, OwnDevice};
use smt_attestation::{DeviceId, Epoch, GroupSecret, SigningKey, Start};
use smt_device_client::{Logs, Sealing, SecretNumber};

/// Sealings until a device dies that never does.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// The memory of a device whose host cannot restore it. The process may die in a sealing.
#[derive(Clone, Default)]
pub(crate) struct Sealed(Arc<Mutex<SealedState>>);

#[derive(Default)]
struct SealedState {
    epoch: u64,
    ends: Vec<(LogId, End)>,
    /// Sealings until the one in which the process dies.
    left: u64,
    /// Whether the last sealing became durable.
    is_durable: bool,
}

impl Sealing for Sealed {
    fn seal(&mut self, ends: &[(LogId, End)]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let dies = state.left == 0;
        if !dies || state.is_durable {
            state.ends = ends.to_vec();
        }
        state.left = state.left.saturating_sub(1);
        if dies { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl Sealed {
    /// Has the device die in its next sealing, which becomes durable or not.
    #[allow(dead_code, reason = "not all tests end a device that runs")]
    pub(crate) fn dies_next(&self, is_durable: bool) {
        let mut state = self.0.lock().unwrap();
        (state.left, state.is_durable) = (0, is_durable);
    }

    /// Starts the device in its next epoch, which dies in one of its next sealings.
    pub(crate) fn start(&self, left: u64, is_durable: bool) -> OwnDevice {
        let mut state = self.0.lock().unwrap();
        (state.epoch, state.left, state.is_durable) = (state.epoch + 1, left, is_durable);
        let nonce = [state.epoch as u8; 16];
        let own = Start { device: DeviceId(1), epoch: Epoch(state.epoch), nonce };
        let mut device = OwnDevice::start(own, SigningKey::new(&[9; 32]));
        device.add_secret(SecretNumber(0), GroupSecret::new([8; 32])).unwrap();
        device.remember(Logs::new(&state.ends, Some(Box::new(self.clone()))).unwrap());
        device
    }
}
