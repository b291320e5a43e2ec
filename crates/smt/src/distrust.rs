// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live sessions of peers that would not be accepted any more, since the trust was replaced.
//!
//! 1. Certificates, authorities, pins or revocation lists are replaced in an endpoint's
//!    credentials, which all its shards share.
//! 2. Each shard's peers are judged by the new trust, without the shard's lock: a verification
//!    takes a while. For a minute newcomers are judged as well: their handshakes may have begun
//!    before.
//! 3. A session whose peer is refused ends as [`Distrusted`] says.

use std::sync::{Arc, Weak};

use smt_handshake::PeerJudge;

use crate::sync::{Mutex, PoisonError};

/// The end of live sessions whose peers would not be accepted any more, when an endpoint's trust
/// in them is replaced: revocation lists, authorities or pins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Distrusted {
    /// They end at once: calls in progress fail.
    #[default]
    End,
    /// They end when no call is in progress. Nothing more begins in them: requests that come are
    /// refused, and did not run. An endless call keeps its session, unless its handler ends it
    /// ([`Request::closing`](crate::Request)).
    Finish,
    /// They go on until they end for another reason.
    Keep,
}

/// An open endpoint, whose peers can be judged again.
pub(crate) trait HasPeers: Send + Sync {
    /// Ends the sessions of peers that this judge refuses, as the endpoint's choice says.
    fn judge_peers(&self, judge: &Arc<PeerJudge>);
}

/// The open endpoints that share credentials.
#[derive(Default)]
pub(crate) struct Sharers(Mutex<Vec<Weak<dyn HasPeers>>>);

impl Sharers {
    /// Takes an endpoint in that was opened.
    pub(crate) fn add(&self, endpoint: Weak<dyn HasPeers>) {
        let mut sharers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sharers.retain(|known| known.strong_count() > 0);
        sharers.push(endpoint);
    }

    /// Judges the peers of all sessions by the trust of today.
    pub(crate) fn judge(&self, judge: PeerJudge) {
        let judge = Arc::new(judge);
        let sharers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for endpoint in sharers.iter().filter_map(Weak::upgrade) {
            endpoint.judge_peers(&judge);
        }
    }
}
