// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets of one message of a session (SPEC §5.4, §9.1).

use smt_record::SealError;
use smt_wire::{DataHeader, InnerHeader, Kind, MessageId};

use crate::collections::byte_ranges::ByteRange;
use crate::collections::id_map::IdMap;
use crate::message::client_message::HeaderFields;
use crate::message::outgoing::Outgoing;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::message::transmitting::{PacketWriter, Transmitting};
use crate::recovery::retransmit_budget::RetransmitBudget;
use crate::recovery::retry_timer::RetryTimer;
use crate::send::batch::DatagramBatch;
use crate::session::Session;
use crate::session::client_messages::ClientMessages;
use crate::session::stripe::Stripe;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::time::Time;

impl Session {
    /// Writes what may leave of one message.
    pub(in crate::session) fn write_message(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
        batch: &mut DatagramBatch<'_>,
    ) -> Written {
        let is_needed_soon = self.needs_acks_soon(shared);
        let lane = &mut self.lane;
        let message = match lane.stripes.is_own(id) {
            true => OutgoingMut::of_client(&mut lane.client, now, id),
            false => OutgoingMut::of_server(&mut lane.server, id),
        };
        let Some(OutgoingMut { outgoing, header_fields, need_ack }) = message else {
            // The message ended while it waited.
            return Written::AllItMay;
        };
        outgoing.is_queued = false;
        if let Some(records) = outgoing.records_if_waiting() {
            self.keys.count_message(records);
            // A bundle's members were counted.
            shared.statistics.messages_sent += u64::from(header_fields.kind != Kind::Bundle);
            let header = header(header_fields, lane.stripes.of_mut(id));
            let bits = self.agreement.send_bits;
            outgoing.freeze(bits, &mut shared.transmitting_pool, header);
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
            retransmit_budget: &mut self.recovery.retransmit_budget,
            statistics: &mut shared.statistics,
            limit: self.recovery.pmtud.size(),
        };
        let written = packets.write(now, transmitting, batch);
        // NEED_ACK counts from when all of the reply has left for the first time: what is sent
        // again is an answer, and an answer does not start the schedule afresh (SPEC §9.4).
        if matches!(written, Written::AllItMay)
            && !has_all_left
            && let Some(retry) = need_ack.filter(|_| outgoing.is_sent())
        {
            let interval = outgoing.need_ack_interval(is_needed_soon, self.recovery.jitter);
            retry.progressed(now, interval);
            self.pass_timer.set(retry.due);
        }
        written
    }
}

/// A message on its way out, and what its packets need beside it.
struct OutgoingMut<'a> {
    outgoing: &'a mut Outgoing,
    /// The fields of its header if it leaves now.
    header_fields: HeaderFields,
    /// The timer of NEED_ACK, if the message is a reply.
    need_ack: Option<&'a mut RetryTimer>,
}

impl<'a> OutgoingMut<'a> {
    /// A message that this side initiated.
    fn of_client(client: &'a mut ClientMessages, now: Time, id: MessageId) -> Option<Self> {
        let live = client.live_mut(id)?;
        let header_fields = live.header_fields(now);
        let outgoing = live.outgoing.as_mut()?;
        Some(Self { outgoing, header_fields, need_ack: None })
    }

    /// A reply.
    fn of_server(server: &'a mut IdMap<ServerRpc>, id: MessageId) -> Option<Self> {
        let ServerRpc { state, retry, .. } = server.get_mut(id.0)?;
        let ServerRpcState::Replying(outgoing) = state else {
            return None;
        };
        Some(Self {
            header_fields: HeaderFields::of_reply(outgoing.marks()),
            outgoing,
            need_ack: Some(retry),
        })
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
        failure: header_fields.marks.failure(),
        has_metadata: header_fields.marks.has_metadata,
        parts: header_fields.marks.parts,
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
        batch: &mut DatagramBatch<'_>,
    ) -> Written {
        while transmitting.is_sendable() {
            if let Some(packets) = batch.stream_room(self.limit)
                && let Some(range) = transmitting.next_stream(self.limit, packets)
            {
                if !batch.is_empty() {
                    return Written::Full;
                }
                return self.write_stream(transmitting, range, batch);
            }
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

    /// Writes a stream that fills the batch.
    fn write_stream(
        &mut self,
        transmitting: &mut Transmitting,
        range: ByteRange,
        batch: &mut DatagramBatch<'_>,
    ) -> Written {
        let priority = priority(transmitting);
        let header = match transmitting.write_stream(range, &mut self.writer, batch.bytes) {
            Ok(header) => header,
            Err(SealError::BodyChanged { .. }) => return Written::BodyChanged,
            Err(SealError::Unavailable(_)) => return Written::Lost,
            Err(_) => return Written::WaitsForKeys,
        };
        batch.close_stream(header, self.limit - DataHeader::LEN);
        self.retransmit_budget.earn(batch.datagram_bytes());
        batch.priority = priority;
        match transmitting.is_sendable() {
            true => Written::Full,
            false => Written::AllItMay,
        }
    }
}

/// How far writing a message has come.
pub(in crate::session) enum Written {
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
