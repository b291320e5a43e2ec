// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order in which a session sends: control packets first, then the message with the fewest
//! bytes left (SPEC §9.1).
//!
//! One call writes one batch: either a datagram of control packets, or datagrams of DATA of equal
//! size.

use smt_record::SealError;
use smt_wire::{Body, ControlHeader, ControlNumber, InnerHeader, Kind, MessageId, TAG_LEN};

use crate::control_packet::{self, ControlRoute};
use crate::error::CallFailure;
use crate::grant::policy::Granted;
use crate::limits::DATAGRAM_FLOOR;
use crate::message::client_message::HeaderFields;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::message::transmitting::{PacketWriter, Transmitting};
use crate::recovery::retransmit_budget::RetransmitBudget;
use crate::send::batch::Batch;
use crate::send::buffer::TransmitBuffer;
use crate::send::control_queue::Taken;
use crate::session::Session;
use crate::session::stripe::Stripe;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::time::Time;

impl Session {
    /// Writes what may leave now; an empty batch means nothing. Behind another session's it writes
    /// messages alone.
    pub(crate) fn write(&mut self, now: Time, shared: &mut Shared, batch: &mut Batch<'_>) {
        self.update_keys(now, shared);
        let messages_first = core::mem::take(&mut self.messages_first);
        if batch.is_empty() && !messages_first && self.write_controls(shared, batch) {
            return;
        }
        self.write_messages(now, shared, batch);
        if batch.is_empty() && messages_first {
            self.write_controls(shared, batch);
        }
        // The key may have been used up just now, and the next one be free.
        self.update_keys(now, shared);
    }

    /// Writes a datagram of control packets, if any wait.
    fn write_controls(&mut self, shared: &Shared, batch: &mut Batch<'_>) -> bool {
        if core::mem::take(&mut self.confirm_due) {
            self.write_confirm(shared.config.version, batch.bytes);
        } else {
            self.write_control(shared, batch.bytes);
        }
        let has_written = !batch.bytes.is_empty();
        if has_written {
            batch.close_datagram(batch.bytes.len());
            batch.priority = CONTROL_PRIORITY;
        }
        has_written
    }

    /// Writes messages until the batch is full.
    fn write_messages(&mut self, now: Time, shared: &mut Shared, batch: &mut Batch<'_>) {
        while let Some((rank, id)) = self.sendable.pop() {
            let id = self.bundle_with_waiting(now, id, shared);
            if !self.has_key_for(id, shared) {
                self.wait_for_keys(id);
                continue;
            }
            match self.write_message(now, id, shared, batch) {
                Written::AllItMay => {}
                Written::Full => {
                    self.queue_again(id, rank);
                    return;
                }
                Written::WaitsForKeys => {
                    self.keys.wait(id);
                }
                Written::BodyChanged => self.end_changed(now, id, shared),
                Written::Lost => shared.statistics.crypto_unavailable += 1,
            }
        }
    }

    /// Ends a message whose body has changed since a part of it left: that part cannot be repeated.
    fn end_changed(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        shared.statistics.bodies_changed += 1;
        if self.is_own(id) {
            self.cancel(now, id, CallFailure::BodyChanged, shared);
        } else {
            self.abort_reply(now, id, shared);
        }
    }

    /// Queues a message that did not fit again, at its old turn; a bundle has the turn of its
    /// shortest member.
    fn queue_again(&mut self, id: MessageId, rank: u32) {
        if let Some(outgoing) = self.outgoing_mut(id)
            && !outgoing.is_queued
        {
            outgoing.is_queued = true;
            let rank = outgoing.remaining().min(rank);
            self.sendable.push((rank, id));
        }
    }

    /// How long it may wait for other sessions: the bytes left of its shortest message; control
    /// packets do not wait.
    pub(crate) fn rank(&self) -> u32 {
        if self.confirm_due || !self.control.is_empty() {
            return 0;
        }
        self.sendable
            .first()
            .map_or(0, |(remaining, _)| remaining.saturating_add(1))
    }

    /// Whether messages are all that it has to send.
    pub(crate) fn has_only_messages(&self) -> bool {
        !self.confirm_due && self.control.is_empty() && !self.sendable.is_empty()
    }

    pub(crate) fn has_output(&self, shared: &Shared) -> bool {
        self.confirm_due
            || !self.control.is_empty() && (self.has_controls(shared) || self.control.has_epoch())
            || self.ended.is_none() && !self.sendable.is_empty()
    }

    /// Whether the endpoint's accounts have it as it is: the first of many commands changes them.
    pub(crate) fn is_schedule_current(&self, shared: &Shared) -> bool {
        self.due() == self.timer
            && self.is_cipher_slot_current()
            && match self.ready {
                Some((waiting, _)) => self.rank() >= waiting,
                None => !self.has_output(shared) && !self.has_ended(),
            }
    }

    /// Lets the peer send more of a message, as the endpoint's grant policy decided. Returns how
    /// much more.
    pub(crate) fn grant(&mut self, now: Time, granted: Granted, shared: &mut Shared) -> u32 {
        let id = granted.rpc.id;
        let Some(incoming) = self.incoming_mut(id) else {
            return 0;
        };
        let (before, promised) = (incoming.allowed(), incoming.promised());
        shared.memory.change(incoming, |incoming| {
            incoming.allow(granted.end, granted.priority);
        });
        shared.seek_grants(now, granted.rpc, incoming);
        let (grant, more) = (incoming.grant(id), incoming.allowed() - before);
        let promised = incoming.promised() - promised;
        if !self.is_own(id) {
            self.memory_share.promise(promised);
        }
        self.control.grant(grant);
        more
    }

    /// Writes this side's CONFIRM (SPEC §6.5), the first packet under the session's keys.
    fn write_confirm(&mut self, version: u8, out: &mut TransmitBuffer) {
        self.write_control_packet(version, (0, &Body::Confirm), out);
    }

    /// Whether ordinary control packets may leave: the last ones under a key are for EPOCH_DONE and
    /// EPOCH_ACK, without which there would be no next key.
    fn has_controls(&self, shared: &Shared) -> bool {
        self.keys.has_controls(shared.config.key_limits.records())
    }

    /// One datagram with as many control packets as fit.
    fn write_control(&mut self, shared: &Shared, out: &mut TransmitBuffer) {
        let limit = self.pmtud.size().min(CONTROL_DATAGRAM_MAX);
        let shift = self.agreement.stripes_log2;
        let stripe_of = move |id: MessageId| (id.0 & ((1 << shift) - 1)) as u16;
        let most = (DATAGRAM_FLOOR - ControlHeader::LEN - TAG_LEN) / LIST_ENTRY_MAX;
        loop {
            let taken = if self.has_controls(shared) {
                self.control.take(most, stripe_of)
            } else {
                self.control.take_epoch()
            };
            let Some(taken) = taken else { return };
            let (stripe, body) = taken.body(stripe_of);
            let length = ControlHeader::packet_len(&body);
            let is_probe = matches!(body, Body::Probe { .. });
            if !out.is_empty() && (is_probe || out.len() + length > limit) {
                self.put_back(taken);
                return;
            }
            self.write_control_packet(shared.config.version, (stripe, &body), out);
            if is_probe {
                return;
            }
        }
    }

    fn put_back(&mut self, taken: Taken) {
        match taken {
            Taken::Single(stripe, body) => self.control.push_front(stripe, body),
            Taken::Grants(grants) => grants
                .into_iter()
                .for_each(|grant| self.control.grant(grant)),
            Taken::Resends(resends) => resends
                .into_iter()
                .for_each(|resend| self.control.resend(resend)),
            Taken::Acks(acks) => acks.into_iter().for_each(|ack| self.control.ack(ack)),
            Taken::Ids(packet_type, ids) => ids
                .into_iter()
                .for_each(|id| self.control.id(packet_type, id)),
        }
    }

    fn write_control_packet(
        &mut self,
        version: u8,
        (stripe, body): (u16, &Body<'_>),
        out: &mut TransmitBuffer,
    ) {
        if self.keys.seal.count_control().is_err() {
            // The key's hard limit. Nothing more leaves under it; the peer will find the session
            // silent.
            return;
        }
        let counter = self.stripes.at(stripe).next_control_counter();
        let number = ControlNumber { stripe, counter };
        let route = ControlRoute {
            version,
            session: self.remote_index,
            number,
        };
        control_packet::seal(&mut self.keys.seal, route, body, &self.own_reset_token, out);
    }

    /// Writes packets of one message.
    fn write_message(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
        batch: &mut Batch<'_>,
    ) -> Written {
        let is_hurried = self.is_hurried(shared);
        let (outgoing, header_fields, retry) = if self.is_own(id) {
            let Some(live) = self.calls.live_mut(id) else {
                return Written::AllItMay;
            };
            let header_fields = live.header_fields(now);
            (live.outgoing.as_mut(), header_fields, None)
        } else {
            match self.served.get_mut(id.0) {
                Some(ServerRpc {
                    state: ServerRpcState::Replying(outgoing),
                    retry,
                    ..
                }) => (Some(outgoing), HeaderFields::of(Kind::Reply), Some(retry)),
                _ => return Written::AllItMay,
            }
        };
        // It ended while it waited.
        let Some(outgoing) = outgoing else {
            return Written::AllItMay;
        };
        outgoing.is_queued = false;
        if let Some(records) = outgoing.begins() {
            self.keys.begin(records);
            // A bundle's members were counted.
            shared.statistics.messages_sent += u64::from(header_fields.kind != Kind::Bundle);
            let header = header(header_fields, self.stripes.of_mut(id));
            outgoing.freeze(
                self.agreement.send_bits,
                &mut shared.transmitting_pool,
                header,
            );
        }
        let Some(transmitting) = outgoing.transmitting_mut() else {
            return Written::WaitsForKeys;
        };
        let has_all_left = transmitting.has_all_left();
        let mut packets = Packets {
            writer: PacketWriter {
                version: shared.config.version,
                own: self.index,
                remote: self.remote_index,
                keys: &mut self.keys.seal,
                scratch: &mut shared.seal_scratch,
            },
            retransmit_budget: &mut self.retransmit_budget,
            statistics: &mut shared.statistics,
            limit: self.pmtud.size(),
        };
        let written = packets.write(now, transmitting, batch);
        // NEED_ACK counts from when all of the reply has left for the first time: what is sent
        // again is an answer, and an answer does not start the schedule afresh (SPEC §9.4).
        if matches!(written, Written::AllItMay)
            && !has_all_left
            && let Some(retry) = retry.filter(|_| outgoing.is_sent())
        {
            retry.progressed(now, outgoing.need_ack_interval(is_hurried, self.jitter));
            let due = retry.due;
            self.set_due(due);
        }
        written
    }
}

/// Makes the inner header of a message that is about to leave for the first time, from its length
/// without and with padding.
fn header(
    header_fields: HeaderFields,
    stripe: &mut Stripe,
) -> impl FnOnce(u32, u32) -> InnerHeader {
    let ack = stripe.acks.take();
    let window = stripe.tell_limit() as u32;
    move |true_length, padded_length| InnerHeader {
        true_length,
        padded_length,
        kind: header_fields.kind,
        deadline_us: header_fields.deadline_us,
        reply_unscheduled: header_fields.reply_unscheduled,
        window,
        ack,
    }
}

/// The parts of a session that writing the packets of a message needs.
struct Packets<'a> {
    writer: PacketWriter<'a>,
    retransmit_budget: &'a mut RetransmitBudget,
    statistics: &'a mut Statistics,
    /// Largest datagram.
    limit: usize,
}

impl Packets<'_> {
    /// Writes what may leave of a message.
    fn write(
        &mut self,
        now: Time,
        transmitting: &mut Transmitting,
        batch: &mut Batch<'_>,
    ) -> Written {
        while transmitting.is_sendable() {
            let packet = transmitting.next_packet(batch.room(self.limit));
            if !batch.fits(packet.len()) {
                return Written::Full;
            }
            let start = batch.bytes.len();
            let (length, is_again) = (packet.len(), packet.is_again);
            if is_again {
                let sealed = transmitting.sealed_again(&packet, &self.writer);
                if !self.retransmit_budget.spend(now, length, sealed) {
                    // The peer asks again, later and later.
                    transmitting.forget_questions();
                    self.statistics.resends_refused += 1;
                    continue;
                }
            }
            // Writing may end the unscheduled part; the packet belongs to what it begins in.
            let priority = priority(transmitting);
            match transmitting.write_packet(packet, &mut self.writer, batch.bytes) {
                Ok(()) => {}
                Err(SealError::EpochFinished { .. }) if is_again => {
                    transmitting.forget_questions();
                    continue;
                }
                Err(SealError::BodyChanged { .. }) => {
                    transmitting.forget_questions();
                    return Written::BodyChanged;
                }
                Err(SealError::Unavailable(_)) => return Written::Lost,
                Err(_) => return Written::WaitsForKeys,
            }
            if is_again {
                self.statistics.packets_resent += 1;
            } else {
                self.retransmit_budget.earn(length);
            }
            batch.priority = batch.priority.max(priority);
            batch.close_datagram(batch.bytes.len() - start);
        }
        Written::AllItMay
    }
}

/// How far writing a message has come.
enum Written {
    /// All bytes that the message may send now were written.
    AllItMay,
    /// The batch is full.
    Full,
    /// The key's quota is used up: the message goes on in the next epoch.
    WaitsForKeys,
    /// The application has changed the message's memory: the message cannot go on.
    BodyChanged,
    /// The library could not seal: the message goes on when its timer or the peer asks, as if the
    /// network had lost the packet.
    Lost,
}

/// Homa's cutoffs: unscheduled bytes of short messages before those of long ones, both before
/// granted bytes.
fn priority(transmitting: &Transmitting) -> u8 {
    match transmitting.length() {
        _ if transmitting.is_scheduled() => transmitting.priority,
        0..=400 => 7,
        401..=3_000 => 6,
        3_001..=15_000 => 5,
        _ => 4,
    }
}

/// Control packets leave before all data.
const CONTROL_PRIORITY: u8 = 7;
/// Control packets share a datagram up to this size: enough to amortise the call, small enough to
/// be lost alone.
const CONTROL_DATAGRAM_MAX: usize = 1_472;
/// The largest list entry (GRANT).
const LIST_ENTRY_MAX: usize = 24;
