// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ctrl-C, SIGTERM and SIGHUP of a call: the server learns that no caller waits any more, then the
//! process ends.
//!
//! 1. While a call is in progress the first signal closes the client: the call ends, the server
//!    gives the request up, and the subcommand ends as with other failures.
//! 2. Otherwise, and with the second signal, the process ends at once; a file that was begun for
//!    replies goes.
//! 3. Either way the last line says what has become of the request, over all attempts at it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smt::blocking::Client;
use smt::{Execution, OpenError};

use super::attempts::execution;
use super::output::Output;
use crate::failure::Failure;
use crate::interrupt::{exit_code, signals};
use crate::standard_error;

/// The effect of a signal on a call in progress.
pub(super) struct Cancellation(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Once it is connected.
    client: Option<Client>,
    is_calling: bool,
    /// The effect of the request in progress, or of the last one.
    fate: Fate,
    is_one_way: bool,
    /// The signal that has ended a call.
    signal: Option<i32>,
    /// A file that is not whole yet.
    begun_file: Option<PathBuf>,
}

/// The effect of a request, as far as it is known here.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
enum Fate {
    #[default]
    NotRun,
    Unknown,
    Run,
}

impl Cancellation {
    /// From now on signals do it, for requests or for one-way messages.
    ///
    /// # Errors
    /// The system does not let them be caught.
    pub(super) fn on_signals(is_one_way: bool) -> Result<Self, Failure> {
        let state = State { is_one_way, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let mut signals = signals()?;
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let mut state = lock(&shared);
                if !state.is_calling || state.signal.is_some() {
                    // The lock is kept: nothing else happens any more.
                    state.end(signal);
                }
                state.signal = Some(signal);
                let client = state.client.clone();
                drop(state);
                client.iter().for_each(|client| client.close(Duration::ZERO));
            }
        });
        Ok(Self(state))
    }

    /// Opens the file for replies.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(&self, path: &Path) -> Result<Output, Failure> {
        // A FIFO is open when a process reads it: meanwhile a signal needs the state.
        let output = Output::open(path)?;
        lock(&self.0).begun_file = output.begun_file();
        Ok(output)
    }

    /// Another request: no attempt at it was made.
    pub(super) fn begin_request(&self) {
        lock(&self.0).fate = Fate::NotRun;
    }

    /// It is connected.
    pub(super) fn of(&self, client: &Client) {
        lock(&self.0).client = Some(client.clone());
    }

    /// No further call is made: the client ends with its last handle, which must not be the one
    /// here.
    pub(super) fn forget_client(&self) {
        let client = lock(&self.0).client.take();
        drop(client);
    }

    /// Makes a call that a signal cancels.
    ///
    /// # Errors
    /// A signal has cancelled it.
    pub(super) fn during<T>(
        &self,
        call: impl FnOnce() -> Result<T, OpenError>,
    ) -> Result<Result<T, OpenError>, Failure> {
        let mut state = lock(&self.0);
        state.is_calling = true;
        let before = std::mem::replace(&mut state.fate, Fate::Unknown);
        drop(state);
        let outcome = call();
        let mut state = lock(&self.0);
        state.is_calling = false;
        state.fate = match &outcome {
            Ok(_) => Fate::Run,
            Err(error) => before.max(execution(error).into()),
        };
        match state.signal {
            Some(signal) if outcome.is_err() => {
                Err(Failure::by_signal(exit_code(signal), state.words()))
            }
            _ => Ok(outcome),
        }
    }
}

impl State {
    fn end(&self, signal: i32) -> ! {
        self.client.iter().for_each(|client| client.close(Duration::ZERO));
        let removed = self.begun_file.as_ref().map(std::fs::remove_file);
        drop(removed);
        standard_error::complain(format_args!("smt: {}", self.words()));
        std::process::exit(exit_code(signal).into());
    }

    fn words(&self) -> &'static str {
        match (self.is_one_way, self.fate) {
            (false, Fate::NotRun) => "interrupted; the request did not run",
            (false, Fate::Unknown) => "interrupted; the request may have run",
            (false, Fate::Run) => "interrupted; the request has run",
            (true, Fate::NotRun) => "interrupted; the message was not delivered",
            (true, Fate::Unknown) => "interrupted; the message may have been delivered",
            (true, Fate::Run) => "interrupted; the message was delivered",
        }
    }
}

impl From<Execution> for Fate {
    fn from(execution: Execution) -> Self {
        match execution {
            Execution::DidNotRun => Self::NotRun,
            Execution::MayHaveRun => Self::Unknown,
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
