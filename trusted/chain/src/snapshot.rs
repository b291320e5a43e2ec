// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of a node as bytes, but for its keys and what the group's configuration says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::{AttestorError, AttestorSnapshot};
use smt_replica::{PendingRequests, Service};

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::late::Accused;
use crate::log::{Entry, Log, WrittenLog};
use crate::message::{decode, encode};
use crate::node::{Metrics, Node};
use crate::shared::Shared;
use crate::state::{Base, WrittenBase};
use crate::track::Stream;

/// A node that is written is borrowed: it may be as large as the memory that is left.
#[derive(Deserialize, Serialize)]
struct Snapshot<'a> {
    device: AttestorSnapshot,
    streams: Cow<'a, [Stream]>,
    configurations: Cow<'a, BTreeMap<u64, Configuration>>,
    made: Option<Made>,
    /// The bases and the entries of all logs, each once: a log begins with those of an earlier one.
    bases: Vec<WrittenBase>,
    entries: Vec<Arc<Entry>>,
    logs: BTreeMap<u64, WrittenLog<'a>>,
    pending: Cow<'a, PendingRequests>,
    committed: (u64, u64),
    replied: u64,
    waited: u32,
    accused: Option<Accused>,
    metrics: Metrics,
}

impl<S: Service + Clone> Node<S> {
    /// The node as bytes, between two inputs.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let (mut bases, mut entries) = (Shared::new(), Shared::new());
        let logs = self.logs.iter();
        let logs = logs.map(|it| (*it.0, it.1.written(&mut bases, &mut entries))).collect();
        encode(&Snapshot {
            device: self.device.snapshot(),
            streams: Cow::Borrowed(&self.streams),
            configurations: Cow::Borrowed(&self.configurations),
            made: self.made.clone(),
            logs,
            bases: bases.into_all().iter().map(|it| it.written()).collect(),
            entries: entries.into_all(),
            pending: Cow::Borrowed(&self.pending),
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
        let Some(snapshot) = decode::<Snapshot<'_>>(bytes) else {
            return Ok(false);
        };
        let (entries, empty) = (&snapshot.entries, &self.empty);
        let bases = snapshot.bases.into_iter();
        let bases = bases.map(|it| Some(Arc::new(Base::read(it, empty)?)));
        let Some(bases) = bases.collect::<Option<Vec<_>>>() else {
            return Ok(false);
        };
        let logs = snapshot.logs.into_iter();
        let logs = logs.map(|(number, it)| Some((number, Log::read(it, &bases, entries)?)));
        let Some(logs) = logs.collect::<Option<_>>() else {
            return Ok(false);
        };
        if snapshot.streams.len() != self.streams.len() {
            return Ok(false);
        }
        self.device.restore(snapshot.device)?;
        self.logs = logs;
        let log = self.logs.get(&snapshot.committed.0);
        self.answered = log.map(|it| it.table_at(snapshot.replied)).unwrap_or_default();
        self.streams = snapshot.streams.into_owned();
        self.configurations = snapshot.configurations.into_owned();
        self.made = snapshot.made;
        self.pending = snapshot.pending.into_owned();
        self.committed = snapshot.committed;
        self.replied = snapshot.replied;
        self.waited = snapshot.waited;
        self.accused = snapshot.accused;
        self.metrics = snapshot.metrics;
        Ok(true)
    }
}
