// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The executed part of the log: service, table of clients, checkpoints.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::{
    Attested, ClientTable, Digest, Refusal, RefusalPlace, Request, Service, Standing,
};

use crate::message::{Batch, Checkpoint, decode, digest, encode};

/// The executed requests of all clients, with their answers.
type Table = ClientTable<Vec<u8>>;

/// The hash of a log that is one batch longer.
pub(crate) fn extend(chain: &Digest, batch: &Batch) -> Digest {
    let digests: Vec<Digest> = batch.iter().map(Request::digest).collect();
    digest("chain", &[chain, digests.concat().as_slice()])
}

/// States at checkpoints, by place.
type Snapshots = BTreeMap<u64, (Checkpoint, Vec<u8>)>;
/// CHECKPOINTs by place and device.
type Votes = BTreeMap<u64, BTreeMap<u32, (Checkpoint, Attested)>>;

/// The executed part of the log for a snapshot.
#[derive(Deserialize, Serialize)]
pub(crate) struct WrittenLedger<'a> {
    service: Vec<u8>,
    table: Cow<'a, Table>,
    executed: u64,
    chain: Digest,
    snapshots: Cow<'a, Snapshots>,
    votes: Cow<'a, Votes>,
    stable: u64,
    proof: Cow<'a, [Attested]>,
}

/// The executed part of the log.
#[derive(Debug)]
pub(crate) struct Ledger<S> {
    service: S,
    /// Exactly-once. The operator has formed the list of clients, so it is bounded.
    table: Table,
    pub(crate) executed: u64,
    pub(crate) chain: Digest,
    /// States at checkpoints that are not older than the stable one.
    snapshots: Snapshots,
    votes: Votes,
    /// The place up to which f + 1 have executed, and their CHECKPOINTs.
    pub(crate) stable: u64,
    proof: Vec<Attested>,
}

impl<S: Service> Ledger<S> {
    pub(crate) fn new(service: S) -> Self {
        let mut ledger = Self {
            service,
            table: Table::default(),
            executed: 0,
            chain: [0; 32],
            snapshots: BTreeMap::new(),
            votes: BTreeMap::new(),
            stable: 0,
            proof: Vec::new(),
        };
        ledger.take_snapshot();
        ledger
    }

    pub(crate) fn written(&self) -> WrittenLedger<'_> {
        WrittenLedger {
            service: self.service.snapshot(),
            table: Cow::Borrowed(&self.table),
            executed: self.executed,
            chain: self.chain,
            snapshots: Cow::Borrowed(&self.snapshots),
            votes: Cow::Borrowed(&self.votes),
            stable: self.stable,
            proof: Cow::Borrowed(&self.proof),
        }
    }

    /// Takes over all that was written. False if the service does not know its state.
    pub(crate) fn restore(&mut self, written: WrittenLedger<'_>) -> bool {
        let is_state = self.service.restore(&written.service);
        if is_state {
            self.table = written.table.into_owned();
            self.executed = written.executed;
            self.chain = written.chain;
            self.snapshots = written.snapshots.into_owned();
            self.votes = written.votes.into_owned();
            self.stable = written.stable;
            self.proof = written.proof.into_owned();
        }
        is_state
    }

    /// Executes the next batch, each request once, and returns those that were new, with their
    /// answers.
    pub(crate) fn execute(&mut self, batch: &Batch) -> Vec<(Request, Vec<u8>)> {
        self.executed += 1;
        self.chain = extend(&self.chain, batch);
        let mut fresh = Vec::new();
        for request in batch.iter() {
            if !self.is_new(request) {
                continue;
            }
            let answer = match request.begins_session() {
                true => Vec::new(),
                false => self.service.execute(&request.operation),
            };
            self.table.note(request, answer.clone(), answer.len());
            fresh.push((request.clone(), answer));
        }
        fresh
    }

    /// Whether a request was not executed, and may be.
    pub(crate) fn is_new(&self, request: &Request) -> bool {
        self.table.is_new(request)
    }

    /// The word on a request.
    pub(crate) fn standing(&self, request: &Request) -> Standing<'_, Vec<u8>> {
        self.table.standing(request)
    }

    /// The place for the refusal of a request among the questions of its client.
    pub(crate) fn refusal_place(&self, request: &Request, refusal: &Refusal) -> RefusalPlace {
        self.table.refusal_place(request, refusal)
    }

    /// The hash of the state as it is now.
    #[cfg(feature = "sim")]
    pub(crate) fn state(&self) -> Digest {
        state_digest(&encode(&(self.service.snapshot(), &self.table)))
    }

    /// Keeps the state as it is now, and returns its checkpoint.
    pub(crate) fn take_snapshot(&mut self) -> Checkpoint {
        let bytes = encode(&(self.service.snapshot(), &self.table));
        let state = digest("state", &[&bytes]);
        let checkpoint = Checkpoint { sequence: self.executed, chain: self.chain, state };
        self.snapshots.insert(self.executed, (checkpoint, bytes));
        if self.executed == self.stable {
            self.snapshots = self.snapshots.split_off(&self.stable);
        }
        checkpoint
    }

    /// Counts a CHECKPOINT. True when the stable place has moved.
    pub(crate) fn vote(
        &mut self,
        device: u32,
        vote: (Checkpoint, Attested),
        quorum: usize,
    ) -> bool {
        let checkpoint = vote.0;
        if checkpoint.sequence <= self.stable {
            return false;
        }
        let votes = self.votes.entry(checkpoint.sequence).or_default();
        votes.insert(device, vote);
        let equal: Vec<_> = votes.values().filter(|it| it.0 == checkpoint).collect();
        if equal.len() < quorum {
            return false;
        }
        let proof = equal.iter().take(quorum).map(|it| it.1.clone()).collect();
        self.settle(checkpoint, proof);
        true
    }

    /// A checkpoint is stable, as f + 1 CHECKPOINTs prove. An earlier one than the last is not.
    pub(crate) fn settle(&mut self, checkpoint: Checkpoint, proof: Vec<Attested>) {
        if checkpoint.sequence <= self.stable {
            return;
        }
        self.proof = proof;
        self.stable = checkpoint.sequence;
        self.votes = self.votes.split_off(&(self.stable + 1));
        // A replica that lags keeps its older state, since it does not have the stable one.
        if self.snapshots.contains_key(&self.stable) {
            self.snapshots = self.snapshots.split_off(&self.stable);
        }
    }

    /// The first checkpoint after a place that was executed here, and is not older than the stable
    /// one.
    pub(crate) fn checkpoint_after(&self, place: u64) -> Option<Checkpoint> {
        self.snapshots.range(place.max(self.stable) + 1..).next().map(|it| it.1.0)
    }

    /// CHECKPOINTs after the stable one.
    pub(crate) fn votes(&self) -> impl Iterator<Item = &Attested> {
        self.votes.values().flat_map(|it| it.values().map(|it| &it.1))
    }

    /// The stable checkpoint with its proof, if this replica has its state.
    pub(crate) fn stable_state(&self) -> Option<(Checkpoint, &[Attested], &[u8])> {
        let (checkpoint, bytes) = self.snapshots.get(&self.stable)?;
        Some((*checkpoint, &self.proof, bytes))
    }

    /// Takes the state of a checkpoint that f + 1 have proved. False if the bytes are no state.
    pub(crate) fn install(&mut self, to: Checkpoint, proof: Vec<Attested>, bytes: &[u8]) -> bool {
        let Some((service, table)) = decode::<(Vec<u8>, Table)>(bytes) else {
            return false;
        };
        if !self.service.restore(&service) {
            return false;
        }
        self.table = table;
        self.executed = to.sequence;
        self.chain = to.chain;
        self.stable = to.sequence;
        self.proof = proof;
        self.votes = self.votes.split_off(&(self.stable + 1));
        self.snapshots = BTreeMap::from([(to.sequence, (to, bytes.to_vec()))]);
        true
    }
}

/// The hash of a snapshot's bytes, which a checkpoint states.
pub(crate) fn state_digest(bytes: &[u8]) -> Digest {
    digest("state", &[bytes])
}
