// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The peers of an endpoint, judged by a trust that has just been put in the place of another.

use std::sync::Arc;

use smt_handshake::PeerJudge;
use smt_proto::key_exchange::HandshakeFailure;
use smt_wire::SessionIndex;

use super::Driver;
use crate::clock::Clock;
use crate::distrust::{Distrusted, HasPeers};
use crate::peer::Peer;

impl HasPeers for Driver {
    fn judge_peers(&self, judge: &Arc<PeerJudge>) {
        // Newcomers first: no session falls between.
        let peers = self.change(|state, now| {
            state.judge_newcomers(now, Arc::clone(judge));
            state.live_peers()
        });
        let wall = Clock::wall_time();
        let refused = peers.into_iter().filter_map(|(session, peer)| {
            let why = judge.check(&peer.identity(), wall).err()?;
            Some(Refused { session, peer, why })
        });
        let refused: Vec<_> = refused.collect();
        if !refused.is_empty() {
            let choice = self.look(|state| state.distrusted);
            tracing::warn!("{}", text(choice, &refused));
            self.change(|state, now| {
                for Refused { session, why, .. } in &refused {
                    state.end_distrusted(now, *session, why);
                }
            });
            self.wake_driver();
        }
    }
}

/// A session whose peer the trust of today refuses.
struct Refused {
    session: SessionIndex,
    peer: Arc<Peer>,
    why: HandshakeFailure,
}

/// A warning for operators about the sessions of these peers.
fn text(choice: Distrusted, refused: &[Refused]) -> String {
    let count = refused.len();
    let sessions = if count == 1 { "session" } else { "sessions" };
    let fate = match choice {
        Distrusted::End => "now ended",
        Distrusted::Finish => "ended when no call is in progress",
        Distrusted::Keep => "kept all the same",
    };
    let shown = refused.iter().take(SHOWN_MAX).map(|Refused { peer, why, .. }| {
        let name = peer.shown_name().map(|name| format!("{name} at ")).unwrap_or_default();
        format!("{name}{} ({})", peer.address, why.text)
    });
    let shown: Vec<String> = shown.collect();
    let others = match count - shown.len() {
        0 => String::new(),
        1 => ", and 1 more".to_owned(),
        others => format!(", and {others} more"),
    };
    let shown = shown.join(", ");
    format!("the new trust refuses the peers of {count} {sessions}, {fate}: {shown}{others}")
}

/// Peers that a line names.
const SHOWN_MAX: usize = 5;
