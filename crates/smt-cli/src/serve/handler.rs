// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The handler of requests: one of three, chosen by the server's arguments.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use smt::Incoming;

use super::caller::Caller;
use super::command::{ExternalCommand, Limits};
use super::directory::{self, Directory};
use super::environment::Environment;
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
    /// Tells the caller's program what its text tells people.
    pub(super) code: u32,
    /// Whether it may have had an effect.
    pub(super) has_run: bool,
    /// Whether callers do something about it as a matter of course: nothing is lost.
    pub(super) is_a_step: bool,
}

impl Dropped {
    pub(super) fn before_it_ran(failure: Failure) -> Self {
        Self::refused(FAILED, failure)
    }

    /// The same with another code.
    pub(super) fn refused(code: u32, failure: Failure) -> Self {
        Self { failure, code, has_run: false, is_a_step: false }
    }

    /// The same, and callers ask for ranges next.
    pub(super) fn until_ranges(code: u32, failure: Failure) -> Self {
        Self { is_a_step: true, ..Self::refused(code, failure) }
    }

    pub(super) fn when_it_ran(failure: Failure) -> Self {
        Self { failure, code: FAILED, has_run: true, is_a_step: false }
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
        message: &Incoming,
        caller: &Caller,
        is_useless: &dyn Fn() -> bool,
    ) -> Result<Bytes, Dropped> {
        match self {
            Self::Directory(directory) => directory.answer(message),
            Self::Echo => Ok(message.body().clone()),
            Self::Exec(command) => {
                let environment = Environment::of(message, caller);
                command.run(message.body(), &environment, is_useless)
            }
        }
    }

    /// The word for it in an access log.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Directory(_) => "dir",
            Self::Echo => "echo",
            Self::Exec(_) => "exec",
        }
    }

    /// The file that a message asks for, or the command.
    pub(super) fn shown(&self, message: &Incoming) -> Option<String> {
        match self {
            Self::Directory(_) => Some(directory::shown(message.body())),
            Self::Echo => None,
            Self::Exec(command) => Some(command.program().to_owned()),
        }
    }
}

/// The code of all failures but those that a program can do something about.
const FAILED: u32 = 1;
