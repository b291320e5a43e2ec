// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals by which an operator tells a server that files have changed: SIGHUP for certificates,
//! SIGUSR1 for the access log. Neither ever ends the server.

use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::iterator::Signals;
use smt::blocking::Server;

use super::access_log::AccessLog;
use super::publishing::PublisherIdentity;
use super::startup_checks;
use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};

/// Signals that are caught, and wait until it is known what to do about them.
pub(super) struct OperatorSignals(Signals);

/// The files that the signals are about.
pub(super) struct Files {
    /// All shards, which share their credentials.
    pub(super) shards: Vec<Server>,
    pub(super) credentials: ServerCredentials,
    pub(super) access_log: Option<Arc<AccessLog>>,
    /// The identity of the tickets, if some are published.
    pub(super) ticket_identity: Option<PublisherIdentity>,
}

impl OperatorSignals {
    /// Catches them from now on: without that they end the process.
    ///
    /// # Errors
    /// The system does not let them be caught.
    pub(super) fn catch() -> Result<Self, Failure> {
        Signals::new([SIGHUP, SIGUSR1]).map(Self).doing("catching signals")
    }

    /// From now on a thread does what they ask for.
    pub(super) fn serve(mut self, files: Files) {
        let files = Arc::new(files);
        let daily = Arc::clone(&files);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(DAY);
                daily.warn();
            }
        });
        std::thread::spawn(move || {
            for signal in self.0.forever() {
                match signal {
                    SIGHUP => files.reload(),
                    _ => files.open_log_again(),
                }
            }
        });
    }
}

impl Files {
    /// Reads the credentials again, and tells in one line what has come of it.
    fn reload(&self) {
        if let Some(path) = self.credentials.unreadable_again() {
            let path = path.display();
            tracing::warn!(
                "SIGHUP: {path} is no file that can be read again: the server goes on as it is"
            );
            return;
        }
        match self.try_reload() {
            Ok(()) => tracing::info!("SIGHUP: certificates were read again; new clients meet them"),
            Err(failure) => tracing::error!(
                "SIGHUP: the certificates so far stay in use, since those now in the files cannot be used: {}",
                failure.text()
            ),
        }
    }

    fn try_reload(&self) -> Result<(), Failure> {
        let identity = self.credentials.identity()?;
        let client_auth = self.credentials.client_auth()?;
        let warnings = startup_checks::warnings(&self.credentials)?;
        let Some(server) = self.shards.first() else {
            return Ok(());
        };
        // The steps that may fail come before the trust, which ends sessions.
        if let Some(tickets) = &self.ticket_identity {
            tickets.set(&identity)?;
        }
        server.set_identity(identity)?;
        server.set_client_auth(client_auth)?;
        warnings.iter().for_each(|line| tracing::warn!("{line}"));
        Ok(())
    }

    /// Tells what has come near its end, or has ended. Files that cannot be read now are told of
    /// when they are used.
    fn warn(&self) {
        let warnings = startup_checks::warnings(&self.credentials).unwrap_or_default();
        warnings.iter().for_each(|line| tracing::warn!("{line}"));
    }

    fn open_log_again(&self) {
        match &self.access_log {
            Some(log) => log.open_again(),
            None => tracing::warn!("SIGUSR1: there is no --access-log to be opened again"),
        }
    }
}

/// Certificates and revocation lists are looked at as often.
const DAY: Duration = Duration::from_secs(86_400);
