// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The epochs of the peer: a new one is asked for when too much has failed to open, and an old one
//! is dropped that the peer forgot to finish (SPEC §7.3).

use alloc::boxed::Box;
use core::time::Duration;

use smt_record::OpenKeys;

use crate::limits::{OLD_EPOCH_LIFE, RESEND_INTERVAL_MAX};
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// KEY_UPDATE_REQUEST is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::session) struct AskForUpdate {
    /// The epoch that the peer is to leave.
    pub(in crate::session) epoch: u32,
    /// The request has left before, and the peer has not followed it.
    pub(in crate::session) is_again: bool,
}

/// The events of the peer's keys for which this side waits.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerEpochs {
    /// The old epoch whose keys are kept, and since when.
    old: Option<(u32, Time)>,
    /// KEY_UPDATE_REQUEST, until the peer has moved past this epoch. The request is rare, and an
    /// idle session is to be small.
    request: Option<Box<(u32, RetryTimer)>>,
}

impl PeerEpochs {
    /// Looks at the keys of the peer after a packet, and when a timer is due.
    pub(super) fn watch(
        &mut self,
        now: Time,
        interval: Duration,
        open: &mut OpenKeys,
    ) -> Option<AskForUpdate> {
        let ask = self.request_update(now, interval, open);
        match (open.previous(), self.old) {
            (Some(previous), Some((epoch, since))) if previous == epoch => {
                if now.since(since) >= OLD_EPOCH_LIFE {
                    open.finish(previous);
                }
            }
            (previous, _) => self.old = previous.map(|epoch| (epoch, now)),
        }
        ask
    }

    fn request_update(
        &mut self,
        now: Time,
        interval: Duration,
        open: &mut OpenKeys,
    ) -> Option<AskForUpdate> {
        if let Some(epoch) = open.take_update_request() {
            self.request = Some(Box::new((epoch, RetryTimer::new(now, interval))));
            let is_again = false;
            return Some(AskForUpdate { epoch, is_again });
        }
        let current = open.epoch();
        self.request.take_if(|request| request.0 != current);
        let (epoch, retry) = &mut **self.request.as_mut()?;
        if now < retry.due {
            return None;
        }
        retry.ask(now, RESEND_INTERVAL_MAX);
        let (epoch, is_again) = (*epoch, true);
        Some(AskForUpdate { epoch, is_again })
    }

    pub(super) fn request_due(&self) -> Option<Time> {
        self.request.as_ref().map(|request| request.1.due)
    }
}
