// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of programs, by whose fault they are.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use smt_journal::JournalError;
use smt_replica::LoggedError;
use smt_transform::NodeError;
use smt_trusted_process::{CallError, ConfigError, InitError, ProcessError, StateError, failure};

/// Why a program fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The level of the log is none.
    #[error("{0}")]
    Log(String),
    /// The files of a group cannot be made.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory cannot be used.
    #[error(transparent)]
    State(StateError),
    /// The directory is none of a node.
    #[error(
        "your files: {0} is not the directory that `init` has made for this node: is `state` \
         right, and the disk mounted? If the directory is lost, the node must stay off, as one of \
         the f nodes that may fail"
    )]
    Missing(String),
    /// The log is lost, and the node's counter with it.
    #[error(
        "your files: {} has no log of this node any more, and a node without its log would say \
         another thing under a counter that it has used: leave it off, as one of the f nodes that \
         may fail, and form a new group when you can", .0.display()
    )]
    Lost(PathBuf),
    /// The group's devices have one epoch.
    #[error("your files: {directory} is of epoch {epoch}, and nodes have epoch 1 alone")]
    Epoch {
        /// The node's directory.
        directory: String,
        /// Its epoch.
        epoch: u64,
    },
    /// The log is of another node, or its configuration was changed.
    #[error(
        "your files: {} was written under another configuration, or by another version: `node`, \
         `stream`, the `key` of each node, the clients with their keys, and `operation_bytes` must \
         be as they were", .0.display()
    )]
    OtherOwner(PathBuf),
    /// A part of the log is damaged.
    #[error("{0}; leave this node off, as one of the f nodes that may fail")]
    Damaged(JournalError),
    /// The node cannot be had from its log, or cannot go on.
    #[error(transparent)]
    Node(LoggedError<NodeError>),
    /// The process does not begin.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A request has no answer.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl ProgramError {
    /// The error of a directory that cannot be used.
    pub(crate) fn of_state(directory: &Path, error: StateError) -> Self {
        match error {
            StateError::Missing(name) => Self::Missing(name),
            StateError::LogGone(_) => Self::Lost(directory.to_path_buf()),
            error => Self::State(error),
        }
    }

    /// The error of a log that cannot be opened.
    pub(crate) fn of_log(path: &Path, error: LoggedError<NodeError>) -> Self {
        match error {
            LoggedError::Journal(JournalError::OtherOwner) => Self::OtherOwner(path.to_path_buf()),
            error => error.into(),
        }
    }
}

impl From<LoggedError<NodeError>> for ProgramError {
    fn from(error: LoggedError<NodeError>) -> Self {
        match error {
            LoggedError::Journal(error @ JournalError::Damaged(_)) => Self::Damaged(error),
            error => Self::Node(error),
        }
    }
}

/// The end of a program: an error is told on standard error.
pub fn exit_code(result: Result<(), ProgramError>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program.as_deref().and_then(|it| it.file_name()?.to_str());
    failure(name.unwrap_or("node"), &error, error.source())
}
