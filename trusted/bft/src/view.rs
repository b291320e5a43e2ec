// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A view: its configuration and its log.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::{Attested, Digest};

use crate::ledger::extend;
use crate::message::{Batch, Opening};
use crate::snapshot::Batches;

/// A view that was opened. Its log is what all members take from the streams that its NEW-VIEW
/// refers to, and from its leader's PREPAREs.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) opening: Opening,
    pub(crate) digest: Digest,
    /// The hash of the log up to each place, and the batch there; without what is stable.
    log: BTreeMap<u64, (Digest, Batch)>,
    end: u64,
    end_chain: Digest,
    /// A place before the log whose hash is known: the checkpoint of a state that was taken.
    checkpoint: (u64, Digest),
    /// The ENTERs of members, for replicas that restart.
    pub(crate) enters: BTreeMap<u32, Attested>,
}

/// A view for a snapshot. Its batches are numbers in that of all views.
#[derive(Deserialize, Serialize)]
pub(crate) struct WrittenView<'a> {
    opening: Cow<'a, Opening>,
    digest: Digest,
    log: Vec<(u64, Digest, u32)>,
    end: u64,
    end_chain: Digest,
    checkpoint: (u64, Digest),
    enters: Cow<'a, BTreeMap<u32, Attested>>,
}

impl WrittenView<'_> {
    /// The view; nothing if there is no such batch.
    pub(crate) fn read(self, batches: &[Batch]) -> Option<View> {
        let Self { opening, digest, log, end, end_chain, checkpoint, enters } = self;
        let log = log.into_iter().map(|(place, chain, number)| {
            Some((place, (chain, batches.get(number as usize)?.clone())))
        });
        let (opening, enters) = (opening.into_owned(), enters.into_owned());
        let log = log.collect::<Option<_>>()?;
        Some(View { opening, digest, log, end, end_chain, checkpoint, enters })
    }
}

impl View {
    pub(crate) fn written(&self, batches: &mut Batches) -> WrittenView<'_> {
        let log =
            self.log.iter().map(|(place, (chain, batch))| (*place, *chain, batches.number(batch)));
        WrittenView {
            log: log.collect(),
            opening: Cow::Borrowed(&self.opening),
            digest: self.digest,
            end: self.end,
            end_chain: self.end_chain,
            checkpoint: self.checkpoint,
            enters: Cow::Borrowed(&self.enters),
        }
    }

    /// A view that begins with `log`, which ends at the opening's start.
    pub(crate) fn new(opening: Opening, log: BTreeMap<u64, (Digest, Batch)>) -> Self {
        let digest = opening.digest();
        let (end, end_chain) = (opening.start, opening.chain);
        let (checkpoint, enters) = ((end, end_chain), BTreeMap::new());
        Self { opening, digest, log, end, end_chain, checkpoint, enters }
    }

    /// View 0, which all members have entered from the start.
    pub(crate) fn first(epochs: Vec<u64>) -> Self {
        let opening = Opening { view: 0, epochs, start: 0, chain: [0; 32], votes: Vec::new() };
        Self::new(opening, BTreeMap::new())
    }

    /// A view as a state has it: its log from a checkpoint on, and the place and the hash to which
    /// its leader has come. A checkpoint beyond that place may be of another view's log, which has
    /// other batches there.
    pub(crate) fn from_state(
        opening: Opening,
        checkpoint: (u64, Digest),
        log: BTreeMap<u64, (Digest, Batch)>,
        (end, end_chain): (u64, Digest),
    ) -> Self {
        let view = Self::new(opening, log);
        let checkpoint = if checkpoint.0 <= end { checkpoint } else { view.checkpoint };
        Self { end, end_chain, checkpoint, ..view }
    }

    /// The hash of the whole log.
    pub(crate) fn end_chain(&self) -> Digest {
        self.end_chain
    }

    /// The last place of the log.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The epoch of a device in this view.
    pub(crate) fn epoch(&self, device: u32) -> Option<u64> {
        self.opening.epochs.get(device as usize).copied()
    }

    /// Appends the leader's next batch.
    pub(crate) fn append(&mut self, batch: Batch) {
        self.end += 1;
        self.end_chain = extend(&self.end_chain, &batch);
        self.log.insert(self.end, (self.end_chain, batch));
    }

    /// The batch at a place; nothing if it is stable and forgotten, or after the end.
    pub(crate) fn batch(&self, sequence: u64) -> Option<&Batch> {
        self.log.get(&sequence).map(|entry| &entry.1)
    }

    /// The hash of the log up to `sequence`, if it is kept.
    pub(crate) fn chain(&self, sequence: u64) -> Option<Digest> {
        if sequence == self.end {
            return Some(self.end_chain);
        }
        if sequence == self.opening.start {
            return Some(self.opening.chain);
        }
        if sequence == self.checkpoint.0 {
            return Some(self.checkpoint.1);
        }
        self.log.get(&sequence).map(|entry| entry.0)
    }

    /// A copy of the log up to `sequence`. Batches are shared.
    pub(crate) fn prefix(&self, sequence: u64) -> BTreeMap<u64, (Digest, Batch)> {
        self.log.range(..=sequence).map(|(place, entry)| (*place, entry.clone())).collect()
    }

    /// Forgets all before `sequence`.
    pub(crate) fn forget(&mut self, sequence: u64) {
        self.log = self.log.split_off(&sequence);
    }
}
