// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clients of live sessions, judged again when the server's trust in them was replaced.
//!
//! 1. The identity of each client is kept while its session lives.
//! 2. After a change all of them are judged by the new trust. Those that are refused wait here
//!    until C is told of them.
//! 3. For a minute newcomers are judged as well: their handshakes may have begun before.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use smt_transport::polled::{HandshakeFailure, PeerIdentity, SessionIndex};

/// The clients of an endpoint.
#[derive(Default)]
pub(crate) struct Clients {
    live: BTreeMap<u64, PeerIdentity>,
    refused: VecDeque<Distrusted>,
    /// Until when newcomers are judged.
    newcomers_until: Option<Instant>,
}

/// A live session whose client would not be let in any more.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Distrusted {
    pub(crate) session: SessionIndex,
    pub(crate) why: String,
}

impl Clients {
    /// A session has begun.
    ///
    /// # Errors
    /// `judge` does not let its client in, by a trust that is newer than its handshake may be.
    pub(crate) fn begin(
        &mut self,
        session: SessionIndex,
        client: &PeerIdentity,
        judge: impl Fn(&PeerIdentity) -> Result<(), HandshakeFailure>,
    ) -> Result<(), HandshakeFailure> {
        if self.newcomers_until.is_some_and(|until| Instant::now() < until) {
            judge(client)?;
        } else {
            self.newcomers_until = None;
        }
        self.live.insert(session.0, client.clone());
        Ok(())
    }

    /// A session has ended, or its owner closes it.
    pub(crate) fn end(&mut self, session: u64) {
        self.live.remove(&session);
    }

    /// Judges all clients, and those that come within a minute.
    pub(crate) fn judge(&mut self, judge: impl Fn(&PeerIdentity) -> Result<(), HandshakeFailure>) {
        self.newcomers_until = Some(Instant::now() + HANDSHAKES_WITHIN);
        self.refused.clear();
        // A client with many connections shows the same certificates in each, and a verification
        // takes a while.
        let mut verdicts = HashMap::new();
        for (session, client) in &self.live {
            let shown = (&client.certificates, &client.public_key, &client.key_name);
            let verdict = verdicts.entry(shown);
            let verdict = verdict.or_insert_with(|| judge(client).err().map(|error| error.text));
            if let Some(why) = verdict {
                let session = SessionIndex(*session);
                self.refused.push_back(Distrusted { session, why: why.clone() });
            }
        }
    }

    /// The next one that was refused and still lives.
    pub(crate) fn next_refused(&mut self) -> Option<Distrusted> {
        let is_live = |refused: &Distrusted| self.live.contains_key(&refused.session.0);
        let mut refused = std::iter::from_fn(|| self.refused.pop_front());
        refused.find(is_live)
    }
}

/// A handshake takes at most this long.
const HANDSHAKES_WITHIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use smt_transport::{FailureKind, Fault};

    use super::*;

    fn client(certificate: u8) -> PeerIdentity {
        PeerIdentity { certificates: vec![vec![certificate]], ..PeerIdentity::default() }
    }

    fn refusal() -> HandshakeFailure {
        let (fault, kind) = (Fault::Peer, FailureKind::CertificateRefused);
        HandshakeFailure { fault, kind, text: "revoked".to_owned() }
    }

    fn all_of(clients: &mut Clients) -> Vec<u64> {
        let refused = std::iter::from_fn(|| clients.next_refused());
        let mut refused: Vec<u64> = refused.map(|refused| refused.session.0).collect();
        refused.sort_unstable();
        refused
    }

    #[test]
    fn sessions_of_refused_clients_are_told_of_and_equal_certificates_are_judged_once() {
        let mut clients = Clients::default();
        for session in 0..6_u8 {
            let begun = clients.begin(SessionIndex(session.into()), &client(session % 2), |_| {
                panic!("nothing was replaced yet")
            });
            assert!(begun.is_ok());
        }
        clients.end(3);
        let asked = Cell::new(0);
        let judge = |peer: &PeerIdentity| {
            asked.set(asked.get() + 1);
            if peer.certificates == [[1]] { Err(refusal()) } else { Ok(()) }
        };
        clients.judge(judge);
        assert_eq!(asked.get(), 2);
        assert_eq!(all_of(&mut clients), [1, 5]);
        // One that ends meanwhile is not told of.
        clients.judge(judge);
        clients.end(1);
        assert_eq!(all_of(&mut clients), [5]);
        assert_eq!(all_of(&mut clients), []);
    }

    #[test]
    fn newcomers_are_judged_when_the_trust_was_replaced() {
        let mut clients = Clients::default();
        clients.judge(|_| Err(refusal()));
        assert_eq!(all_of(&mut clients), []);
        assert!(clients.begin(SessionIndex(1), &client(0), |_| Err(refusal())).is_err());
        assert!(clients.begin(SessionIndex(2), &client(0), |_| Ok(())).is_ok());
        clients.judge(|_| Err(refusal()));
        assert_eq!(all_of(&mut clients), [2]);
        // A minute later their handshakes have begun by the new trust.
        clients.newcomers_until = Some(Instant::now());
        assert!(clients.begin(SessionIndex(3), &client(0), |_| Err(refusal())).is_ok());
    }
}
