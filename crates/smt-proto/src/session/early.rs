// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Early data of a session (SPEC §6.8): calls whose requests left in flight 1, and the session of a
//! server before its client has confirmed.

use bytes::Bytes;
use smt_wire::{MessageId, early_requests};

use super::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Notes that a request of this side has arrived with early data: it need not leave.
    pub(crate) fn arrived_early(&mut self, id: MessageId) {
        self.peer_is_busy(id);
    }

    /// Whether a packet of the peer has opened.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.liveness.is_confirmed()
    }

    /// Lets this session send no more than so many bytes until its peer is heard; `None` is no
    /// limit. The peer's address may be somebody else's.
    pub(crate) fn limit_until_confirmed(&mut self, permitted: Option<usize>) {
        let permitted = permitted.map(|bytes| u16::try_from(bytes).unwrap_or(u16::MAX - 1));
        self.permitted = permitted.unwrap_or(u16::MAX);
        self.began_early = true;
    }

    /// Whether the session has begun with early data and its client was not heard since: nothing
    /// leaves but CONFIRM, replies to early requests and what those need ([6.8-5]).
    pub(super) fn waits_to_be_confirmed(&self) -> bool {
        self.began_early && !self.is_confirmed()
    }

    /// The client of an early session was heard: what had to wait for that is due.
    pub(crate) fn confirmed_early(&mut self) {
        self.pass_timer.set_if(self.recovery.pmtud.due());
    }

    /// Bytes that may leave now; `None` if there is no limit.
    pub(super) fn permitted(&self) -> Option<usize> {
        let is_limited = self.permitted < u16::MAX && !self.is_confirmed();
        is_limited.then(|| self.permitted.into())
    }

    /// Whether a request of the peer came as early data.
    pub(super) fn was_early(&self, id: MessageId) -> bool {
        let number = self.lane.stripes.number_at_peer(id);
        number.is_some_and(|number| number < self.early_requests.into())
    }

    /// Takes the requests of a client's early data. The first has the id that the client uses
    /// first, and so on.
    pub(crate) fn take_early_data(&mut self, now: Time, bytes: Bytes, shared: &mut Shared) {
        // The key exchange has not taken any other, if it keeps the rules.
        let Some(members) = early_requests(&bytes) else {
            shared.statistics.violations += 1;
            return;
        };
        for (number, (mut header, place)) in (0..).zip(members) {
            let Some(id) = self.lane.stripes.nth_of_peer(number) else {
                return;
            };
            header.id = id;
            self.early_requests = u16::try_from(number + 1).unwrap_or(u16::MAX);
            shared.statistics.early_requests += 1;
            self.take_early_request(now, &header, bytes.slice(place), shared);
        }
    }
}
