// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets of a session: what waits is sealed into one datagram (SPEC §3.4, §8).

use smt_wire::{Body, ControlHeader, ControlNumber, MessageId, TAG_LEN};

use crate::control_packet::{self, ControlRoute};
use crate::limits::DATAGRAM_FLOOR;
use crate::send::buffer::TransmitBuffer;
use crate::session::Session;
use crate::shared::Shared;

impl Session {
    /// Writes this side's CONFIRM (SPEC §6.5), the first packet under the session's keys.
    pub(super) fn write_confirm(&mut self, version: u8, out: &mut TransmitBuffer) {
        self.write_control_packet(version, 0, &Body::Confirm, out);
    }

    /// Whether ordinary control packets may leave: the last ones under a key are for EPOCH_DONE and
    /// EPOCH_ACK, without which there would be no next key.
    pub(super) fn has_controls(&self, shared: &Shared) -> bool {
        self.keys.has_controls(shared.config.key_limits.records())
    }

    /// One datagram with as many control packets as fit.
    pub(super) fn write_control(&mut self, shared: &Shared, out: &mut TransmitBuffer) {
        let limit = self.recovery.pmtud.size().min(CONTROL_DATAGRAM_MAX);
        let layout = self.agreement.layout;
        let stripe_of = move |id: MessageId| layout.stripe(id);
        let most = (DATAGRAM_FLOOR - ControlHeader::LEN - TAG_LEN) / LIST_ENTRY_MAX;
        loop {
            let taken = if self.has_controls(shared) {
                self.lane.control.take(most, stripe_of)
            } else {
                self.lane.control.take_epoch()
            };
            let Some(taken) = taken else { return };
            let (stripe, body) = taken.body(stripe_of);
            let length = ControlHeader::packet_len(&body);
            let is_probe = matches!(body, Body::Probe { .. });
            if !out.is_empty() && (is_probe || out.len() + length > limit) {
                self.lane.control.put_back(taken);
                return;
            }
            self.write_control_packet(shared.config.version, stripe, &body, out);
            if is_probe {
                return;
            }
        }
    }

    fn write_control_packet(
        &mut self,
        version: u8,
        stripe: u16,
        body: &Body<'_>,
        out: &mut TransmitBuffer,
    ) {
        if self.keys.seal.count_control().is_err() {
            // The key's hard limit. Nothing more leaves under it; the peer will find the session
            // silent.
            return;
        }
        let counter = self.lane.stripes.at(stripe).next_control_counter();
        let number = ControlNumber { stripe, counter };
        let route = ControlRoute {
            version,
            session: self.remote_index,
            number,
        };
        control_packet::seal(&mut self.keys.seal, route, body, &self.own_reset_token, out);
    }
}

/// Control packets share a datagram up to this size: enough to amortise the call, small enough to
/// be lost alone.
const CONTROL_DATAGRAM_MAX: usize = 1_472;
/// The largest list entry (GRANT).
const LIST_ENTRY_MAX: usize = 24;
