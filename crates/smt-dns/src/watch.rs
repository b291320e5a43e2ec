// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A task that keeps the tickets of some servers in a store, ahead of their use.
//!
//! Connects never wait for it: they take what is in the store, and TLS where there is nothing.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, UNIX_EPOCH};

use smt_proto::WallTime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::error::LookupError;
use crate::lookup::{FoundTicket, TicketLookup};
use crate::refresh::RefreshPlan;
use crate::server::Server;
use crate::told::Told;

/// Looks tickets up ahead of time, until it is dropped.
///
/// Failures go to the log once for a server and cause (level warn, target `smt_dns`), and again
/// only if a ticket came meanwhile.
#[derive(Debug)]
pub struct TicketWatch {
    commands: UnboundedSender<Command>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Command {
    Add(Server),
    Remove(Server),
}

impl TicketWatch {
    /// Begins to look up these servers, as a task of the runtime that calls.
    ///
    /// # Panics
    /// If it is called outside of a tokio runtime.
    #[must_use]
    pub fn spawn(lookup: TicketLookup, servers: impl IntoIterator<Item = Server>) -> Self {
        let (commands, received) = unbounded_channel();
        let mut work = Work {
            lookup,
            plan: RefreshPlan::default(),
            told: Told::default(),
            began: Instant::now(),
            random: RandomState::new(),
            running: JoinSet::new(),
        };
        servers.into_iter().for_each(|server| work.add(server));
        let task = tokio::spawn(work.run(received));
        Self { commands, task }
    }

    /// Looks up this server too, at once. A watch has 4,096 servers; more are told and left out.
    pub fn add(&self, server: Server) {
        // The task ends with the runtime alone.
        let _ = self.commands.send(Command::Add(server));
    }

    /// Looks this server up no more; its ticket stays in the store until it ends.
    pub fn remove(&self, server: Server) {
        let _ = self.commands.send(Command::Remove(server));
    }
}

impl Drop for TicketWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Outcome = (Server, Result<FoundTicket, LookupError>);

struct Work {
    lookup: TicketLookup,
    plan: RefreshPlan,
    told: Told,
    began: Instant,
    random: RandomState,
    running: JoinSet<Outcome>,
}

impl Work {
    async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            for server in self.plan.begin(self.now()) {
                let lookup = self.lookup.clone();
                self.running.spawn(async move {
                    let found = lookup.look_up(&server, wall_now).await;
                    (server, found)
                });
            }
            let due = self.plan.next_due().map(|due| self.began + due);
            let is_waiting = due.is_some();
            let wake = tokio::time::sleep_until(due.unwrap_or(self.began));
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Add(server)) => self.add(server),
                    Some(Command::Remove(server)) => self.plan.remove(&server),
                    None => return,
                },
                Some(done) = self.running.join_next(), if !self.running.is_empty() => {
                    // A lookup neither panics nor is it cancelled.
                    if let Ok((server, outcome)) = done {
                        self.done(&server, outcome);
                    }
                }
                () = wake, if is_waiting => {}
            }
        }
    }

    fn add(&mut self, server: Server) {
        let shown = server.to_string();
        if !self.plan.add(server, self.now()) {
            tracing::warn!(
                server = shown,
                "limit: no more servers' tickets are looked up; this one is reached by TLS"
            );
        }
    }

    fn done(&mut self, server: &Server, outcome: Result<FoundTicket, LookupError>) {
        let now = self.now();
        match outcome {
            Ok(found) => {
                let random = self.random.hash_one((server, now)) as u32;
                self.plan.found(server, now, found.kept_for, random);
                match self.told.found(server) {
                    true => tracing::info!(%server, ends = found.ends, "a ticket was found again"),
                    false => tracing::debug!(%server, ends = found.ends, "a ticket was found"),
                }
            }
            Err(error) => {
                self.plan.failed(server, now);
                if self.told.is_new(server, &error) {
                    tracing::warn!(%server, %error, "no ticket by DNS: the server is reached by TLS");
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The wall time by the host's clock.
#[must_use]
pub fn wall_now() -> WallTime {
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    WallTime::from_secs(since.as_secs())
}
