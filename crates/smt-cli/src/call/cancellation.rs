// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ctrl-C, SIGTERM and SIGHUP of a call: the server learns that no caller waits any more, then the
//! process ends.
//!
//! 1. While a call is in progress the first signal closes the client: the call ends, the server
//!    gives the request up, and the subcommand ends as with other failures.
//! 2. Otherwise, and with the second signal, the process ends at once; a file that was begun for
//!    replies goes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smt::blocking::Client;
use smt::{ErrorKind, Execution, OpenError};

use super::attempts::execution;
use super::output::Output;
use crate::failure::Failure;
use crate::interrupt::{exit_code, signals};

/// The effect of a signal on a call in progress.
pub(super) struct Cancellation(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Once it is connected.
    client: Option<Client>,
    is_calling: bool,
    /// The signal that has ended a call.
    signal: Option<i32>,
    /// A file that is not whole yet.
    begun_file: Option<PathBuf>,
}

impl Cancellation {
    /// From now on signals do it.
    ///
    /// # Errors
    /// The system does not let them be caught.
    pub(super) fn on_signals() -> Result<Self, Failure> {
        let state = Arc::new(Mutex::new(State::default()));
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
        lock(&self.0).is_calling = true;
        let outcome = call();
        let mut state = lock(&self.0);
        state.is_calling = false;
        match (&outcome, state.signal) {
            (Err(error), Some(signal)) => {
                let text = format!("interrupted; {}", what_has_become(error));
                Err(Failure::by_signal(exit_code(signal), text))
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
        std::process::exit(exit_code(signal).into());
    }
}

fn what_has_become(error: &OpenError) -> &'static str {
    let one_way = match error {
        OpenError::Connect(error) => Some(error.kind()),
        _ => None,
    };
    match (one_way, execution(error)) {
        (Some(ErrorKind::NotDelivered(_)), _) => "the message was not delivered",
        (Some(ErrorKind::MayHaveBeenDelivered(_)), _) => "the message may have been delivered",
        (_, Execution::DidNotRun) => "the request did not run",
        (_, Execution::MayHaveRun) => "the request may have run",
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
