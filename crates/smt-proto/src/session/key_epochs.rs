// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key epochs and the messages of a session (SPEC §7.3): which messages hold an epoch, which wait
//! for the next, and the control packets that say so.
//!
//! Not here: the rules of the epochs themselves (`session::keys`).

use alloc::vec::Vec;
use smt_wire::{Body, MessageId, PacketType};

use super::Session;
use super::client_messages::ClientMessages;
use super::keys::{Holder, PreviousEpoch};
use crate::collections::id_map::IdMap;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::message::transmitting::Transmitting;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Moves the sending keys on if it is time.
    pub(super) fn update_keys(&mut self, now: Time, shared: &mut Shared) {
        if !self.keys.update(now, self.recovery.rto.interval()) {
            return;
        }
        shared.statistics.key_updates += 1;
        self.resume_waiting_for_keys();
        self.pass_timer.set_if(self.keys.epoch_done_due());
    }

    /// Lets messages that waited for keys go on.
    fn resume_waiting_for_keys(&mut self) {
        for id in self.keys.take_waiting() {
            self.lane.queue_sendable(id);
        }
    }

    /// Whether the key has enough records for a message, if it is about to begin.
    pub(super) fn has_key_for(&mut self, id: MessageId, shared: &Shared) -> bool {
        // Nearly always: no message has more records than that.
        if self.keys.has_room_for(RECORDS_MAX) {
            return true;
        }
        let begins = self.lane.outgoing_mut(id).and_then(|outgoing| outgoing.records_if_waiting());
        let Some(records) = begins else {
            return true;
        };
        let most = shared.config.key_limits.records();
        let transmitting = transmitting(&self.lane.client, &self.lane.server);
        self.keys.suffice(records, most, || records_unsealed(transmitting, most))
    }

    /// Lets a message wait for the next key.
    pub(super) fn wait_for_keys(&mut self, id: MessageId) {
        if let Some(outgoing) = self.lane.outgoing_mut(id) {
            outgoing.is_queued = false;
        }
        self.keys.wait(id);
    }

    /// Tells the peer that the previous epoch is finished, once it is, until the peer acknowledges.
    pub(super) fn finish_epoch(&mut self, now: Time) {
        let (client, server) = (&self.lane.client, &self.lane.server);
        let holders = |epoch| holders(transmitting(client, server), epoch);
        let due = self.keys.finish_previous(now, self.recovery.rto.interval(), holders);
        match due {
            PreviousEpoch::NothingDue => {}
            PreviousEpoch::HeldBy(holders) => self.ask_about_holders(&holders),
            PreviousEpoch::Finished { epoch } => {
                self.liveness.asked(now);
                self.lane.control.push(0, Body::EpochDone { epoch });
            }
        }
        self.pass_timer.set_if(self.keys.epoch_done_due());
    }

    /// Asks at once about the messages that hold up the next epoch, whatever their own questions
    /// have backed off to, since all other messages would wait for their key. The question has a
    /// back-off of its own.
    fn ask_about_holders(&mut self, holders: &[MessageId]) {
        for id in holders.iter().copied() {
            match self.lane.client.live(id) {
                Some(live) if live.is_request() => {
                    self.lane.control.reply_progress(id, live.incoming(), true);
                }
                _ => self.lane.control.id(PacketType::NeedAck, id),
            }
        }
    }

    /// Whether a message may still have to repeat a record of the previous epoch.
    pub(super) fn holds_previous_epoch(&self, id: MessageId) -> bool {
        let outgoing = self.lane.outgoing(id);
        let transmitting = outgoing.and_then(|outgoing| outgoing.transmitting());
        let previous = self.keys.seal.previous();
        transmitting
            .zip(previous)
            .is_some_and(|(transmitting, epoch)| transmitting.holds_epoch(epoch))
    }

    /// Takes EPOCH_DONE: the peer has nothing outstanding in `epoch`.
    pub(super) fn epoch_done(&mut self, epoch: u32) {
        // A repetition is answered too, since our answer was lost. The current epoch or a future
        // one is never acknowledged.
        if self.keys.open.finish(epoch) {
            self.lane.control.push(0, Body::EpochAck { epoch });
        }
    }

    /// Takes EPOCH_ACK: the peer has let go of `epoch`.
    pub(super) fn epoch_acked(&mut self, now: Time, epoch: u32, shared: &mut Shared) {
        if self.keys.epoch_acked(epoch) {
            self.update_keys(now, shared);
            // Nothing of the key is reserved any more, whether or not it was time for the next one.
            self.resume_waiting_for_keys();
        }
    }

    /// Asks for new keys of the peer when too much has failed to open, until they come.
    pub(super) fn watch_opening_keys(&mut self, now: Time) {
        if let Some(ask) = self.keys.watch_peer(now, self.recovery.rto.interval()) {
            if ask.is_again {
                self.liveness.asked(now);
            }
            let epoch = ask.epoch;
            self.lane.control.push(0, Body::KeyUpdateRequest { epoch });
        }
        self.pass_timer.set_if(self.keys.update_request_due());
    }
}

/// Messages of which something may have been sealed.
fn transmitting<'a>(
    client: &'a ClientMessages,
    server: &'a IdMap<ServerRpc>,
) -> impl Iterator<Item = (MessageId, &'a Transmitting)> {
    let live = client.iter_live();
    let own = live.filter_map(|(id, live)| Some((id, live.outgoing.as_ref()?.transmitting()?)));
    let replies = server.iter().filter_map(|(number, served)| {
        let ServerRpcState::Replying(outgoing) = &served.state else {
            return None;
        };
        Some((MessageId(number), outgoing.transmitting()?))
    });
    own.chain(replies)
}

/// Messages that may still have to repeat a record of `epoch` or before.
fn holders<'a>(
    transmitting: impl Iterator<Item = (MessageId, &'a Transmitting)>,
    epoch: u32,
) -> Vec<Holder> {
    let holders = transmitting.filter(|(_, transmitting)| transmitting.holds_epoch(epoch));
    let holder = |(id, transmitting): (MessageId, &Transmitting)| Holder {
        id,
        opened: transmitting.released(),
    };
    holders.map(holder).collect()
}

/// Records that messages which have begun have yet to seal. Messages that take several keys of
/// `most` records are left out: they would keep all others waiting until they end.
fn records_unsealed<'a>(
    transmitting: impl Iterator<Item = (MessageId, &'a Transmitting)>,
    most: u64,
) -> u64 {
    let unsealed = transmitting.map(|(_, transmitting)| u64::from(transmitting.records_unsealed()));
    unsealed.filter(|records| *records <= most).sum()
}

/// No message has more records (SPEC §6.3, index bits).
const RECORDS_MAX: u32 = 1 << *smt_wire::INDEX_BITS.end();
