// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The peers of an endpoint, judged by a trust that has just been put in the place of another.

use std::sync::Arc;

use smt_handshake::PeerJudge;

use super::Driver;
use crate::clock::Clock;
use crate::distrust::{Distrusted, HasPeers};

impl HasPeers for Driver {
    fn judge_peers(&self, judge: &Arc<PeerJudge>) {
        if self.look(|state| state.distrusted) == Distrusted::Keep {
            return;
        }
        // Newcomers first: no session falls between.
        let peers = self.change(|state, now| {
            state.judge_newcomers(now, Arc::clone(judge));
            state.live_peers()
        });
        let wall = Clock::wall_time();
        let refused = peers.into_iter().filter_map(|(session, peer)| {
            let why = judge.check(&peer.identity(), wall).err()?;
            Some((session, why))
        });
        let refused: Vec<_> = refused.collect();
        if !refused.is_empty() {
            self.change(|state, now| {
                for (session, why) in &refused {
                    state.end_distrusted(now, *session, why);
                }
            });
            self.wake_driver();
        }
    }
}
