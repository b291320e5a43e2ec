// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client: it signs requests, and accepts what f + 1 nodes say alike of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use ed25519_dalek::SigningKey;

use crate::client_table::{IN_PROGRESS_MAX, Refusal, first_number, is_last_of_session};
use crate::digest::Digest;
use crate::group::Group;
use crate::reply::Reply;
use crate::request::Request;
use crate::signed_together::{KnownRoots, Proof};

/// A request that a client wants sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ask {
    /// To the leader of the view in which the nodes are.
    Leader(Request),
    /// To all nodes, which then watch the leader.
    All(Request),
}

/// The end of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Completion {
    /// The request's number.
    pub number: u64,
    /// The answer of the service, or why the request is not executed.
    pub result: Result<Vec<u8>, Refusal>,
}

/// A client with one session and up to [`IN_PROGRESS_MAX`] requests in progress.
pub struct Client {
    group: Arc<Group>,
    client: u32,
    key: SigningKey,
    last: u64,
    in_progress: BTreeMap<u64, Call>,
    /// The view of each node, as its replies say.
    views: BTreeMap<u32, u64>,
    /// Requests that are not signed yet.
    unsigned: Vec<u64>,
    /// Requests that take too long.
    repeated: Vec<u64>,
    known: KnownRoots,
}

/// A request in progress.
struct Call {
    request: Request,
    digest: Digest,
    said: BTreeMap<u32, Result<Vec<u8>, Refusal>>,
    waited: u32,
}

impl Call {
    /// The word that f + 1 nodes give alike, with the earliest of the newest sessions in it.
    fn result(&self, quorum: usize) -> Option<Result<Vec<u8>, Refusal>> {
        let said = self.said.values().map(without_newest);
        let of_quorum = said.clone().find(|it| {
            let equal = said.clone().filter(|other| it == other);
            equal.count() >= quorum
        })?;
        let equal = self.said.values().filter(|it| without_newest(it) == of_quorum);
        equal.min().cloned()
    }
}

fn without_newest(said: &Result<Vec<u8>, Refusal>) -> Result<&Vec<u8>, Refusal> {
    said.as_ref().map_err(|refusal| Refusal { newest: 0, ..*refusal })
}

impl Client {
    /// A client whose earlier requests had numbers up to `last`.
    #[must_use]
    pub fn new(group: Arc<Group>, client: u32, key: SigningKey, last: u64) -> Self {
        Self {
            group,
            client,
            key,
            last,
            in_progress: BTreeMap::new(),
            views: BTreeMap::new(),
            unsigned: Vec::new(),
            repeated: Vec::new(),
            known: KnownRoots::default(),
        }
    }

    /// Leaves all requests, and begins a session with a request that executes nothing. It should be
    /// later than all sessions of the client: of others that are open it may be one, and those that
    /// are over are refused.
    pub fn begin_session(&mut self, nonce: [u8; 16], session: u64) -> u64 {
        self.in_progress.clear();
        self.send(first_number(session), nonce, Vec::new())
    }

    /// Begins a request, with random bytes as its nonce, and returns its number. Nothing if
    /// [`IN_PROGRESS_MAX`] are in progress, or so many were begun after one that is, or the session
    /// has had its last number ([`is_last_of_session`]).
    pub fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.has_room().then(|| self.send(self.last + 1, nonce, operation))
    }

    /// Whether one more request may be begun.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let oldest = self.in_progress.first_key_value();
        !is_last_of_session(self.last)
            && oldest.is_none_or(|it| self.last - it.0 + 1 < IN_PROGRESS_MAX)
    }

    fn send(&mut self, number: u64, nonce: [u8; 16], operation: Vec<u8>) -> u64 {
        self.last = number;
        let (client, proof) = (self.client, Proof::default());
        let request = Request { client, number, nonce, operation, proof };
        self.unsigned.push(number);
        let digest = request.digest();
        let call = Call { request, digest, said: BTreeMap::new(), waited: 0 };
        self.in_progress.insert(number, call);
        number
    }

    /// Leaves a request, which may be executed all the same.
    pub fn give_up(&mut self, number: u64) {
        self.in_progress.remove(&number);
    }

    /// Accepts a reply, and returns the end of a request when f + 1 nodes have said the same of it.
    pub fn receive(&mut self, reply: Reply) -> Option<Completion> {
        let number = reply.number;
        let call = self.in_progress.get(&number).filter(|it| it.digest == reply.request)?;
        // A signature costs most, and late or repeated answers have none to verify.
        if call.said.get(&reply.replica) == Some(&reply.result) || !self.is_genuine(&reply) {
            return None;
        }
        let view = self.views.entry(reply.replica).or_default();
        *view = reply.view.max(*view);
        let call = self.in_progress.get_mut(&number)?;
        call.said.insert(reply.replica, reply.result);
        let result = call.result(self.group.quorum())?;
        self.in_progress.remove(&number);
        Some(Completion { number, result })
    }

    fn is_genuine(&self, reply: &Reply) -> bool {
        let key = self.group.reply_keys.get(reply.replica as usize);
        reply.client == self.client && key.is_some_and(|key| reply.is_signed_by(key, &self.known))
    }

    /// Time passes. A request that takes too long is sent to all nodes.
    pub fn tick(&mut self) {
        let timeout = (self.group.options.timeout / 2).max(1);
        for (number, call) in &mut self.in_progress {
            call.waited = call.waited.saturating_add(1);
            if call.waited.is_multiple_of(timeout) {
                self.repeated.push(*number);
            }
        }
    }

    /// Whether a request waits for its end.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.in_progress.is_empty()
    }

    /// The latest view that f + 1 nodes are in or beyond: liars alone do not move it.
    #[must_use]
    pub fn view(&self) -> u64 {
        let mut views: Vec<u64> = self.views.values().copied().collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        views.get(self.group.faults()).copied().unwrap_or(0)
    }

    /// All that is to be sent, in order. Requests that were begun since the last time are signed
    /// together, as many as go into a batch of the group.
    pub fn asks(&mut self) -> Vec<Ask> {
        let mut asks = Vec::new();
        let unsigned = std::mem::take(&mut self.unsigned);
        for numbers in unsigned.chunks(self.group.options.batch.max(1)) {
            let begun = self.in_progress.iter_mut().filter(|it| numbers.contains(it.0));
            let mut requests: Vec<_> = begun.map(|it| &mut it.1.request).collect();
            Request::sign_all(&mut requests, &self.key);
            asks.extend(requests.into_iter().map(|it| Ask::Leader(it.clone())));
        }
        let repeated = std::mem::take(&mut self.repeated);
        let calls = repeated.iter().filter_map(|number| self.in_progress.get(number));
        asks.extend(calls.map(|it| Ask::All(it.request.clone())));
        asks
    }
}

#[cfg(test)]
mod tests;
