// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One session: keys, ids, and the messages under way in both directions.
//!
//! A message's way through this folder:
//! 1. `commands`: the application's call gets an id and waits among the messages of the `lane`.
//! 2. `send`: records are sealed as they leave (`message`), in the order of `transmit`; control
//!    packets (`control`), GRANTs among them (`grant`).
//! 3. `receive::{data, replies}`: the peer's records open into an `Incoming`; a whole message
//!    becomes an event (`receive::delivery`).
//! 4. `receive::control`: grants, questions and acknowledgements of the peer; `cancel`: all that
//!    ends otherwise.
//! 5. `send::bundle`, `receive::bundle`: small messages that leave and arrive together.
//! 6. `parts`: calls whose request or reply comes in parts.
//! 7. `receive::trimmed`: headers of packets that the network has trimmed.
//! 8. `timers`: deadlines, death, and when to ask; `retransmit`: what is asked.
//! 9. `expiry`: the end of certificates; `key_epochs`: which messages hold an epoch; `hibernate`:
//!    memory that an unused session gives up.
//!
//! 10. `associations`: what the carrier needs to seal whole packets (SPEC §15.4).
//!
//! The state is in groups, each with its rules: `keys`, `liveness`, `recovery`, `pass_timer`, and
//! the `lane` of `stripe`, `client_messages`, `memory_share` and `reordered`.
//!
//! Not here: finding the session of a packet (`endpoint`), and establishing it (`establish`).

mod associations;
mod cancel;
mod client_messages;
mod commands;
mod early;
mod expiry;
mod hibernate;
mod kept_parts;
mod key_epochs;
mod keys;
mod lane;
mod liveness;
mod memory_share;
mod parts;
mod pass_timer;
mod receive;
mod recovery;
mod reordered;
mod retransmit;
mod send;
mod stripe;
mod timers;

use associations::SessionAssociations;
pub(crate) use commands::CallKind;
pub(crate) use expiry::CredentialEnds;
use expiry::Expiry;
use keys::Keys;
use lane::Lane;
use liveness::Liveness;
pub(crate) use parts::OutgoingPart;
use pass_timer::PassTimer;
use recovery::Recovery;
use stripe::Stripes;

use alloc::boxed::Box;

use smt_carrier::Path;
use smt_record::{Exporter, KeyLimits, Side};
use smt_wire::{MessageId, SessionIndex};

use crate::error::SessionEnd;
use crate::establish::agreement::Agreement;
use crate::establish::association_room::AssociationRoom;
use crate::establish::established::Established;
use crate::establish::flight::FlightOut;
use crate::establish::identity_shares::IdentityHash;
use crate::establish::session_factory::SessionFactory;
use crate::event::{Event, RpcId};
use crate::memory::cipher_cache::CipherSlot;
use crate::message::server_rpc::ServerRpcState;
use crate::send::control_queue::ControlQueue;
use crate::send::ready_queue::Slot;
use crate::shared::Shared;
use crate::time::Time;

/// A live session.
pub(crate) struct Session {
    pub(crate) path: Path,
    pub(crate) index: SessionIndex,
    pub(crate) remote_index: SessionIndex,
    /// The token that a RESET of the peer must carry (SPEC §12.1).
    pub(crate) peer_reset_token: Option<[u8; 16]>,
    /// The token that a RESET of this side must carry.
    own_reset_token: [u8; 16],
    /// The client waits for our CONFIRM.
    confirm_due: bool,
    /// A flight that leaves once, beside CONFIRM.
    parting: Option<Box<FlightOut>>,
    /// Bytes that may leave before the peer is heard (SPEC §6.8); all if it is the highest number.
    permitted: u16,
    /// The first so many ids of the peer have come with early data.
    early_requests: u16,
    /// The session has begun with early data.
    began_early: bool,
    pub(crate) keys: Keys,
    pub(crate) exporter: Exporter,
    agreement: Agreement,
    lane: Lane,
    recovery: Recovery,
    pass_timer: PassTimer,
    liveness: Liveness,
    expiry: Expiry,
    /// The identity that the client has proved, if its sessions are counted.
    pub(crate) identity: Option<IdentityHash>,
    /// In a session whose packets the carrier seals (SPEC §15.4).
    associations: Option<Box<SessionAssociations>>,
    /// How it holds its ciphers' tables.
    pub(crate) cipher_slot: CipherSlot,
    ended: Option<SessionEnd>,
    /// Its entries in the endpoint's schedule.
    pub(crate) slot: Slot,
}

impl Session {
    /// A session that has just been established. `datagram_max` is the largest datagram of the
    /// carrier.
    pub(crate) fn new(
        mut established: Established,
        factory: &SessionFactory<'_>,
        datagram_max: usize,
    ) -> Self {
        let (now, indices) = (established.agreed_at, established.indices);
        let agreement = established.agreement;
        let flow = agreement.receiving_flow(indices.own);
        established.open.open_at_carrier(flow);
        let (sent, received) = (established.controls, established.confirmed_by);
        let stripes = Stripes::after_handshake(&agreement, sent, received);
        let lane = Lane::new(stripes, factory.crypto.table_salt);
        let interval = factory.config.resend_interval;
        let datagram_limit = usize::from(agreement.datagram_limit).min(datagram_max);
        Self {
            path: established.path,
            index: indices.own,
            remote_index: indices.remote,
            peer_reset_token: established.peer_reset_token,
            own_reset_token: indices.own_reset_token,
            // A client repeats its CONFIRM until ours opens. One whose server's CONFIRM came with
            // flight 2 has not sent its own yet.
            confirm_due: agreement.side == Side::Server || sent == 0,
            parting: established.parting,
            permitted: u16::MAX,
            early_requests: 0,
            began_early: false,
            keys: Keys::new(established.seal, established.open),
            exporter: established.exporter,
            lane,
            recovery: Recovery::new(now, indices.jitter(), interval, datagram_limit),
            pass_timer: PassTimer::new(now),
            liveness: Liveness::new(now),
            expiry: Expiry::new(agreement.side, now, factory.wall(now), established.ends),
            identity: None,
            associations: None,
            cipher_slot: CipherSlot::Empty,
            ended: None,
            slot: Slot::default(),
            agreement,
        }
    }

    /// Begins with associations, if the sides have agreed on them: there is room for them then.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(crate) fn begin_associations(
        &mut self,
        now: Time,
        room: Option<AssociationRoom>,
        limits: KeyLimits,
    ) {
        let (Some(version), Some(room)) = (self.agreement.psp_version, room) else {
            return;
        };
        let associations = SessionAssociations::new(now, room, version, limits);
        self.associations = Some(Box::new(associations));
        self.watch_associations(now);
    }

    /// Ends the session: every call ends, and every request that is worked on is cancelled.
    pub(crate) fn end(&mut self, end: SessionEnd, shared: &mut Shared) {
        if self.ended.is_some() {
            return;
        }
        self.end_messages(&end, shared);
        self.lane.control = ControlQueue::default();
        self.confirm_due = false;
        shared.events.push_back(Event::SessionEnded { session: self.index, end: end.clone() });
        self.ended = Some(end);
    }

    /// Notes that the peer has confirmed.
    pub(crate) fn confirmed(&mut self, now: Time) {
        self.liveness.answered(now);
    }

    /// Whether no message of either side is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.lane.is_idle()
    }

    pub(crate) fn last_used(&self) -> Time {
        self.liveness.used_at()
    }

    pub(crate) fn rpc(&self, id: MessageId) -> RpcId {
        RpcId { session: self.index, id }
    }

    pub(crate) fn due(&self) -> Option<Time> {
        if self.ended.is_some() { None } else { self.pass_timer.due() }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether this side initiated the id.
    pub(crate) fn is_own(&self, id: MessageId) -> bool {
        self.lane.stripes.is_own(id)
    }

    pub(crate) fn side(&self) -> Side {
        self.agreement.side
    }

    /// Whether the application's answer to a request is still wanted.
    pub(crate) fn is_wanted(&self, id: MessageId) -> bool {
        let served = self.lane.server.get(id.0);
        served.is_some_and(|served| matches!(served.state, ServerRpcState::Working { .. }))
    }

    /// Hands a request over to the application. Returns whether its answer is still wanted.
    pub(crate) fn hand_over(&mut self, id: MessageId) -> bool {
        self.set_delivered(id, true)
    }

    /// The application gives a request back that it has not looked at.
    pub(crate) fn take_back(&mut self, id: MessageId) {
        self.set_delivered(id, false);
    }

    fn set_delivered(&mut self, id: MessageId, delivered: bool) -> bool {
        let served = self.lane.server.get_mut(id.0);
        let Some(ServerRpcState::Working { is_delivered, .. }) = served.map(|it| &mut it.state)
        else {
            return false;
        };
        *is_delivered = delivered;
        true
    }

    /// Requests that the application works on, and replies that are not acknowledged.
    pub(crate) fn served_len(&self) -> usize {
        self.lane.server.len()
    }

    /// Calls and one-way messages in progress.
    pub(crate) fn calls_len(&self) -> usize {
        self.lane.client.len()
    }

    /// When the first question left that the peer has not answered.
    pub(crate) fn asked_since(&self) -> Option<Time> {
        self.liveness.asked_since()
    }

    /// UDP payload bytes of a datagram, as discovered so far.
    pub(crate) fn datagram_size(&self) -> usize {
        self.recovery.pmtud.size()
    }

    /// The version of PSP by which carriers seal its packets.
    pub(crate) fn psp_version(&self) -> Option<u8> {
        self.agreement.psp_version
    }

    /// The largest message that the peer accepts, in bytes before padding.
    pub(crate) fn message_max(&self) -> u32 {
        self.agreement.message_max
    }
}
