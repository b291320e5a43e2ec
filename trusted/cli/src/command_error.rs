// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The errors of all subcommands.

use std::error::Error;
use std::io;

use smt_a2m::{A2mError, Fault};
use smt_bootstrap::BootstrapError;
use smt_device::{RunError, StoreError};
use smt_device_client::DeviceError;
use smt_transform_process::ProgramError;
use smt_trusted_process::InitError;

use crate::bft::ReplicaError;
use crate::chain::NodeError;
use crate::keys::KeyError;
use crate::operation::ClientError;
use crate::peer_review::{ReviewedError, VerifyError};
use crate::tail::VerifyTailError;

/// Why a command failed. Each text begins with whose fault it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error("{}: {error}", fault(.error))]
    Memory { error: A2mError },
    #[error(transparent)]
    Tail(#[from] VerifyTailError),
    #[error("your request: {0}")]
    Request(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    #[error("{}: {error}", device_fault(.error))]
    Device { error: DeviceError },
    #[error("the search: {violations} seeds violate a property; in less than 1 %: {rare}")]
    Search { violations: usize, rare: String },
    #[error(transparent)]
    Group(#[from] InitError),
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Reviewed(#[from] ReviewedError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Transform(#[from] ProgramError),
    #[error("the operating system: standard input or output failed")]
    Stream(#[from] io::Error),
}

impl CommandError {
    /// The error behind this one, which its own text does not tell.
    pub(crate) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Memory { error } => error.source(),
            Self::Device { error } => error.source(),
            other => other.source(),
        }
    }
}

impl From<A2mError> for CommandError {
    fn from(error: A2mError) -> Self {
        Self::Memory { error }
    }
}

impl From<DeviceError> for CommandError {
    fn from(error: DeviceError) -> Self {
        Self::Device { error }
    }
}

fn fault(error: &A2mError) -> &'static str {
    match error.fault() {
        Fault::Caller => "your request",
        Fault::Host => "the host or its disk",
        Fault::Environment => "the operating system",
        Fault::Limit => "the device",
    }
}

pub(crate) fn device_fault(error: &DeviceError) -> &'static str {
    match error.fault() {
        smt_device_client::Fault::Caller => "your request",
        smt_device_client::Fault::Message => "the message or its sender",
        smt_device_client::Fault::Device => "the device",
        smt_device_client::Fault::Environment => "the operating system",
        smt_device_client::Fault::Limit => "a limit of the device",
    }
}
