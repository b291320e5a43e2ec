// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a device's directory cannot be used.

use std::io;

use crate::tpm::TpmError;

/// Why a device cannot be made or opened. Each text begins with whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is a device already.
    #[error("your request: {0} has a device already")]
    Exists(String),
    /// There is none.
    #[error("your request: {0} has no device: `smt-trusted device init {0}` makes one")]
    Missing(String),
    /// Another process has it open.
    #[error("your request: another process runs the device of {0}")]
    Locked(String),
    /// The device was made with a TPM.
    #[error("your request: the device was made with a TPM: give --tpm")]
    NeedsTpm,
    /// The device was made without a TPM.
    #[error("your request: the device was made without a TPM: leave --tpm out, or make a new one")]
    HasNoTpm,
    /// A file is not what the device wrote.
    #[error("the host or its disk: the file {0} is damaged, altered, or of another device")]
    Altered(&'static str),
    /// The files are older than the device's last start.
    #[error(
        "the host: the device's files are those of epoch {files}, and its TPM is in epoch {tpm}: \
         they were restored or are a copy; form the group anew with a new device"
    )]
    Restored {
        /// The epoch of the files.
        files: u64,
        /// The TPM's.
        tpm: u64,
    },
    /// The logs' ends are not those that were sealed last.
    #[error(
        "the host: the files memory.0 and memory.1 are not those that the device wrote last, as \
         its TPM knows: they were restored, altered, or are those of a copy; bring the last ones \
         back, or make a new device"
    )]
    MemoryRestored,
    /// The device was made without a memory.
    #[error(
        "your request: the device was made by an earlier version, and remembers no logs: make a \
         new device, or leave --memory out"
    )]
    HasNoMemory,
    /// Another process has taken the epoch.
    #[error("the host: a copy of this device runs at the same time: only one may")]
    Copied,
    /// A secret of that number is there.
    #[error("your request: the device has a secret {0} already, or 64 of them")]
    SecretExists(u32),
    /// The TPM refuses, is missing or another one.
    #[error("the TPM: {0}")]
    Tpm(
        #[source]
        #[from]
        TpmError,
    ),
    /// Reading or writing failed.
    #[error("the operating system: the device's files cannot be read or written")]
    File(#[from] io::Error),
}
