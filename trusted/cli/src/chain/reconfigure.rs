// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service of configurations: etcd, and a thread of each node that works on it.
//!
//! A node writes its newest accusation under `accusations/N`. When f + 1 of them accuse one
//! configuration, any node puts the next number under `configuration`, the accusations beside it,
//! if nobody has written the key since it was read. Readers verify the signatures, thus neither
//! etcd nor who writes there can end a configuration that no correct node wants to end. A node
//! that knows a newer configuration than etcd has puts it back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smt_bft::{Group, SigningKey};
use smt_chain::{Accusation, Made};

use crate::chain::entry::{
    accusation_text, configuration_text, read_accusation, read_configuration,
};
use crate::chain::etcd::{Etcd, EtcdError};

/// The key of the newest configuration.
const CONFIGURATION: &str = "configuration";

/// Numbers of the service, as a node sees it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The newest configuration that f + 1 nodes have made.
    newest: Mutex<Option<Made>>,
    /// Whether etcd has answered the last time.
    pub(crate) is_reachable: AtomicBool,
    /// How often it has not.
    pub(crate) failures: AtomicU64,
    /// Configurations that this node has written.
    pub(crate) made: AtomicU64,
}

impl Seen {
    fn newest(&self) -> MutexGuard<'_, Option<Made>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node's connection to the service of configurations. Its thread ends with it.
pub(crate) struct Reconfiguration {
    accusations: Sender<u64>,
    seen: Arc<Seen>,
}

impl Reconfiguration {
    /// Starts the thread of a node that knows of the configuration `newest`.
    pub(crate) fn start(
        etcd: Etcd,
        poll: Duration,
        (group, newest): (Arc<Group>, Option<Made>),
        (node, key): (u32, SigningKey),
    ) -> Self {
        let (accusations, wanted) = channel();
        let seen = Arc::new(Seen { newest: Mutex::new(newest), ..Seen::default() });
        let (own, has_failed, refused) = (None, false, 0);
        let worker =
            Worker { etcd, group, node, key, own, has_failed, refused, seen: seen.clone() };
        std::thread::spawn(move || worker.run(&wanted, poll));
        Self { accusations, seen }
    }

    /// Accuses a configuration, as soon as etcd answers.
    pub(crate) fn accuse(&self, number: u64) {
        // The thread ends after this.
        let _ = self.accusations.send(number);
    }

    /// The newest configuration that f + 1 nodes have made.
    pub(crate) fn newest(&self) -> Option<Made> {
        self.seen.newest().clone()
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }
}

struct Worker {
    etcd: Etcd,
    group: Arc<Group>,
    node: u32,
    key: SigningKey,
    /// The newest accusation of this node.
    own: Option<Accusation>,
    has_failed: bool,
    /// The revision of a configuration that was refused, for the log to have it once.
    refused: u64,
    seen: Arc<Seen>,
}

impl Worker {
    fn run(mut self, wanted: &Receiver<u64>, poll: Duration) {
        loop {
            let outcome = self.work();
            self.tell(outcome);
            match wanted.recv_timeout(poll) {
                Ok(number) => {
                    let number = wanted.try_iter().fold(number, u64::max);
                    self.own = Some(Accusation::sign(&self.group, self.node, number, &self.key));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Looks at what etcd has, and adds what is missing.
    fn work(&mut self) -> Result<(), EtcdError> {
        let configuration = self.etcd.read(CONFIGURATION)?;
        let made = read_configuration(&configuration.value);
        let proven = made.filter(|it| it.is_proven(&self.group));
        if proven.is_none() && configuration.revision > self.refused {
            self.refused = configuration.revision;
            tracing::warn!(
                "the configuration in etcd lacks the signatures of f + 1 nodes: a node lies, or \
                 another group has the same prefix"
            );
        }
        let in_etcd = number_of(proven.as_ref());
        self.learn(proven);
        let mut found = self.read_accusations()?;
        self.add_own(&mut found)?;
        let made = Made::of(&self.group, &found);
        let known = self.seen.newest().clone();
        let is_new = number_of(made.as_ref()) > number_of(known.as_ref());
        let next = if is_new { made } else { known };
        let Some(next) = next else {
            return Ok(());
        };
        // If another node was faster, the next look finds its configuration.
        if next.number > in_etcd
            && self.etcd.swap(CONFIGURATION, configuration.revision, &configuration_text(&next))?
        {
            self.seen.made.fetch_add(1, Ordering::Relaxed);
            tracing::info!(configuration = next.number, is_new, "written to etcd");
            self.learn(Some(next));
        }
        Ok(())
    }

    /// The accusations in etcd, whose signatures are not verified.
    fn read_accusations(&mut self) -> Result<Vec<Accusation>, EtcdError> {
        let mut found = Vec::new();
        for node in 0..self.group.replicas {
            match self.etcd.read(&accusation_name(node)) {
                Ok(kept) => found.extend(read_accusation(node, &kept.value)),
                // A key that one member can write keeps no other from being read.
                Err(EtcdError::TooLong { .. } | EtcdError::Malformed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Adds the accusation of this node to those in etcd, if it is not there.
    fn add_own(&mut self, found: &mut Vec<Accusation>) -> Result<(), EtcdError> {
        let Some(own) = self.own else {
            return Ok(());
        };
        let is_there = |it: &Accusation| it.node == own.node && it.number >= own.number;
        if !found.iter().any(|it| is_there(it) && it.is_genuine(&self.group)) {
            self.etcd.write(&accusation_name(own.node), &accusation_text(&own))?;
            tracing::info!(configuration = own.number, "accused");
            found.retain(|it| it.node != own.node);
            found.push(own);
        }
        Ok(())
    }

    /// Remembers a configuration that f + 1 nodes have made, if it is newer.
    fn learn(&self, made: Option<Made>) {
        let mut newest = self.seen.newest();
        if number_of(made.as_ref()) > number_of(newest.as_ref()) {
            *newest = made;
        }
    }

    /// Tells once that etcd fails, and once that it answers again.
    fn tell(&mut self, outcome: Result<(), EtcdError>) {
        self.seen.is_reachable.store(outcome.is_ok(), Ordering::Relaxed);
        match outcome {
            Err(error) => {
                self.seen.failures.fetch_add(1, Ordering::Relaxed);
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(
                        %error,
                        "no node can be replaced until etcd answers; the service goes on"
                    );
                }
            }
            Ok(()) => {
                if std::mem::take(&mut self.has_failed) {
                    tracing::warn!("etcd answers again");
                }
            }
        }
    }
}

/// The number of a configuration: 0 before the first that was made.
fn number_of(made: Option<&Made>) -> u64 {
    made.map_or(0, |it| it.number)
}

fn accusation_name(node: u32) -> String {
    format!("accusations/{node}")
}
