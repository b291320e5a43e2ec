// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of attestations.

use smt_device_client::DeviceError;

/// Why a device gives no attestations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttestorError {
    /// The device or the way to it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device has attested what the log has not.
    #[error(
        "the device has attested statements that are not in the log: the log is older than the \
         device's counter"
    )]
    Ahead,
    /// The log has what the device has not attested.
    #[error("the log has statements that this device has not attested in this epoch")]
    Foreign,
    /// The device was started again, or the group was formed with another epoch of it.
    #[error("the device is in epoch {device}, and the group has it in epoch {group}")]
    OtherEpoch {
        /// The epoch of the device.
        device: u64,
        /// Its epoch in the group.
        group: u64,
    },
}
