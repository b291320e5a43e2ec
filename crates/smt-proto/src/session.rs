// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One session: keys, ids, and the messages under way in both directions.
//!
//! A message's way through this folder:
//! 1. `commands`: the application's call gets an id and waits in `calls`.
//! 2. `transmit`: its records are sealed as they leave.
//! 3. `data`, `replies`: the peer's records open into an [`Incoming`]; a whole message becomes an event (`delivery`).
//! 4. `control`: grants, questions and acknowledgements of the peer; `endings`: all that ends otherwise.
//! 5. `bundles`: small messages that leave and arrive together.
//! 6. `trimmed`: headers of packets that the network has cut.
//! 7. `timers`: deadlines, key epochs, death, and when to ask; `questions`: what is asked.
//!
//! Not here: finding the session of a packet, and establishing it (`endpoint`, `connect`, `accept`).

mod bundles;
mod commands;
mod control;
mod data;
mod delivery;
mod endings;
mod keys;
mod questions;
mod replies;
mod rest;
mod timers;
mod transmit;
mod trimmed;

pub(crate) use commands::CallKind;

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use smt_carrier::Path;
use smt_record::{
    ControlWindow, IdAllocator, IdLayout, IdWindow, IndexBits, OpenKeys, Padding, SealKeys, Side,
};
use smt_wire::{Geometry, MessageId, SessionIndex};

use crate::acks::PendingAcks;
use crate::bodies::{self, Bodies};
use crate::books::Books;
use crate::call::Call;
use crate::config::Config;
use crate::control_queue::ControlQueue;
use crate::cuts::{Cuts, UnopenedIds};
use crate::discovery::Discovery;
use crate::early::EarlyPackets;
use crate::error::SessionEnd;
use crate::event::{Event, RpcId};
use crate::grants::{Grants, Progress};
use crate::incoming::Incoming;
use crate::jitter::Jitter;
use crate::leaving::{Leaving, SealScratch};
use crate::limits;
use crate::outgoing::Outgoing;
use crate::patience::Patience;
use crate::pool::Pool;
use crate::question::Question;
use crate::rate::Rate;
use crate::ready::Place;
use crate::resend_credit::ResendCredit;
use crate::send_queue::SendQueue;
use crate::served::{Served, ServedState};
use crate::setup::Maker;
use crate::spares::Spares;
use crate::statistics::Statistics;
use crate::table::Table;
use crate::time::Time;
use crate::warm::{Warm, Warmth};

/// What all sessions of an endpoint share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) events: VecDeque<Event>,
    pub(crate) statistics: Statistics,
    pub(crate) grants: Grants,
    /// What was cut on the way and is to be asked for; bytes that came unasked, which the pace has to know of.
    pub(crate) cuts: Cuts,
    pub(crate) unasked: u32,
    pub(crate) warm: Warm,
    pub(crate) seal_scratch: SealScratch,
    pub(crate) open_scratch: Vec<u8>,
    pub(crate) spare_record: Vec<u8>,
    /// Where short bodies, long ones, and messages that leave alone are.
    pub(crate) bodies: Bodies,
    pub(crate) spares: Spares,
    pub(crate) leavings: Pool<Leaving>,
    /// Memory of incomplete messages; beside it, bytes held by early packets.
    pub(crate) books: Books,
    pub(crate) early_memory: usize,
    /// New requests are refused: the endpoint shuts down.
    pub(crate) is_draining: bool,
}

impl Shared {
    /// A message on its way out is over: its memory is used again.
    pub(crate) fn give_back(&mut self, outgoing: Option<Outgoing>) {
        if let Some(leaving) = outgoing.and_then(Outgoing::into_leaving) {
            self.leavings.take_back(leaving);
        }
    }

    /// A message on its way in is over.
    pub(crate) fn forget(&mut self, rpc: RpcId, incoming: &Incoming) {
        self.books.leave(incoming);
        self.grants.remove(rpc);
    }

    /// So many bytes of a message have opened.
    pub(crate) fn opened(&mut self, incoming: &mut Incoming, bytes: u32) {
        if self.grants.pulling().is_some() && incoming.is_ungranted() {
            self.came_unasked(incoming.unasked(bytes));
        }
    }

    /// So many bytes have come without a grant, and were not asked for again.
    pub(crate) fn came_unasked(&mut self, bytes: u32) {
        if self.grants.pulling().is_some() {
            self.unasked = self.unasked.saturating_add(bytes);
        }
    }

    /// A body of a peer's message as it goes to the application. A short one holds the block or the bundle that it came
    /// in (`bodies`), which others share that may be gone long before: behind a backlog it has memory of its own.
    pub(crate) fn body_to_wait(&self, body: Bytes) -> Bytes {
        let has_backlog = self.books.have_backlog(self.config.memory_max);
        match has_backlog && body.len() <= bodies::SHORT {
            true => Bytes::copy_from_slice(&body),
            false => body,
        }
    }

    /// More of a message has opened, or may be sent: it may want grants.
    pub(crate) fn seek_grants(&mut self, now: Time, rpc: RpcId, incoming: &Incoming) {
        let progress = Progress {
            length: incoming.length(),
            arrived: incoming.arrived(),
            granted: incoming.allowed(),
        };
        self.grants.update(now, rpc, progress);
    }
}

/// What the handshake agreed (SPEC §6.3).
pub(crate) struct Agreement {
    pub(crate) side: Side,
    pub(crate) geometry: Geometry,
    pub(crate) send_bits: IndexBits,
    pub(crate) receive_bits: IndexBits,
    pub(crate) layout: IdLayout,
    pub(crate) stripes_log2: u8,
    pub(crate) own_window: u32,
    pub(crate) peer_window: u32,
    /// Application bytes of the largest message that the peer accepts and record indices can number.
    pub(crate) message_max: u32,
    /// Inner bytes of the largest message whose records the peer's indices can number.
    pub(crate) received_max: u32,
    /// How much of a message the peer accepts without a grant.
    pub(crate) unscheduled: u32,
    pub(crate) datagram_limit: usize,
    /// Whether the peer was told that it may send bundles.
    pub(crate) takes_bundles: bool,
    /// Whether both sides take them.
    pub(crate) sends_bundles: bool,
}

/// A live session.
pub(crate) struct Session {
    pub(crate) path: Path,
    pub(crate) index: SessionIndex,
    pub(crate) remote_index: SessionIndex,
    /// What a RESET of the peer must carry (SPEC §12.1), and what ours would.
    pub(crate) peer_token: Option<[u8; 16]>,
    own_token: [u8; 16],
    /// The client waits for our CONFIRM.
    confirm_due: bool,
    pub(crate) seal: SealKeys,
    pub(crate) open: OpenKeys,
    agreement: Agreement,
    stripes: Vec<Stripe>,
    /// Messages begin in the stripes in turn.
    next_stripe: usize,
    calls: Table<Call>,
    /// Bundles among the calls, those included whose id is cancelled.
    bundles: usize,
    /// The last incomplete bundle of the peer that was let in without room for it.
    bundle_in_reserve: Option<MessageId>,
    served: Table<Served>,
    /// How many of them the books have.
    served_booked: u32,
    /// Bytes of replies that are not acknowledged, alone or in bundles.
    kept_replies: usize,
    /// Bytes that unfinished messages of the peer may come to hold.
    promised: usize,
    early: EarlyPackets,
    /// Ids whose record 0 was cut, and how many more may be asked about.
    unopened: UnopenedIds,
    unopened_rate: Rate,
    /// Questions of this session that wait for the pace.
    cuts_waiting: usize,
    /// Longest payload of the peer's packets, of those from which a record has opened.
    payload_max: u32,
    control: ControlQueue,
    /// Messages that may send, fewest bytes left first.
    sendable: SendQueue,
    /// The next batch is of messages, although control packets wait: they ask for what those are to bring.
    messages_first: bool,
    /// Datagrams of requests that have left again early since something of the peer has opened.
    requests_again: u8,
    discovery: Discovery,
    /// Earliest moment that the timers may have something to do.
    due: Option<Time>,
    /// Not before then: see [`Self::handle_timeout`].
    earliest: Time,
    /// When something of the peer has last opened.
    heard_at: Time,
    /// The first question that has not been followed by anything from the peer.
    asked_since: Option<Time>,
    /// PING, while the peer is suspected to be gone.
    suspicion: Option<Question>,
    /// Its waits are longer by that than others'.
    jitter: Jitter,
    patience: Patience,
    /// Bounds answers to questions about ids that are not live.
    answers: Rate,
    /// Bounds what is sent again.
    resend_credit: ResendCredit,
    /// See [`Self::used`].
    last_used: Time,
    /// What becomes of its ciphers' tables.
    pub(crate) warmth: Warmth,
    /// It has given up what an unused session does not need.
    is_resting: bool,
    /// EPOCH_DONE is owed or repeated.
    epoch_question: Option<Question>,
    /// Holders of the previous epoch when it was last asked about.
    epoch_held: keys::Held,
    /// EPOCH_DONE has been sent for the previous epoch.
    is_epoch_done: bool,
    /// What is left of the current key is for those first.
    begun: keys::Begun,
    /// The old epoch of the peer whose keys are kept, and since when.
    old_epoch: Option<(u32, Time)>,
    /// Control packets under the present key.
    controls: u64,
    /// KEY_UPDATE_REQUEST, until the peer has moved past this epoch.
    key_request: Option<(u32, Question)>,
    /// WINDOW_REQUEST, since a command was refused for lack of ids.
    blocked: Option<Question>,
    /// Messages that wait for the next key epoch (SPEC §7.3).
    parked: BTreeSet<MessageId>,
    ended: Option<SessionEnd>,
    /// Its place among those with something to send.
    pub(crate) ready: Option<Place>,
    /// The endpoint's timer for this session.
    pub(crate) timer: Option<Time>,
}

/// The state of one stripe (SPEC §4).
struct Stripe {
    allocator: IdAllocator,
    /// Counters below may be used (advertised by the peer).
    peer_limit: u64,
    window: IdWindow,
    /// The limit that the peer was last told.
    told_limit: u64,
    control_counter: u64,
    control_window: ControlWindow,
    acks: PendingAcks,
}

impl Stripe {
    fn new(agreement: &Agreement, stripe: u16) -> Self {
        let (layout, side) = (agreement.layout, agreement.side);
        Self {
            allocator: IdAllocator::new(layout, side, stripe),
            peer_limit: u64::from(agreement.peer_window),
            window: IdWindow::new(agreement.own_window, layout, side.peer(), stripe),
            told_limit: u64::from(agreement.own_window),
            control_counter: 0,
            control_window: ControlWindow::new(),
            acks: PendingAcks::default(),
        }
    }
}

impl Session {
    pub(crate) fn new(
        (now, path): (Time, Path),
        indices: Indices,
        keys: (SealKeys, OpenKeys),
        agreement: Agreement,
        maker: &Maker<'_>,
    ) -> Self {
        let stripes = (0..1u16 << agreement.stripes_log2)
            .map(|stripe| Stripe::new(&agreement, stripe))
            .collect();
        let jitter = indices.jitter();
        let discovery = Discovery::new(now, agreement.datagram_limit);
        Self {
            path,
            index: indices.own,
            remote_index: indices.remote,
            peer_token: None,
            own_token: indices.token,
            confirm_due: false,
            seal: keys.0,
            open: keys.1,
            stripes,
            next_stripe: 0,
            calls: Table::new(maker.setup.table_salt),
            bundles: 0,
            bundle_in_reserve: None,
            served: Table::new(maker.setup.table_salt),
            served_booked: 0,
            kept_replies: 0,
            promised: 0,
            early: EarlyPackets::default(),
            unopened: UnopenedIds::default(),
            unopened_rate: Rate::new(limits::UNOPENED_PER_SECOND),
            cuts_waiting: 0,
            payload_max: 0,
            control: ControlQueue::default(),
            sendable: SendQueue::default(),
            messages_first: false,
            requests_again: 0,
            due: Some(now),
            earliest: now,
            discovery,
            heard_at: now,
            asked_since: None,
            suspicion: None,
            jitter,
            patience: Patience::new(jitter.lengthen(maker.config.resend_interval)),
            answers: Rate::new(limits::ANSWERS_PER_SECOND),
            resend_credit: ResendCredit::new(now),
            last_used: now,
            warmth: Warmth::Cold,
            is_resting: false,
            epoch_question: None,
            epoch_held: keys::Held::default(),
            is_epoch_done: false,
            begun: keys::Begun::default(),
            old_epoch: None,
            controls: 0,
            key_request: None,
            blocked: None,
            parked: BTreeSet::new(),
            ended: None,
            ready: None,
            timer: None,
            agreement,
        }
    }

    /// The session is over: every call ends, every request that is worked on is cancelled.
    pub(crate) fn end(&mut self, end: SessionEnd, shared: &mut Shared) {
        if self.ended.is_some() {
            return;
        }
        self.end_messages(&end, shared);
        self.control = ControlQueue::default();
        self.confirm_due = false;
        shared.events.push_back(Event::SessionEnded {
            session: self.index,
            end: end.clone(),
        });
        self.ended = Some(end);
    }

    /// Something of the peer has opened that it sends to who is heard: what was asked may be answered by it.
    fn heard(&mut self, now: Time) {
        self.spoke(now);
        self.asked_since = None;
        self.suspicion = None;
    }

    /// Something of the peer has opened. It need not hear this side.
    fn spoke(&mut self, now: Time) {
        self.heard_at = now;
        self.requests_again = 0;
    }

    /// A message of either side begins, goes on or ends: the session is in use. Control packets alone are no use of it, nor
    /// is a bundle of which nothing is new.
    fn used(&mut self, now: Time) {
        self.is_resting = false;
        self.last_used = now;
    }

    /// When anything of the peer has last opened, or the session was used.
    fn last_active(&self) -> Time {
        self.heard_at.max(self.last_used)
    }

    pub(crate) fn last_used(&self) -> Time {
        self.last_used
    }

    fn rpc(&self, id: MessageId) -> RpcId {
        RpcId {
            session: self.index,
            id,
        }
    }

    /// The counter's distance from the id's low end: k + 1 (SPEC §4.1).
    fn shift(&self) -> u32 {
        u32::from(self.agreement.stripes_log2) + 1
    }

    fn set_due(&mut self, due: Time) {
        let due = due.max(self.earliest);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    pub(crate) fn due(&self) -> Option<Time> {
        if self.ended.is_some() { None } else { self.due }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(crate) fn side(&self) -> Side {
        self.agreement.side
    }

    /// Whether the application's answer to a request is still wanted.
    pub(crate) fn is_wanted(&self, id: MessageId) -> bool {
        let served = self.served.get(id.0);
        served.is_some_and(|served| matches!(served.state, ServedState::Working { .. }))
    }

    /// Requests that the application works on, and replies that are not acknowledged.
    pub(crate) fn served_len(&self) -> usize {
        self.served.len()
    }

    /// Calls and one-way messages in progress.
    pub(crate) fn calls_len(&self) -> usize {
        self.calls.len()
    }

    /// UDP payload bytes of a datagram, as discovered so far.
    pub(crate) fn datagram_size(&self) -> usize {
        self.discovery.size()
    }

    /// The largest message that the peer accepts, in bytes before padding.
    pub(crate) fn message_max(&self) -> u32 {
        self.agreement.message_max
    }
}

/// The two indices of a session.
#[derive(Clone, Copy)]
pub(crate) struct Indices {
    pub(crate) own: SessionIndex,
    pub(crate) remote: SessionIndex,
    /// The reset token of `own` (SPEC §12.1).
    pub(crate) token: [u8; 16],
}

impl Indices {
    /// One of the two hosts gives each of its sessions another index, so those that share its link differ.
    fn jitter(&self) -> Jitter {
        let [own, remote] = [self.own, self.remote].map(|index| index.0.to_be_bytes());
        Jitter::of(own.iter().chain(&remote))
    }
}

impl Agreement {
    /// The padded length of a message of this many application bytes.
    fn padded(&self, padding: &Padding, length: u32) -> u32 {
        let header = smt_wire::InnerHeader::LEN as u32;
        padding.padded(header + length, header + self.message_max)
    }
}
