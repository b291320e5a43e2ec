// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service of configurations: etcd, and a thread of each node that works on it.
//!
//! A node has its accusation under `accusations/N` for as long as it waits. When f + 1 of them
//! accuse one configuration, any node puts the next number under `configuration`, the accusations
//! beside it, if nobody has written the key since it was read. Readers verify the signatures, thus
//! neither etcd nor who writes there can end a configuration that no correct node wants to end. A
//! node that knows a newer configuration than etcd has puts it back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smt_chain::{Accusation, Made};
use smt_replica::{Group, SigningKey};

use crate::chain::entry::{
    accusation_text, configuration_text, read_accusation, read_configuration,
};
use crate::chain::etcd::{Etcd, EtcdError, Kept};

/// The key of the newest configuration.
const CONFIGURATION: &str = "configuration";

/// Numbers of the service, as a node sees it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The newest configuration that f + 1 nodes have made.
    newest: Mutex<Option<Made>>,
    /// Whether etcd has answered the last time.
    pub(crate) is_reachable: AtomicBool,
    /// How often etcd has not answered, or has refused.
    pub(crate) failures: AtomicU64,
    /// Configurations that this node has written.
    pub(crate) made: AtomicU64,
}

impl Seen {
    fn newest(&self) -> MutexGuard<'_, Option<Made>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a configuration that f + 1 nodes have made, if it is newer. True if it is.
    fn learn(&self, made: Option<&Made>) -> bool {
        let mut newest = self.newest();
        let is_new = number_of(made) > number_of(newest.as_ref());
        if is_new {
            *newest = made.cloned();
        }
        is_new
    }
}

/// A node's connection to the service of configurations. Its thread ends with it.
pub(crate) struct Reconfiguration {
    accusations: Sender<Option<u64>>,
    seen: Arc<Seen>,
}

impl Reconfiguration {
    /// Starts the thread of a node that knows of the configuration `newest`, and accuses `accused`.
    pub(crate) fn start(
        etcd: Etcd,
        poll: Duration,
        (group, newest): (Arc<Group>, Option<Made>),
        (node, key, accused): (u32, SigningKey, Option<u64>),
    ) -> Self {
        let (accusations, wanted) = channel();
        let seen = Arc::new(Seen { newest: Mutex::new(newest), ..Seen::default() });
        let (has_failed, refused) = (false, 0);
        let own = accused.map(|it| Accusation::sign(&group, node, it, &key));
        let worker =
            Worker { etcd, group, node, key, own, has_failed, refused, seen: seen.clone() };
        std::thread::spawn(move || worker.run(&wanted, poll));
        Self { accusations, seen }
    }

    /// Accuses a configuration as soon as etcd answers, or none any more.
    pub(crate) fn accuse(&self, number: Option<u64>) {
        // The thread ends after this.
        let _ = self.accusations.send(number);
    }

    /// The newest configuration that f + 1 nodes have made.
    pub(crate) fn newest(&self) -> Option<Made> {
        self.seen.newest().clone()
    }

    /// Hears of a configuration that the node has proved, from other nodes for example: if etcd has
    /// an older one, after its data was restored from a copy, the next look puts this one back.
    pub(crate) fn know(&self, made: Option<&Made>) {
        self.seen.learn(made);
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
    /// The accusation of this node, while it waits.
    own: Option<Accusation>,
    has_failed: bool,
    /// The revision of a configuration that was refused, for the log to have it once.
    refused: u64,
    seen: Arc<Seen>,
}

impl Worker {
    fn run(mut self, wanted: &Receiver<Option<u64>>, poll: Duration) {
        loop {
            let outcome = self.work();
            self.tell(outcome);
            match wanted.recv_timeout(poll) {
                Ok(number) => {
                    let number = wanted.try_iter().last().unwrap_or(number);
                    let sign = |it| Accusation::sign(&self.group, self.node, it, &self.key);
                    self.own = number.map(sign);
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
        self.seen.learn(proven.as_ref());
        let (mut found, written) = self.read_accusations()?;
        found.extend(self.own);
        // All that is proved is known, even if etcd takes nothing: writing only tells others.
        let is_new = self.seen.learn(Made::of(&self.group, &found).as_ref());
        self.write_own(&written)?;
        let known = self.seen.newest().clone();
        // If another node was faster, the next look finds its configuration.
        if let Some(known) = known.filter(|it| it.number > in_etcd)
            && self.etcd.swap(CONFIGURATION, configuration.revision, &configuration_text(&known))?
        {
            self.seen.made.fetch_add(1, Ordering::Relaxed);
            tracing::info!(configuration = known.number, is_new, "written to etcd");
        }
        Ok(())
    }

    /// The accusations of others in etcd, whose signatures are not verified, and the key of this
    /// node's own.
    fn read_accusations(&mut self) -> Result<(Vec<Accusation>, Kept), EtcdError> {
        let (mut found, mut own) = (Vec::new(), Kept::default());
        for node in 0..self.group.replicas {
            match self.etcd.read(&accusation_name(node)) {
                Ok(kept) if node == self.node => own = kept,
                Ok(kept) => found.extend(read_accusation(node, &kept.value)),
                // A key that one member can write keeps no other from being read.
                Err(EtcdError::TooLong { .. } | EtcdError::Malformed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((found, own))
    }

    /// Writes the accusation of this node, if etcd has another or none. Withdraws the one that etcd
    /// has, if this node accuses no more.
    fn write_own(&mut self, written: &Kept) -> Result<(), EtcdError> {
        let name = accusation_name(self.node);
        match self.own {
            Some(own) if written.value != accusation_text(&own) => {
                self.etcd.write(&name, &accusation_text(&own))?;
                tracing::info!(configuration = own.number, "accused");
            }
            None if written.revision > 0 => {
                self.etcd.delete(&name)?;
                tracing::info!("the accusation is withdrawn");
            }
            _ => {}
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::chain::entry::tests::{group, key};
    use crate::chain::fake_etcd::answer;
    use data_encoding::BASE64;

    const NONE: (&str, &str) = ("200 OK", r#"{"responses":[{"response_range":{}}]}"#);

    /// Node 0 at an etcd.
    fn worker(etcd: Etcd, accused: Option<u64>) -> Worker {
        let (group, seen) = (Arc::new(group()), Arc::default());
        let own = accused.map(|it| Accusation::sign(&group, 0, it, &key(0)));
        Worker { etcd, group, node: 0, key: key(0), own, has_failed: false, refused: 0, seen }
    }

    /// The answer of etcd about a key with the accusation of configuration 0 by a node.
    fn accused_by(node: u32) -> String {
        let value = accusation_text(&Accusation::sign(&group(), node, 0, &key(node)));
        let kvs = format!(r#"[{{"mod_revision":"3","value":"{}"}}]"#, BASE64.encode(&value));
        format!(r#"{{"responses":[{{"response_range":{{"kvs":{kvs}}}}}]}}"#)
    }

    #[test]
    fn a_configuration_that_is_made_is_known_though_etcd_takes_no_writes() {
        let by_other = accused_by(1);
        let (etcd, asked) =
            answer(&[NONE, NONE, ("200 OK", by_other.as_str()), NONE, ("500 Full", "no space")]);
        let mut worker = worker(etcd, Some(0));
        assert!(worker.work().is_err());
        assert_eq!(number_of(worker.seen.newest().as_ref()), 1);
        assert!(asked.join().unwrap()[4].contains("requestPut"));
    }

    fn made(number: u64) -> Made {
        let by = [0, 1].map(|it| Accusation::sign(&group(), it, number - 1, &key(it)));
        Made { number, accusations: by.to_vec() }
    }

    // Etcd was restored from a copy, and the others have told the node of what came after it.
    #[test]
    fn a_configuration_that_other_nodes_have_told_of_is_put_back_into_etcd() {
        let value = BASE64.encode(&configuration_text(&made(3)));
        let kvs = format!(r#"[{{"mod_revision":"8","value":"{value}"}}]"#);
        let old = format!(r#"{{"responses":[{{"response_range":{{"kvs":{kvs}}}}}]}}"#);
        let answers = [("200 OK", old.as_str()), NONE, NONE, NONE];
        let written = ("200 OK", r#"{"succeeded":true}"#);
        let (etcd, asked) = answer(&[&answers[..], &[written]].concat());
        let mut worker = worker(etcd, None);
        let (accusations, _) = channel();
        let service = Reconfiguration { accusations, seen: worker.seen.clone() };
        service.know(Some(&made(5)));
        service.know(Some(&made(4)));
        service.know(None);
        worker.work().unwrap();
        let asked = asked.join().unwrap();
        let put = format!(r#""value":"{}""#, BASE64.encode(&configuration_text(&made(5))));
        assert!(asked[4].contains(r#""modRevision":"8""#) && asked[4].contains(&put), "{asked:?}");
        assert_eq!(number_of(service.newest().as_ref()), 5);
        assert_eq!(service.seen().made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_node_that_accuses_no_more_withdraws_what_etcd_has_of_it() {
        let own = accused_by(0);
        let (etcd, asked) = answer(&[NONE, ("200 OK", own.as_str()), NONE, NONE, ("200 OK", "{}")]);
        worker(etcd, None).work().unwrap();
        assert!(asked.join().unwrap()[4].contains("requestDeleteRange"));
    }
}
