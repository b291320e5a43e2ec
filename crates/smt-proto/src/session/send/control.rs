// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets of a session: what waits is sealed into one datagram (SPEC §3.4, §8).

use smt_wire::{Body, ControlHeader, ControlNumber, MessageId, TAG_LEN};

use crate::control_packet::{self, ControlRoute};
use crate::establish::flight::FlightRoute;
use crate::limits::DATAGRAM_FLOOR;
use crate::send::buffer::TransmitBuffer;
use crate::send::control_queue::Entry;
use crate::session::Session;
use crate::session::keys::ControlsLeft;
use crate::shared::Shared;

impl Session {
    /// Writes this side's CONFIRM (SPEC §6.5), the first packet under the session's keys. A flight
    /// that goes with it stands before it, since CONFIRM ends the peer's attempt.
    pub(super) fn write_confirm(&mut self, version: u8, out: &mut TransmitBuffer) {
        if let Some(flight) = self.parting.take() {
            let route = FlightRoute {
                version,
                destination: self.remote_index,
                source: self.index,
                cookie: &[],
                is_padded: false,
            };
            flight.append(route, out);
        }
        self.write_control_packet(version, 0, &Body::Confirm, out);
    }

    /// Whether a control packet waits that may leave under what is left of the key.
    pub(super) fn has_control(&self, shared: &Shared) -> bool {
        let control = &self.lane.control;
        if control.is_empty() {
            return false;
        }
        match self.controls_left(shared) {
            ControlsLeft::All => true,
            left => control.first_urgent(self.is_urgent(left)).is_some(),
        }
    }

    fn controls_left(&self, shared: &Shared) -> ControlsLeft {
        let limits = &shared.config.key_limits;
        self.keys.controls_left(limits.controls())
    }

    /// The entries that may leave although the key is nearly used up.
    fn is_urgent(&self, left: ControlsLeft) -> impl Fn(Entry<'_>) -> bool + '_ {
        let is_for_holders = left == ControlsLeft::Holders;
        move |entry| match entry {
            Entry::Single(Body::EpochDone { .. } | Body::EpochAck { .. }) => true,
            Entry::Single(Body::Ping(_) | Body::Pong(_)) => is_for_holders,
            Entry::About(id) => is_for_holders && self.holds_previous_epoch(id),
            Entry::Single(_) => false,
        }
    }

    /// One datagram with as many control packets as fit. Returns whether it is PROBE, which is
    /// alone.
    pub(super) fn write_control(&mut self, shared: &Shared, out: &mut TransmitBuffer) -> bool {
        let limit = self.recovery.pmtud.size().min(CONTROL_DATAGRAM_MAX);
        let layout = self.agreement.layout;
        let stripe_of = move |id: MessageId| layout.stripe(id);
        let most = (DATAGRAM_FLOOR - ControlHeader::LEN - TAG_LEN) / LIST_ENTRY_MAX;
        loop {
            let taken = match self.controls_left(shared) {
                ControlsLeft::All => self.lane.control.take(most, stripe_of),
                left => {
                    let place = self.lane.control.first_urgent(self.is_urgent(left));
                    place.and_then(|place| self.lane.control.take_at(place))
                }
            };
            let Some(taken) = taken else { return false };
            let (stripe, body) = taken.body(stripe_of);
            let length = ControlHeader::packet_len(&body);
            let is_probe = matches!(body, Body::Probe { .. });
            if is_probe && !self.may_send_messages() {
                // It is to leave as DATA does, and comes again.
                continue;
            }
            if !out.is_empty() && (is_probe || out.len() + length > limit) {
                self.lane.control.put_back(taken);
                return false;
            }
            self.write_control_packet(shared.config.version, stripe, &body, out);
            if is_probe {
                return true;
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
        let secret: &[u8] = match body {
            Body::Confirm => &self.own_reset_token,
            Body::Association(fields) => {
                let associations = self.associations.as_ref();
                match associations.and_then(|of| of.key_of(fields.serial)) {
                    Some(key) => key.bytes(),
                    // The peer has acknowledged it meanwhile.
                    None => return,
                }
            }
            _ => &[],
        };
        if self.keys.seal.count_control().is_err() {
            // The key's hard limit. Nothing more leaves under it; the peer will find the session
            // silent.
            return;
        }
        let counter = self.lane.stripes.at(stripe).next_control_counter();
        let number = ControlNumber { stripe, counter };
        let route = ControlRoute { version, session: self.remote_index, number };
        control_packet::seal(&mut self.keys.seal, route, body, secret, out);
    }
}

/// Control packets share a datagram up to this size: enough to amortise the call, small enough to
/// be lost alone.
const CONTROL_DATAGRAM_MAX: usize = 1_472;
/// The largest list entry (GRANT).
const LIST_ENTRY_MAX: usize = 24;
