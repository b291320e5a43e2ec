// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The handler of requests: one of three, chosen by the server's arguments.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;

use super::command::{ExternalCommand, Limits};
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
    /// Run this command for each request, its standard input the request and its standard output
    /// the reply; everything behind --exec belongs to the command, so it comes last
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    exec: Option<Vec<String>>,
}

impl HandlerArguments {
    /// Whether requests make a command run.
    pub(super) fn runs_a_command(&self) -> bool {
        self.exec.is_some()
    }
}

/// Why a request has no reply.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) failure: Failure,
    /// Whether it may have had an effect.
    pub(super) has_run: bool,
}

impl Dropped {
    pub(super) fn before_it_ran(failure: Failure) -> Self {
        Self {
            failure,
            has_run: false,
        }
    }

    pub(super) fn when_it_ran(failure: Failure) -> Self {
        Self {
            failure,
            has_run: true,
        }
    }
}

/// The way in which requests are handled.
#[derive(Debug)]
pub(super) enum Handler {
    Directory(Directory),
    Echo,
    Exec(ExternalCommand),
}

impl Handler {
    /// As the arguments say. No reply is longer than the limit, and no command runs for longer.
    pub(super) fn new(arguments: &HandlerArguments, limits: Limits) -> Result<Self, Failure> {
        if let Some(path) = &arguments.dir {
            return Directory::open(path, limits.reply).map(Self::Directory);
        }
        match &arguments.exec {
            Some(words) => ExternalCommand::new(words, limits).map(Self::Exec),
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

    /// The reply. `is_useless` tells whether no caller waits for it any more.
    pub(super) fn handle(
        &self,
        request: &Bytes,
        is_useless: &dyn Fn() -> bool,
    ) -> Result<Bytes, Dropped> {
        match self {
            Self::Directory(directory) => directory.read(request).map_err(Dropped::before_it_ran),
            Self::Echo => Ok(request.clone()),
            Self::Exec(command) => command.run(request, is_useless),
        }
    }
}
