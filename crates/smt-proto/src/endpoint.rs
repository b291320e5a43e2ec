// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint: all sessions behind one carrier.
//!
//! 1. `commands`: what the application asks. 2. `receive`: from a datagram to its session;
//!    `handshake`: to its handshake. 3. `transmit`: the sender whose turn it is. 4. `timing`:
//!    timers; `schedule`: the places of senders after each change. 5. `delivery`: events and
//!    messages, as the application takes them; `backpressure`: the requests that have to wait.
//!    6. `eviction`: room for a newcomer's session.
//!
//! The contract is in the crate's documentation.

use alloc::boxed::Box;
mod backpressure;
mod commands;
mod delivery;
mod early;
mod eviction;
mod handshake;
mod receive;
mod schedule;
mod timing;
mod transmit;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::net::SocketAddr;

use backpressure::Backpressure;
pub use commands::{CallOptions, ConnectRequest};
use delivery::AcceptQueue;
use schedule::{Schedule, Sender};
use smt_carrier::{Associations, Capabilities, KeyStore, Path};
use smt_record::{AeadProvider, CryptoProvider, KeyLog};
use smt_wire::SessionIndex;

use crate::collections::id_map::IdMap;
use crate::config::Config;
use crate::establish::address_shares::AddressShares;
use crate::establish::agreement::OwnIndex;
use crate::establish::client::ClientHandshake;
use crate::establish::identity_shares::IdentityShares;
use crate::establish::non_smt_packets::NonSmtPackets;
use crate::establish::server::ServerHandshake;
use crate::establish::session_factory::CryptoContext;
use crate::establish::stateless::Stateless;
use crate::event::{ConnectId, RpcId};
use crate::grant::policy::{ActivePolicy, GrantPolicy, PullPolicy};
use crate::grant::srpt::ShortestRemainingFirst;
use crate::key_exchange::{KeyExchangeProvider, TokenMac};
use crate::send::flight_rest::FlightRest;
use crate::session::Session;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::time::{Time, WallClock, WallTime};

/// All sessions behind one carrier. See the crate's documentation for how to drive it.
pub struct Endpoint {
    crypto: CryptoContext,
    policy: ActivePolicy,
    shared: Shared,
    backpressure: Backpressure,
    accept_queue: AcceptQueue,
    stateless: Stateless,
    sessions: IdMap<Box<Session>>,
    connects: IdMap<ClientHandshake>,
    accepts: IdMap<ServerHandshake>,
    /// Attempts to connect, by the index of the present attempt.
    connect_of: BTreeMap<SessionIndex, ConnectId>,
    /// Packets from the addresses of their servers that no SMT server sends.
    foreign: NonSmtPackets,
    /// Handshakes of clients, by where they are and the index they chose.
    accept_of: BTreeMap<(SocketAddr, SessionIndex), SessionIndex>,
    /// Handshakes in progress, by address, and those of clients without a cookie.
    accept_shares: AddressShares,
    accepts_without_cookie: usize,
    /// Handshakes of clients whose sessions have begun with early data.
    accepts_early: usize,
    /// Live sessions, by the peer's address and the index that the peer chose, which is the one
    /// that RESET names. A client that restarted may choose an index again, so our own index is the
    /// third part and makes the entry unique.
    by_remote: BTreeSet<(SocketAddr, SessionIndex, SessionIndex)>,
    /// Sessions of clients, by address.
    session_shares: AddressShares,
    identity_shares: IdentityShares,
    /// Where the next search for a session to close begins, see `eviction`.
    eviction_from: (SocketAddr, SessionIndex, SessionIndex),
    /// Boot number of the index that is issued next.
    boot: u32,
    next_serial: u32,
    next_connect: u64,
    flight_rest: Option<FlightRest>,
    /// How often the carrier's device had replaced its keys when that was last looked at.
    rotations: u64,
    schedule: Schedule,
    /// See [`Endpoint::leave_to_original`].
    is_copy: bool,
}

/// The purpose of a timer, as [`Endpoint::poll_timeout`] tells it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimerReason {
    /// A handshake: repetition or deadline.
    Handshake,
    /// A session: deadlines, questions, keys, idleness.
    Session,
    /// Grants that wait for the pacer of a policy that pulls ([`crate::Pull`]).
    Pull,
    /// Grants that wait because memory is full and the message whose turn it is does not arrive.
    Grant,
}

impl Endpoint {
    /// An endpoint without sessions, with the ciphers and hashes of aws-lc.
    ///
    /// # Panics
    /// If the configuration is out of the ranges that its fields state.
    #[cfg(feature = "aws-lc")]
    #[must_use]
    pub fn new(
        config: Config,
        provider: Arc<dyn KeyExchangeProvider>,
        mac: Arc<dyn TokenMac>,
    ) -> Self {
        Self::with_crypto(config, provider, mac, CryptoProvider::aws_lc())
    }

    /// An endpoint without sessions, with ciphers and hashes of its owner's choice: those of a
    /// kernel, for example.
    ///
    /// # Panics
    /// If the configuration is out of the ranges that its fields state.
    #[must_use]
    pub fn with_crypto(
        config: Config,
        provider: Arc<dyn KeyExchangeProvider>,
        mac: Arc<dyn TokenMac>,
        crypto: CryptoProvider,
    ) -> Self {
        config.assert_valid();
        let stateless = Stateless::new(config.version, config.boot, mac);
        let salt = stateless.table_salt();
        let boot = config.boot;
        let next_serial = config.shard.first_serial(boot);
        let shared = Shared::new(config);
        Self {
            crypto: CryptoContext::new(provider, crypto, salt),
            policy: ActivePolicy::Grant(Box::new(ShortestRemainingFirst::default())),
            shared,
            backpressure: Backpressure::default(),
            accept_queue: AcceptQueue::default(),
            stateless,
            sessions: IdMap::new(salt),
            connects: IdMap::new(salt),
            accepts: IdMap::new(salt),
            connect_of: BTreeMap::new(),
            foreign: NonSmtPackets::default(),
            accept_of: BTreeMap::new(),
            accept_shares: AddressShares::default(),
            accepts_without_cookie: 0,
            accepts_early: 0,
            by_remote: BTreeSet::new(),
            session_shares: AddressShares::default(),
            identity_shares: IdentityShares::new(salt),
            eviction_from: eviction::START,
            boot,
            next_serial,
            next_connect: 1,
            flight_rest: None,
            rotations: 0,
            schedule: Schedule::new(),
            is_copy: false,
        }
    }

    /// Writes the secrets of all sessions that begin from now on to a key log (SPEC §13). A reader
    /// of the log can read the sessions.
    pub fn set_key_log(&mut self, log: Arc<dyn KeyLog>) {
        self.crypto.key_log = Some(log);
    }

    /// Replaces the grant policy, by default [`ShortestRemainingFirst`].
    pub fn set_grant_policy(&mut self, policy: Box<dyn GrantPolicy>) {
        self.shared.grants.set_pulling(None);
        self.policy = ActivePolicy::Grant(policy);
    }

    /// Replaces the grant policy by one that pulls: [`Pull`](crate::Pull), for example.
    pub fn set_pull_policy(&mut self, policy: Box<dyn PullPolicy>) {
        self.shared.grants.set_pulling(Some(policy.pulling()));
        self.policy = ActivePolicy::Pull(policy);
    }

    /// Tells the abilities of the carrier, which the endpoint obeys from now on: no batch is larger
    /// than the carrier takes, and batches have priorities only if the carrier has. No session that
    /// begins from now on sends or probes a larger datagram than the carrier's. Until told, the
    /// endpoint counts on a UDP socket: datagrams and batches of 65,507 bytes, 64 datagrams in a
    /// batch, priorities.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.shared.capabilities = capabilities;
    }

    /// Lets the carrier seal the records of sessions that begin from now on itself, with keys that
    /// it gets by this store (`Capabilities::seals`): batches then name the records
    /// ([`TransmitBuffer::batch`](crate::TransmitBuffer::batch)).
    pub fn set_key_store(&mut self, store: Arc<dyn KeyStore>) {
        self.crypto.library = self.crypto.library.with_key_store(store);
    }

    /// Lets the carrier seal the packets of sessions that begin from now on itself, instead of
    /// their records, if the peer's carrier does too (SPEC §15.4): batches then name the
    /// association that they leave under, and arrivals the one that they came under. Sessions by
    /// ticket, and those with peers that do not, have sealed records as ever.
    pub fn set_associations(&mut self, associations: Arc<dyn Associations>) {
        self.rotations = associations.rotations();
        self.crypto.associations = Some(associations);
    }

    /// Sets the key exchange provider of new handshakes: with renewed certificates, for example.
    pub fn set_provider(&mut self, provider: Arc<dyn KeyExchangeProvider>) {
        self.crypto.provider = provider;
    }

    /// Tells the wall time at `now`, which certificates and tickets are judged by. The endpoint
    /// reckons on by its own time; tell it again now and then, since clocks drift and are set.
    pub fn set_wall_time(&mut self, now: Time, wall: WallTime) {
        self.crypto.wall = Some(WallClock { at: now, wall });
    }

    /// Sets other ciphers for sessions that begin from now on, for simulators and hardware.
    pub fn set_aead_provider(&mut self, aead: Arc<dyn AeadProvider>) {
        self.crypto.library = self.crypto.library.with_aead(aead);
    }

    /// When [`Self::handle_timeout`] is to be called if no datagram and no command comes before,
    /// and the purpose of that timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Time, TimerReason)> {
        let first = self.schedule.first_timer().map(|(time, sender)| {
            let reason = if matches!(sender, Sender::Session(_)) {
                TimerReason::Session
            } else {
                TimerReason::Handshake
            };
            (time, reason)
        });
        let pull = self.policy.next_pull();
        let pull = pull.map(|time| (time, TimerReason::Pull));
        // Turns under memory pressure do not come while the pacer is closed.
        let turn = self.shared.grants.next_timeout();
        let turn = turn.map(|time| (time, TimerReason::Grant));
        let grants = pull.or(turn);
        first.into_iter().chain(grants).min_by_key(|(time, _)| *time)
    }

    /// The counters so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics
    }

    /// Live sessions.
    #[must_use]
    pub fn sessions_len(&self) -> usize {
        self.sessions.len()
    }

    /// Bytes held by incomplete messages, by reordered packets, and by whole messages as told by
    /// [`Self::set_untaken`].
    #[must_use]
    pub fn memory(&self) -> usize {
        self.shared.memory.held() + self.shared.reordered_memory
    }

    /// The part of [`Self::memory`] that reordered packets hold: those that came before record 0 of
    /// their messages.
    #[must_use]
    pub fn reordered_memory(&self) -> usize {
        self.shared.reordered_memory
    }

    /// Bytes of replies, and of parts of replies, that no caller has acknowledged; they are not in
    /// [`Self::memory`].
    #[must_use]
    pub fn replies_memory(&self) -> usize {
        self.shared.memory.replies()
    }

    /// Bytes of messages that [`Self::poll_event`] has told of and that the application has not
    /// taken from their owner. They count towards
    /// [`TransportConfig::memory_max`](crate::TransportConfig::memory_max): while that is reached,
    /// new messages of peers are not taken, and come again.
    pub fn set_untaken(&mut self, bytes: usize) {
        self.shared.memory.set_untaken(bytes);
    }

    /// Bounds the bytes that [`Self::set_untaken`] tells, for an owner from which perhaps no
    /// message is ever taken. A peer's message that would wait beyond the bound is not accepted,
    /// and comes again. Replies are accepted, since a caller waits for them.
    pub fn set_untaken_max(&mut self, bytes: usize) {
        self.shared.memory.set_untaken_max(bytes);
    }

    /// Whether a request waits for its reply: it is not answered, and its caller has not given up.
    #[must_use]
    pub fn is_wanted(&self, rpc: RpcId) -> bool {
        let session = self.sessions.get(rpc.session.0);
        session.is_some_and(|session| session.is_wanted(rpc.id))
    }

    /// Whether a peer gets no more replies, since it has left too many unacknowledged, or all peers
    /// together have. Its further requests are not taken. Those that were taken already SHOULD wait
    /// for their answers, which would be kept too (SPEC §10). The state ends with acknowledgements,
    /// which come by [`Self::handle_arrival`], or with the end of this session or of others that
    /// keep much.
    #[must_use]
    pub fn keeps_too_much(&self, session: SessionIndex) -> bool {
        let session = self.sessions.get(session.0);
        session.is_some_and(|session| session.keeps_too_much(&self.shared))
    }

    /// Facts about a live session. The answer is `None` from its end on, although its CLOSE may not
    /// have left yet.
    #[must_use]
    pub fn session(&self, session: SessionIndex) -> Option<SessionFacts> {
        let session = self.sessions.get(session.0)?;
        (!session.has_ended()).then_some(SessionFacts {
            path: session.path,
            datagram_size: session.datagram_size(),
            message_max: session.message_max(),
            part_max: session.part_max(),
            calls: session.calls_len(),
            served: session.served_len(),
            asked_since: session.asked_since(),
            seal_epoch: session.keys.seal.epoch(),
            open_epoch: session.keys.open.epoch(),
            psp_version: session.psp_version(),
        })
    }

    /// A new session index and its reset token; `None` if the serials of all boot numbers of this
    /// run are used up.
    fn issue_index(&mut self, path: Path) -> Option<OwnIndex> {
        let step = u32::from(self.shared.config.shard.count());
        if self.next_serial.checked_add(step).is_none() {
            self.advance_boot()?;
        }
        let index = SessionIndex::new(self.boot, self.next_serial);
        self.next_serial += step;
        Some(OwnIndex { index, reset_token: self.stateless.reset_token(path, index) })
    }

    /// Goes on to the next boot number, since the serials of this one are used up.
    fn advance_boot(&mut self) -> Option<()> {
        let config = &self.shared.config;
        let more = self.boot.wrapping_sub(config.boot).checked_add(1)?;
        if config.durable_boot && more >= config.boots {
            return None;
        }
        self.boot = match config.durable_boot {
            true => self.boot.checked_add(1)?,
            false => self.boot.wrapping_add(1),
        };
        self.next_serial = config.shard.first_serial(self.boot);
        Some(())
    }

    /// Whether this endpoint has issued an index, or never will, under a boot number that it has
    /// used or uses.
    fn has_issued(&self, index: SessionIndex) -> bool {
        let config = &self.shared.config;
        // Boot numbers are counted from the first of this run.
        let [of_index, present] = [index.boot(), self.boot].map(|b| b.wrapping_sub(config.boot));
        let is_past =
            of_index < present || of_index == present && index.serial() < self.next_serial;
        is_past && config.shard.issues(index) && index.serial() != 0
    }
}

/// Facts about a live session.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct SessionFacts {
    /// Where the peer is.
    pub path: Path,
    /// UDP payload bytes of a datagram, as discovered so far.
    pub datagram_size: usize,
    /// Application bytes of the largest message that the peer accepts.
    pub message_max: u32,
    /// Bytes of the longest part of a call that the peer accepts; 0 if it takes no calls in parts.
    pub part_max: u32,
    /// Calls and one-way messages of this side in progress.
    pub calls: usize,
    /// Requests of the peer in progress, replies not acknowledged included.
    pub served: usize,
    /// Since when a question to the peer waits for an answer: for long where the peer is gone.
    pub asked_since: Option<Time>,
    /// Key epoch of this side's sending keys.
    pub seal_epoch: u32,
    /// Key epoch of the peer's sending keys.
    pub open_epoch: u32,
    /// The version of PSP by which carriers seal its packets; `None`: its records are sealed.
    pub psp_version: Option<u8>,
}
