// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of a node as bytes, but for its keys and what the group's configuration says.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::{AttestorError, AttestorSnapshot};
use smt_bft::Service;

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::late::Accused;
use crate::log::{Entry, Log, WrittenLog};
use crate::message::{decode, encode};
use crate::node::{Metrics, Node, Pending};
use crate::track::Stream;

#[derive(Deserialize, Serialize)]
struct Snapshot {
    device: AttestorSnapshot,
    streams: Vec<Stream>,
    configurations: BTreeMap<u64, Configuration>,
    made: Option<Made>,
    /// The entries of all logs, each once: a log begins with those of an earlier one.
    entries: Vec<Arc<Entry>>,
    logs: BTreeMap<u64, WrittenLog>,
    pending: BTreeMap<u32, Pending>,
    committed: (u64, u64),
    replied: u64,
    waited: u32,
    accused: Option<Accused>,
    metrics: Metrics,
}

impl<S: Service + Clone> Node<S> {
    /// The node as bytes, between two inputs.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let (mut entries, mut places) = (Vec::new(), BTreeMap::new());
        let mut number = |entry: &Arc<Entry>| {
            *places.entry(Arc::as_ptr(entry).addr()).or_insert_with(|| {
                entries.push(entry.clone());
                entries.len() as u32 - 1
            })
        };
        let logs = self.logs.iter().map(|it| (*it.0, it.1.written(&mut number))).collect();
        encode(&Snapshot {
            device: self.device.snapshot(),
            streams: self.streams.clone(),
            configurations: self.configurations.clone(),
            made: self.made.clone(),
            logs,
            entries,
            pending: self.pending.clone(),
            committed: self.committed,
            replied: self.replied,
            waited: self.waited,
            accused: self.accused,
            metrics: self.metrics,
        })
    }

    /// Takes over all that a snapshot has, and goes on behind the statements that the device has
    /// attested before. False if it is none of this node.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<bool, AttestorError> {
        let Some(snapshot) = decode::<Snapshot>(bytes) else {
            return Ok(false);
        };
        let (entries, empty) = (&snapshot.entries, &self.empty);
        let logs = snapshot.logs.into_iter();
        let logs = logs.map(|(number, it)| Some((number, Log::read(it, entries, empty)?)));
        let Some(logs) = logs.collect::<Option<_>>() else {
            return Ok(false);
        };
        if snapshot.streams.len() != self.streams.len() {
            return Ok(false);
        }
        self.device.restore(snapshot.device)?;
        self.logs = logs;
        self.streams = snapshot.streams;
        self.configurations = snapshot.configurations;
        self.made = snapshot.made;
        self.pending = snapshot.pending;
        self.committed = snapshot.committed;
        self.replied = snapshot.replied;
        self.waited = snapshot.waited;
        self.accused = snapshot.accused;
        self.metrics = snapshot.metrics;
        Ok(true)
    }
}
