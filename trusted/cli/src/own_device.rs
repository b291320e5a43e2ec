// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device of a group's member: a kernel in its process, or a device process of this host.

use std::path::PathBuf;

use smt_attestation::DeviceId;
use smt_device_client::{Client, Device, DeviceError, SecretNumber};
use smt_replica::{AttestorError, OwnDevice};
use smt_trusted_process::{ConfigError, OwnSecret, Source};
use toml::Spanned;
use zeroize::Zeroizing;

use crate::command_error::device_fault;

/// Where a member's attestations come from.
pub(crate) enum DeviceConfig {
    /// A kernel in the process of the member, with the secret of a file.
    Library(Zeroizing<[u8; 32]>),
    /// A device process.
    Process(DeviceProcess),
}

/// A device process of this host.
pub(crate) struct DeviceProcess {
    socket: PathBuf,
    /// The number under which it has the group's secret.
    secret: SecretNumber,
}

/// Why a member's device attests nothing for it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnDeviceError {
    /// The device cannot be used.
    #[error("{}: {error}", device_fault(.error))]
    Device { error: DeviceError },
    /// The device is another one.
    #[error("your files: the device at the socket is number {0}, and this member is number {1}")]
    OtherNumber(u32, u32),
    /// The device has another key than the group has of it.
    #[error("your files: the group has another `key` of this node than that of its device")]
    OtherKey,
    /// The device was started again, or the group was formed with another epoch of it.
    #[error("your files: {0}")]
    OtherEpoch(AttestorError),
    /// The device and the log differ.
    #[error("the host or its disk: {0}")]
    Log(AttestorError),
}

impl From<AttestorError> for OwnDeviceError {
    fn from(error: AttestorError) -> Self {
        match error {
            AttestorError::Device(error) => Self::Device { error },
            AttestorError::OtherEpoch { .. } => Self::OtherEpoch(error),
            error => Self::Log(error),
        }
    }
}

impl From<DeviceError> for OwnDeviceError {
    fn from(error: DeviceError) -> Self {
        Self::Device { error }
    }
}

impl From<OwnSecret> for DeviceConfig {
    fn from(secret: OwnSecret) -> Self {
        match secret {
            OwnSecret::File(secret) => Self::Library(secret),
            OwnSecret::Device { socket, number } => {
                Self::Process(DeviceProcess { socket, secret: SecretNumber(number) })
            }
        }
    }
}

impl DeviceConfig {
    /// Tells the log who can forge.
    pub(crate) fn tell(&self) {
        match self {
            Self::Process(_) => {
                tracing::info!("a device of its own attests; this process has no key of the group");
            }
            Self::Library(_) => {
                tracing::info!("a kernel in this process attests: who reads its memory can forge");
            }
        }
    }
}

impl DeviceProcess {
    /// Connects to the device, which has the number of its member.
    pub(crate) fn connect(&self, number: u32) -> Result<Client, OwnDeviceError> {
        let device = Client::connect(&self.socket)?;
        let DeviceId(other) = device.own().device;
        if other == number { Ok(device) } else { Err(OwnDeviceError::OtherNumber(other, number)) }
    }

    /// The device of a connection.
    pub(crate) fn of(&self, device: Client) -> OwnDevice {
        OwnDevice::Process { device: Box::new(device), secret: self.secret }
    }
}

/// The epoch that a group has of a member's device, from 1.
pub(crate) fn read_epoch(
    source: &Source,
    epoch: Option<&Spanned<u64>>,
) -> Result<u64, ConfigError> {
    let zero = epoch.filter(|it| *it.get_ref() == 0);
    if let Some(it) = zero {
        return Err(source.field("epoch", it.span(), "epochs are counted from 1".to_owned()));
    }
    Ok(epoch.map_or(1, |it| *it.get_ref()))
}
