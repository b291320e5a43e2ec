// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of a replica as bytes, but for its keys and what the group's configuration says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::{AttestorError, AttestorSnapshot, WrittenBallot};
use smt_replica::{PendingRequests, Service};

use crate::ledger::WrittenLedger;
use crate::message::{Batch, decode, encode};
use crate::replica::{Metrics, Replica};
use crate::track::Stream;
use crate::view::WrittenView;

/// Ballots for each device, by voter and the member that they state.
type Ballots<B> = BTreeMap<u32, BTreeMap<(u32, u32), B>>;

/// A replica that is written is borrowed: it may be as large as the memory that is left.
#[derive(Deserialize, Serialize)]
struct Snapshot<'a> {
    device: AttestorSnapshot,
    streams: Cow<'a, BTreeMap<(u32, u64), Stream>>,
    batches: Vec<Batch>,
    views: BTreeMap<u64, WrittenView<'a>>,
    ledger: WrittenLedger<'a>,
    pending: Cow<'a, PendingRequests>,
    ballots: Ballots<WrittenBallot>,
    attempts: u32,
    waited: u32,
    decided: (u64, u64),
    skipped_to: u64,
    unvoted: Cow<'a, BTreeMap<u32, u64>>,
    voted: Cow<'a, BTreeMap<u32, u32>>,
    metrics: Metrics,
}

/// The batches of several views, each once: a view begins with the log of an earlier one.
#[derive(Default)]
pub(crate) struct Batches {
    all: Vec<Batch>,
    /// The place of each, by its address.
    places: BTreeMap<usize, u32>,
}

impl Batches {
    /// The number of a batch.
    pub(crate) fn number(&mut self, batch: &Batch) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.places.entry(Arc::as_ptr(batch).addr()).or_insert(next);
        if number == next {
            self.all.push(batch.clone());
        }
        number
    }
}

impl<S: Service> Replica<S> {
    /// The replica as bytes, between two inputs.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let mut batches = Batches::default();
        let views = self.views.iter().map(|it| (*it.0, it.1.written(&mut batches))).collect();
        encode(&Snapshot {
            device: self.device.snapshot(),
            streams: Cow::Borrowed(&self.streams),
            views,
            batches: batches.all,
            ledger: self.ledger.written(),
            pending: Cow::Borrowed(&self.pending),
            ballots: converted(&self.ballots, |it| it.into()),
            attempts: self.attempts,
            waited: self.waited,
            decided: self.decided,
            skipped_to: self.skipped_to,
            unvoted: Cow::Borrowed(&self.unvoted),
            voted: Cow::Borrowed(&self.voted),
            metrics: self.metrics,
        })
    }

    /// Takes over all that a snapshot has, and goes on behind the statements that the device has
    /// attested before. False if it is none of this replica.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<bool, AttestorError> {
        let Some(snapshot) = decode::<Snapshot<'_>>(bytes) else {
            return Ok(false);
        };
        let views = snapshot.views.into_iter();
        let views = views.map(|(number, it)| Some((number, it.read(&snapshot.batches)?)));
        let own = self.own_key();
        let Some(views) = views.collect::<Option<_>>() else {
            return Ok(false);
        };
        if !snapshot.streams.contains_key(&own) || !self.ledger.restore(snapshot.ledger) {
            return Ok(false);
        }
        self.device.restore(snapshot.device)?;
        self.views = views;
        self.streams = snapshot.streams.into_owned();
        self.pending = snapshot.pending.into_owned();
        self.ballots = converted(&snapshot.ballots, |it| it.into());
        self.attempts = snapshot.attempts;
        self.waited = snapshot.waited;
        self.decided = snapshot.decided;
        self.skipped_to = snapshot.skipped_to;
        self.unvoted = snapshot.unvoted.into_owned();
        self.voted = snapshot.voted.into_owned();
        self.metrics = snapshot.metrics;
        Ok(true)
    }
}

fn converted<A, B>(ballots: &Ballots<A>, convert: impl Fn(&A) -> B) -> Ballots<B> {
    let of_device = |it: &BTreeMap<_, A>| it.iter().map(|it| (*it.0, convert(it.1))).collect();
    ballots.iter().map(|it| (*it.0, of_device(it.1))).collect()
}
