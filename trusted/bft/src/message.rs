// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages as bytes, and the statements that devices attest.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_replica::{Attested, Digest, Options, REQUEST_WAY_MAX, Reply, Request};

use crate::stream_checkpoint::{STATED_MAX, StreamCheckpoint, StreamState};
pub(crate) use smt_replica::{decode, encode};

/// The name of this system in hashes and logs.
pub(crate) const SYSTEM: &str = "bft";

/// Requests that are ordered together.
pub type Batch = Arc<Vec<Request>>;

/// Bytes of the requests of a batch at most, beside one that is longer by itself: devices take
/// statements of 256 KiB.
const BATCH_BYTES_MAX: usize = 128 << 10;

/// Whether a batch of requests with operations of these lengths fits a statement.
pub(crate) fn fits_statement(operations: impl Iterator<Item = usize>) -> bool {
    let (count, bytes) =
        operations.fold((0, 0), |(count, bytes), it| (count + 1, bytes + it + REQUEST_REST));
    count == 1 || bytes <= BATCH_BYTES_MAX
}

/// Bytes of a request beside its operation, at most.
const REQUEST_REST: usize = 110 + 32 * REQUEST_WAY_MAX;

/// Bytes of a statement at most. One that orders no requests is far below the rest.
pub(crate) fn statement_bytes_max(options: &Options) -> usize {
    let operations = options.operation.max(BATCH_BYTES_MAX);
    let rest = STATED_MAX * 64;
    operations.saturating_add(options.batch.saturating_mul(REQUEST_REST)).saturating_add(rest)
}

/// A statement in a replica's attested stream. Each receiver takes each stream without a gap, so
/// the statements before a given one are the same for all.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Statement {
    /// The first statement of a device that has restarted: the nonce of its start.
    Hello {
        /// The nonce.
        nonce: [u8; 16],
    },
    /// The leader orders a batch. It is the leader's own COMMIT too.
    Prepare {
        /// The view.
        view: u64,
        /// The batch's place in the log.
        sequence: u64,
        /// The requests.
        batch: Batch,
    },
    /// The sender has the view's log up to this place.
    Commit {
        /// The view.
        view: u64,
        /// The last place.
        sequence: u64,
    },
    /// The sender has executed the log up to this place.
    Checkpoint(Checkpoint),
    /// The sender says nothing more in lower views.
    ViewChange {
        /// The view that it wants.
        view: u64,
    },
    /// The leader opens a view, on f + 1 VIEW-CHANGEs.
    NewView {
        /// The view.
        view: u64,
        /// The VIEW-CHANGEs, in ascending order of their devices.
        votes: Vec<Reference>,
    },
    /// The sender enters a view: COMMIT of all that the view begins with.
    Enter {
        /// The view.
        view: u64,
        /// The hash of how the view begins.
        opening: Digest,
    },
    /// Where the sender has streams of others, and its own, at their checkpoints. It lists 64 at
    /// most.
    Streams(Vec<StreamCheckpoint>),
}

/// The state at one place of the log.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Checkpoint {
    /// The last place that was executed.
    pub sequence: u64,
    /// The hash of the log up to there.
    pub chain: Digest,
    /// The hash of service and table of clients.
    pub state: Digest,
}

/// A VIEW-CHANGE in its sender's stream.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Reference {
    /// The sender.
    pub device: u32,
    /// Its epoch.
    pub epoch: u64,
    /// The counter of the VIEW-CHANGE.
    pub counter: u64,
    /// The MAC of its attestation. A leader cannot guess it, so the reference is younger.
    pub mac: [u8; 32],
}

/// How far a replica has come with each stream, which asks the others for what is missing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Status {
    /// The replica that asks.
    pub from: u32,
    /// Device, epoch and the counter up to which all is there.
    pub positions: Vec<(u32, u64, u64)>,
    /// Whether it asks for the state, since it has restarted or cannot follow.
    pub wants_state: bool,
}

/// A checkpoint and a view for a replica that has restarted or cannot follow.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct State {
    /// f + 1 attested CHECKPOINTs; none for the state in which the group was formed.
    pub proof: Vec<Attested>,
    /// Attested CHECKPOINTs for later places, which one that does not follow all streams from their
    /// beginnings may have missed.
    pub checkpoints: Vec<Attested>,
    /// Service and table of clients.
    pub snapshot: Vec<u8>,
    /// The log from the checkpoint to the view's start, or to where the view's leader stands in
    /// `streams`.
    pub log: Vec<Batch>,
    /// How the view begins.
    pub opening: Opening,
    /// f + 1 attested ENTERs; fewer where one of `streams` stands in the view, and for the view in
    /// which the group was formed. One of f + 1 is a correct replica's: the view begins like this.
    /// They do not prove that its log is committed.
    pub enters: Vec<Attested>,
    /// Where streams stand at their stable checkpoints.
    pub streams: Vec<StreamState>,
}

/// How a view begins: what follows from its NEW-VIEW and the streams that it refers to.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Opening {
    /// The view.
    pub view: u64,
    /// The epoch of each device in this view.
    pub epochs: Vec<u64>,
    /// The length of the log with which the view begins.
    pub start: u64,
    /// The hash of that log.
    pub chain: Digest,
    /// The VIEW-CHANGEs.
    pub votes: Vec<Reference>,
}

impl Opening {
    /// The hash that an ENTER states.
    pub(crate) fn digest(&self) -> Digest {
        digest("opening", &[&encode(self)])
    }
}

/// A message between replicas and clients. Identities of channels play no part: all that matters is
/// signed or attested.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Message {
    /// A client's request.
    Request(Request),
    /// A replica's reply.
    Reply(Reply),
    /// A statement, of the replica that sends it or forwarded.
    Statement(Attested),
    /// A question for what is missing.
    Status(Status),
    /// Its answer to a replica that asks for the state.
    State(Box<State>),
}

impl Message {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Message::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }
}

/// The hash of `parts` under a domain of this system.
pub(crate) fn digest(domain: &str, parts: &[&[u8]]) -> Digest {
    smt_replica::digest(SYSTEM, domain, parts)
}
