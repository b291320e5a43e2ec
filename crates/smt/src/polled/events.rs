// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the owner of a polled endpoint is told, in its order; but requests of a peer that keeps too many replies wait until
//! it has acknowledged some (SPEC §10).

use foldhash::{HashSet, HashSetExt};
use smt_proto::{Endpoint, Event, RpcId};

use crate::backpressure::Backpressure;

/// What was not told yet.
#[derive(Debug)]
pub(super) struct Events {
    backpressure: Backpressure<(RpcId, Event)>,
    /// Which requests these are, and what they take.
    rpcs: HashSet<RpcId>,
    bytes: usize,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            backpressure: Backpressure::default(),
            rpcs: HashSet::new(),
            bytes: 0,
        }
    }

    /// The next event of an endpoint.
    pub(super) fn next(&mut self, endpoint: &mut Endpoint) -> Option<Event> {
        while let Some(event) = endpoint.poll_event() {
            match &event {
                Event::Request { rpc, body, .. } if self.must_wait(*rpc, endpoint) => {
                    let (rpc, bytes) = (*rpc, cost(body.len()));
                    self.rpcs.insert(rpc);
                    self.bytes += bytes;
                    self.backpressure.push(rpc.session, (rpc, event));
                    endpoint.set_untaken(self.bytes);
                }
                // Its owner does not know of the request.
                Event::Cancelled(rpc) if self.rpcs.contains(rpc) => {}
                _ => return Some(event),
            }
        }
        self.next_held_back(endpoint)
    }

    fn must_wait(&self, rpc: RpcId, endpoint: &Endpoint) -> bool {
        self.backpressure.contains(rpc.session) || endpoint.keeps_too_much(rpc.session)
    }

    /// The next request that need not wait any more, if its caller has not given up.
    fn next_held_back(&mut self, endpoint: &mut Endpoint) -> Option<Event> {
        let keeps_too_much = |session| endpoint.keeps_too_much(session);
        let found = loop {
            let Some((rpc, event)) = self.backpressure.pop(keeps_too_much) else {
                break None;
            };
            self.rpcs.remove(&rpc);
            if let Event::Request { body, .. } = &event {
                self.bytes -= cost(body.len());
            }
            if endpoint.is_wanted(rpc) {
                break Some(event);
            }
        };
        endpoint.set_untaken(self.bytes);
        found
    }
}

fn cost(body: usize) -> usize {
    size_of::<(RpcId, Event)>() + body
}
