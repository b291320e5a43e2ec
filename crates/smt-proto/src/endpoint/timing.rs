// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timers of an endpoint, and the accounting that ends every change.

use alloc::boxed::Box;
use alloc::vec::Vec;
use smt_record::Side;
use smt_wire::SessionIndex;

use super::{Endpoint, Sender};
use crate::error::ConnectError;
use crate::establish::client::ClientHandshake;
use crate::establish::client::Progress;
use crate::establish::established::Established;
use crate::establish::session_factory::SessionFactory;
use crate::event::{ConnectId, Event};
use crate::memory::cipher_cache::CipherSlot;
use crate::session::Session;
use crate::time::Time;

impl Endpoint {
    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.follow_rotation(now);
        while let Some(sender) = self.schedule.pop_timer(now) {
            match sender {
                Sender::Session(index) => self.time_session(now, index),
                Sender::ClientHandshake(id) => self.time_connect(now, id),
                Sender::ServerHandshake(index) => self.give_up_accept(index),
            }
        }
        let turn = self.shared.grants.next_timeout();
        if self.is_pull_due(now) || turn.is_some_and(|due| due <= now) {
            self.decide_grants(now);
        }
    }

    /// Lets all sessions with associations give their peers new ones, if the device has replaced
    /// one of its keys since this was last called: those under the older one end with the next.
    pub(super) fn follow_rotation(&mut self, now: Time) {
        let Some(associations) = &self.crypto.associations else {
            return;
        };
        let rotations = associations.rotations();
        if core::mem::replace(&mut self.rotations, rotations) == rotations {
            return;
        }
        let indices: Vec<u64> = self.sessions.iter().map(|(index, _)| index).collect();
        for index in indices {
            if let Some(session) = self.sessions.get_mut(index) {
                session.watch_associations(now);
            }
            self.reschedule(SessionIndex(index));
        }
    }

    /// Brings the accounts of a session up to date after any change: its place in the queue of
    /// senders, its timer, its ciphers' tables, and its end.
    pub(super) fn reschedule(&mut self, index: SessionIndex) {
        let Some(session) = self.sessions.get_mut(index.0) else {
            return;
        };
        session.account_served(&mut self.shared);
        if session.is_schedule_current(&self.shared) {
            return;
        }
        if !session.is_cipher_slot_current() {
            session.cache_ciphers(&mut self.shared);
            self.drop_transient_ciphers();
            return self.reschedule(index);
        }
        if session.has_ended() && !session.has_output(&self.shared) {
            self.remove_session(index);
            return;
        }
        let sender = Sender::Session(index);
        self.schedule.settle(sender, session.as_mut(), &self.shared);
    }

    pub(super) fn reschedule_connect(&mut self, id: ConnectId) {
        if let Some(connect) = self.connects.get_mut(id.0) {
            let sender = Sender::ClientHandshake(id);
            self.schedule.settle(sender, connect, &self.shared);
        }
    }

    pub(super) fn reschedule_accept(&mut self, index: SessionIndex) {
        if let Some(accept) = self.accepts.get_mut(index.0) {
            let sender = Sender::ServerHandshake(index);
            self.schedule.settle(sender, accept, &self.shared);
        }
    }

    /// Makes sessions that are not to keep their ciphers' tables give them up for others.
    fn drop_transient_ciphers(&mut self) {
        let most = self.shared.config.cipher_cache_sessions;
        while let Some(index) = self.shared.cipher_cache.surplus_transient(most) {
            let session = self.sessions.get_mut(index.0);
            // The session may have hibernated and come back as one that keeps them.
            if let Some(transient) =
                session.filter(|session| session.cipher_slot == CipherSlot::Transient)
            {
                transient.drop_ciphers(&mut self.shared);
            }
        }
    }

    /// Acts on the progress of a connect: a session, another attempt, or an error.
    pub(super) fn progress(&mut self, now: Time, id: ConnectId, progress: Progress) {
        match progress {
            Progress::Waiting => self.reschedule_connect(id),
            Progress::Restart => self.restart(now, id),
            Progress::Live(mut established) => {
                let early = self.connects.get_mut(id.0).map(ClientHandshake::take_early);
                self.remove_connect(id);
                let index = established.indices.own;
                let peer = core::mem::take(&mut established.peer);
                self.shared.statistics.sessions_resumed += u64::from(peer.is_resumed);
                self.start_session(now, *established);
                self.shared.events.push_back(Event::Connected {
                    connect: id,
                    session: index,
                    peer,
                });
                if let Some(early) = early {
                    self.begin_early_calls(now, id, index, early);
                }
                self.reschedule(index);
            }
            Progress::Failed(error) => {
                self.remove_connect(id);
                self.shared.events.push_back(Event::ConnectFailed { connect: id, error });
            }
        }
    }

    /// Begins a session, since the peer has confirmed.
    pub(super) fn start_session(&mut self, now: Time, established: Established) {
        let index = established.indices.own;
        self.insert_session(established);
        if let Some(session) = self.sessions.get_mut(index.0) {
            session.confirmed(now);
        }
    }

    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(super) fn insert_session(&mut self, mut established: Established) {
        let agreed_at = established.agreed_at;
        let association_room = established.association_room.take();
        let datagram_max = self.shared.capabilities.datagram_max;
        let factory = SessionFactory { config: &self.shared.config, crypto: &self.crypto };
        let mut session = Box::new(Session::new(established, &factory, datagram_max));
        let limits = self.shared.config.key_limits;
        session.begin_associations(agreed_at, association_room, limits);
        let index = session.index;
        tracing::debug!(%index, path = %session.path, side = ?session.side(), "session is live");
        self.by_remote.insert((session.path.remote, session.remote_index, index));
        self.shared.statistics.sessions_begun += 1;
        if session.side() == Side::Server {
            self.session_shares.add(session.path.remote.ip());
        }
        self.sessions.insert(index.0, session);
    }

    pub(super) fn remove_connect(&mut self, id: ConnectId) {
        let Some(connect) = self.connects.remove(id.0) else {
            return;
        };
        self.connect_of.remove(&connect.index());
        self.foreign.remove_connect(connect.path.remote);
        self.schedule.stop(Sender::ClientHandshake(id), connect.slot.timer);
    }

    pub(super) fn remove_accept(&mut self, index: SessionIndex) {
        let Some(accept) = self.accepts.remove(index.0) else {
            return;
        };
        self.accept_of.remove(&(accept.path.remote, accept.remote));
        self.schedule.stop(Sender::ServerHandshake(index), accept.slot.timer);
        self.accepts_without_cookie -= usize::from(!accept.has_cookie());
        self.accepts_early -= usize::from(accept.has_early_session());
        self.accept_shares.remove(accept.path.remote.ip());
    }

    pub(super) fn remove_session(&mut self, index: SessionIndex) {
        let Some(session) = self.sessions.remove(index.0) else {
            return;
        };
        tracing::debug!(%index, path = %session.path, "session has ended");
        self.shared.cipher_cache.leave(session.cipher_slot);
        if session.side() == Side::Server {
            self.session_shares.remove(session.path.remote.ip());
            if let Some(identity) = session.identity {
                self.identity_shares.remove(identity, index);
            }
        }
        self.by_remote.remove(&(session.path.remote, session.remote_index, index));
        self.schedule.stop(Sender::Session(index), session.slot.timer);
    }

    fn time_session(&mut self, now: Time, index: SessionIndex) {
        let Some(session) = self.sessions.get_mut(index.0) else {
            return;
        };
        session.slot.timer = None;
        session.handle_timeout(now, &mut self.shared);
        self.reschedule(index);
    }

    fn time_connect(&mut self, now: Time, id: ConnectId) {
        let Some(connect) = self.connects.get_mut(id.0) else {
            return;
        };
        connect.slot.timer = None;
        let foreign = self.foreign.last(connect.path.remote);
        let progress = connect.handle_timeout(now, foreign);
        self.progress(now, id, progress);
    }

    fn restart(&mut self, now: Time, id: ConnectId) {
        self.shared.statistics.handshakes_failed += 1;
        let Some(path) = self.connects.get(id.0).map(|connect| connect.path) else {
            return;
        };
        let Some(own) = self.issue_index(path) else {
            self.progress(now, id, Progress::Failed(ConnectError::IndicesUsedUp));
            return;
        };
        let factory = SessionFactory { config: &self.shared.config, crypto: &self.crypto };
        let Some(connect) = self.connects.get_mut(id.0) else {
            return;
        };
        self.connect_of.remove(&connect.index());
        let progress = connect.restart(now, own, &factory);
        self.connect_of.insert(connect.index(), id);
        self.progress(now, id, progress);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use smt_carrier::Path;
    use smt_record::Suite;

    use super::*;
    use crate::config::Config;
    use crate::key_exchange::{
        Attempt, ClientRequest, Failed, HandshakeFailure, Input, KeyExchange, KeyExchangeProvider,
        MacPurpose, Step, TokenMac,
    };
    use crate::time::WallTime;
    use std::prelude::v1::{Box, Vec};

    /// A key exchange that begins and never gets an answer.
    struct Unheard;

    impl KeyExchangeProvider for Unheard {
        fn client(&self, _: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
            Ok(Attempt {
                kind: smt_wire::KeyExchange::Tls13,
                suites: vec![Suite::Aes128Gcm],
                key: None,
                early_max: 0,
                exchange: Box::new(Self),
            })
        }
        fn server(&self, _: &[u8], _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
            unreachable!("no client connects")
        }
    }

    impl KeyExchange for Unheard {
        fn step(&mut self, _: Input<'_>) -> Result<Step, Failed> {
            Ok(Step::default())
        }
    }

    impl TokenMac for Unheard {
        fn mac(&self, _: MacPurpose, _: &[&[u8]]) -> [u8; 16] {
            [0; 16]
        }
    }

    #[test]
    fn a_connect_ends_when_no_index_is_left_for_another_attempt() {
        let mut endpoint = durable(1);
        let path = path();
        let hour = Duration::from_secs(3_600);
        endpoint.next_serial = u32::MAX - 1;
        let id = endpoint.connect(Time::default(), path, "server", hour).unwrap();
        let refused = endpoint.connect(Time::default(), path, "server", hour);
        assert_eq!(refused, Err(ConnectError::IndicesUsedUp));
        while let Some((due, _)) = endpoint.poll_timeout() {
            endpoint.handle_timeout(due);
            assert!(due < Time::default() + hour, "it waits for its deadline");
        }
        let Some(Event::ConnectFailed { connect, error }) = endpoint.poll_event() else {
            panic!("no event");
        };
        assert_eq!((connect, error), (id, ConnectError::IndicesUsedUp));
    }

    fn durable(boots: u32) -> Endpoint {
        let mut config = Config::default();
        (config.boot, config.boots, config.durable_boot) = (7, boots, true);
        Endpoint::new(config, Arc::new(Unheard), Arc::new(Unheard))
    }

    fn path() -> Path {
        Path::to("192.0.2.1:17379".parse().unwrap())
    }

    /// The next indices if the next serial is this one.
    fn issued_from(endpoint: &mut Endpoint, serial: u32, count: usize) -> Vec<Option<(u32, u32)>> {
        endpoint.next_serial = serial;
        let issued = (0..count).map(|_| endpoint.issue_index(path()));
        issued.map(|issued| issued.map(|own| (own.index.boot(), own.index.serial()))).collect()
    }

    // SMT [6.3-22], [6.3-23]
    #[test]
    fn the_next_boot_number_of_this_run_follows_when_serials_are_used_up() {
        let mut endpoint = durable(2);
        let issued = issued_from(&mut endpoint, u32::MAX - 1, 3);
        assert_eq!(issued, [Some((7, u32::MAX - 1)), Some((8, 1)), Some((8, 2))]);
        let issued = issued_from(&mut endpoint, u32::MAX - 1, 2);
        assert_eq!(issued, [Some((8, u32::MAX - 1)), None], "9 is the next run's");
    }

    #[test]
    fn some_boot_number_always_follows_without_a_durable_counter() {
        let mut config = Config::default();
        (config.boot, config.shard) = (u32::MAX, smt_wire::Shard::new(1, 4));
        let shard = config.shard;
        let mut endpoint = Endpoint::new(config, Arc::new(Unheard), Arc::new(Unheard));
        let issued = issued_from(&mut endpoint, u32::MAX - 3, 1);
        assert_eq!(issued, [Some((0, shard.first_serial(0)))]);
        assert!(shard.issues(SessionIndex::new(0, shard.first_serial(0))));
    }

    /// An index of an earlier boot number of this run may be live, here or in another shard.
    #[test]
    fn indices_of_a_boot_number_that_is_used_up_are_reset_only_if_they_are_closed() {
        let mut endpoint = durable(2);
        issued_from(&mut endpoint, u32::MAX - 1, 2);
        let hour = Duration::from_secs(3_600);
        endpoint.next_serial = u32::MAX - 1;
        endpoint.boot = 7;
        let now = Time::default();
        endpoint.connect(now, path(), "server", hour).unwrap();
        endpoint.connect(now, path(), "server", hour).unwrap();
        let mut resets = |boot, serial| {
            let before = endpoint.shared.statistics.resets_sent;
            endpoint.handle_unknown_session(now, path(), SessionIndex::new(boot, serial), 100);
            endpoint.shared.statistics.resets_sent - before
        };
        assert_eq!(resets(7, u32::MAX - 1), 0, "in progress");
        assert_eq!(resets(8, 1), 0, "in progress");
        assert_eq!(resets(8, 2), 0, "not issued");
        assert_eq!(resets(9, 1), 0, "the next run's");
        assert_eq!(resets(7, 5), 1, "closed");
        assert_eq!(resets(6, 5), 1, "an earlier run's");
    }
}
