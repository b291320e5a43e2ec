// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a server does with a request: one of three things, chosen by its arguments.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;

use super::command::ExternalCommand;
use super::directory::Directory;
use crate::failure::Failure;

/// Exactly one of the three.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct HandlerArguments {
    /// Reply with the request
    #[arg(long)]
    echo: bool,
    /// Reply with the file of this directory that the request names by a relative path in UTF-8
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Run this command for each request, its standard input the request and its standard output the reply;
    /// everything behind --exec belongs to the command, so it comes last
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    exec: Option<Vec<String>>,
}

/// What is done with requests.
#[derive(Debug)]
pub(super) enum Handler {
    Directory(Directory),
    Echo,
    Exec(ExternalCommand),
}

impl Handler {
    /// As the arguments say. No reply has more bytes than `reply_limit`.
    pub(super) fn new(arguments: &HandlerArguments, reply_limit: u32) -> Result<Self, Failure> {
        if let Some(path) = &arguments.dir {
            return Directory::open(path, reply_limit).map(Self::Directory);
        }
        match &arguments.exec {
            Some(words) => ExternalCommand::new(words, reply_limit).map(Self::Exec),
            None => Ok(Self::Echo),
        }
    }

    /// Threads that suit. An echo takes less time than handing a request to another thread.
    pub(super) fn workers(&self) -> usize {
        match self {
            Self::Echo => 1,
            Self::Directory(_) | Self::Exec(_) => crate::machine::cores(),
        }
    }

    /// Whether a request that failed may have had an effect.
    pub(super) fn runs_something(&self) -> bool {
        matches!(self, Self::Exec(_))
    }

    /// The reply. `is_useless` tells whether anybody still waits for it.
    pub(super) fn handle(
        &self,
        request: &Bytes,
        is_useless: &dyn Fn() -> bool,
    ) -> Result<Bytes, Failure> {
        match self {
            Self::Directory(directory) => directory.read(request),
            Self::Echo => Ok(request.clone()),
            Self::Exec(command) => command.run(request, is_useless),
        }
    }
}
