// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CONFIRM: the first packet of each side under the session's keys (SPEC §6.5).
//!
//! Not here: the session that begins when the peer's has opened (`endpoint`), and this side's
//! CONFIRM in it, which answers repetitions (`session`).

use smt_wire::{Body, Control, ControlNumber};

use crate::control_packet::{self, ControlRoute};
use crate::establish::established::Established;
use crate::key_exchange::PeerIdentity;
use crate::send::buffer::TransmitBuffer;
use crate::statistics::Statistics;

/// A handshake that lacks nothing but the peer's CONFIRM.
pub(crate) struct Unconfirmed(Established);

impl Unconfirmed {
    pub(crate) const fn new(established: Established) -> Self {
        Self(established)
    }

    /// Appends this side's CONFIRM, the first packet under the session's keys. Repetitions have
    /// numbers of their own.
    pub(crate) fn write_confirm(&mut self, version: u8, out: &mut TransmitBuffer) {
        let established = &mut self.0;
        if established.seal.count_control().is_err() {
            // The key's hard limit: the attempt ends in silence.
            return;
        }
        let route = ControlRoute {
            version,
            session: established.indices.remote,
            number: ControlNumber { stripe: 0, counter: established.controls },
        };
        established.controls += 1;
        let token = established.indices.own_reset_token;
        control_packet::seal(&mut established.seal, route, &Body::Confirm, &token, out);
    }

    /// Takes a control packet that names the attempt: only CONFIRM counts. Returns whether it was
    /// the peer's, which confirms.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(crate) fn open_confirm(&mut self, control: &Control<'_>, counted: &mut Statistics) -> bool {
        let established = &mut self.0;
        if control.body != Body::Confirm {
            return false;
        }
        let number = control.header.number;
        if number.stripe >> established.agreement.layout.stripes_log2 != 0 {
            counted.packets_contradicting += 1;
            return false;
        }
        let opened = match control_packet::open(&mut established.open, control) {
            Ok(opened) => opened,
            Err(failure) => {
                counted.control_not_opened(failure);
                return false;
            }
        };
        established.confirmed_by = Some(number);
        established.peer_reset_token = opened.reset_token;
        true
    }

    /// The peer has confirmed.
    pub(crate) fn confirmed(self) -> Established {
        self.0
    }

    /// Takes the identity of the peer, which its session does not need.
    pub(crate) fn take_peer(&mut self) -> PeerIdentity {
        core::mem::take(&mut self.0.peer)
    }

    pub(crate) fn peer(&self) -> &PeerIdentity {
        &self.0.peer
    }
}
