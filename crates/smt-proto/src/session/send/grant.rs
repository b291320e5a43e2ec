// SPDX-License-Identifier: Apache-2.0 OR MIT
//! GRANT: what the peer may send of its messages (SPEC §9.2).
//!
//! Not here: which messages get how much (`crate::grant`).

use crate::grant::policy::Granted;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Lets the peer send more of a message, as the endpoint's grant policy decided. Returns how
    /// much more.
    pub(crate) fn grant(&mut self, now: Time, granted: Granted, shared: &mut Shared) -> u32 {
        let id = granted.rpc.id;
        let Some(incoming) = self.lane.incoming_mut(id) else {
            return 0;
        };
        let (before, promised) = (incoming.allowed(), incoming.promised());
        shared.memory.change(incoming, |incoming| {
            incoming.allow(granted.end, granted.priority);
        });
        shared.seek_grants(now, granted.rpc, incoming);
        let (grant, more) = (incoming.grant(id), incoming.allowed() - before);
        let promised = incoming.promised() - promised;
        if !self.lane.stripes.is_own(id) {
            self.lane.memory_share.promise(promised);
        }
        self.lane.control.grant(grant);
        more
    }
}
