// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HANDSHAKE packets of an endpoint: to the attempt that they name, or to a new client's handshake.
//!
//! Not here: which new clients are taken (`establish::admission`), and the handshakes themselves
//! (`establish`).

use alloc::string::ToString;
use core::net::IpAddr;

use smt_carrier::Path;
use smt_wire::{Handshake, SessionIndex};

use super::Endpoint;
use super::receive::is_on;
use crate::error::Unavailability;
use crate::establish::admission::{Admission, Load};
use crate::establish::server::ServerHandshake;
use crate::establish::session_factory::SessionFactory;
use crate::event::Event;
use crate::limits::DATAGRAM_FLOOR;
use crate::time::Time;

/// A HANDSHAKE packet that has come.
pub(super) struct HandshakePacket<'a> {
    pub(super) path: Path,
    pub(super) packet: &'a Handshake<'a>,
    /// Bytes of the packet, padding included.
    pub(super) length: usize,
}

impl Endpoint {
    /// Takes a HANDSHAKE packet that names an index of this side.
    pub(super) fn handle_handshake(&mut self, now: Time, came: &HandshakePacket<'_>) {
        let (path, packet) = (came.path, came.packet);
        let index = packet.destination;
        if let Some(id) = self.connect_at(path, index) {
            let factory = SessionFactory { config: &self.shared.config, crypto: &self.crypto };
            let Some(connect) = self.connects.get_mut(id.0) else {
                return;
            };
            let progress = connect.handle_handshake(now, packet, &factory);
            self.progress(now, id, progress);
            return;
        }
        let is_known = self
            .accepts
            .get(index.0)
            .is_some_and(|accept| is_on(accept.path, path) && accept.remote == packet.source);
        if is_known {
            self.advance_accept(now, index, came);
        } else {
            self.shared.statistics.packets_unknown_session += 1;
        }
    }

    /// Takes flight 1: the only packet that may make state for an address that has not been
    /// validated.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(super) fn handle_first_flight(&mut self, now: Time, came: &HandshakePacket<'_>) {
        let (path, packet) = (came.path, came.packet);
        if !self.shared.config.accept || packet.flight != 1 || packet.source == SessionIndex(0) {
            self.shared.statistics.packets_unknown_session += 1;
            if self.connect_at(path, packet.source).is_some() {
                // This side's own flight: what is there sends back what it gets.
                self.foreign.note(now, path.remote);
            }
            return;
        }
        let name = (path.remote, packet.source);
        if let Some(index) = self.accept_of.get(&name).copied() {
            self.advance_accept(now, index, came);
            return;
        }
        let stateless = &self.stateless;
        let admission = self
            .load(path.remote.ip())
            .admission(|| stateless.is_cookie(now, path.remote, packet.source, packet.cookie));
        match admission {
            Admission::Admit { has_cookie } => self.start_accept(now, came, has_cookie),
            Admission::AdmitByEviction if self.evict_handshake(path.remote.ip()) => {
                self.start_accept(now, came, true);
            }
            Admission::AdmitByEviction => {}
            Admission::AskForCookie if packet.offset == 0 => {
                self.ask_for_cookie(now, path, packet.source, came.length);
            }
            Admission::AskForCookie => {}
            Admission::Refuse(why) => self.refuse(now, came, why),
        }
    }

    /// The numbers by which a new client at this address is taken or not.
    fn load(&self, client: IpAddr) -> Load {
        let config = &self.shared.config;
        Load {
            is_draining: self.shared.is_draining,
            sessions_free: config.sessions_max.saturating_sub(self.sessions.len()),
            may_evict: self.session_shares.excess(client).is_some(),
            handshakes: self.accepts.len(),
            without_cookie: self.accepts_without_cookie,
            without_cookie_max: config.accepts_without_cookie,
            of_prefix: self.accept_shares.of_prefix(client),
        }
    }

    /// Begins the handshake of a client.
    fn start_accept(&mut self, now: Time, came: &HandshakePacket<'_>, has_cookie: bool) {
        let (path, packet) = (came.path, came.packet);
        let Some(own) = self.issue_index(path) else {
            self.refuse(now, came, Unavailability::Full);
            return;
        };
        let cookie = if has_cookie { packet.cookie } else { &[] };
        let accept = ServerHandshake::new(now, path, packet.source, own, cookie);
        if !has_cookie {
            self.accepts_without_cookie += 1;
        }
        self.accept_shares.add(path.remote.ip());
        self.accept_of.insert((path.remote, packet.source), own.index);
        self.accepts.insert(own.index.0, accept);
        self.advance_accept(now, own.index, came);
    }

    /// Makes room for a client that has shown a cookie: the oldest handshake of the addresses that
    /// have more than their share is forgotten, so that a few addresses cannot keep all others out.
    /// Returns whether there is room now.
    fn evict_handshake(&mut self, newcomer: IpAddr) -> bool {
        let Some(excess) = self.accept_shares.excess(newcomer) else {
            return false;
        };
        let accepts = self.accepts.iter().map(|(_, accept)| accept);
        let of_most = accepts.filter(|accept| excess.has(accept.path.remote.ip()));
        let Some(oldest) = of_most.map(|accept| accept.index()).min() else {
            return false;
        };
        self.give_up_accept(oldest);
        true
    }

    /// Asks a client to show that it receives at its address, if its packet is padded as the
    /// specification has it (§6.2): others are cheap to send, and would use up the rate. Returns
    /// whether it was asked.
    fn ask_for_cookie(
        &mut self,
        now: Time,
        path: Path,
        client: SessionIndex,
        length: usize,
    ) -> bool {
        let is_asked = length >= DATAGRAM_FLOOR && self.stateless.cookie(now, path, client);
        self.shared.statistics.cookies_sent += u64::from(is_asked);
        is_asked
    }

    /// Tells a client why it is not taken. A flight's first packet alone is answered, and only if
    /// it is padded as the specification has it (§6.2): many small ones in a datagram would make
    /// many answers.
    fn refuse(&mut self, now: Time, came: &HandshakePacket<'_>, why: Unavailability) {
        let (client, stateless) = (came.packet.source, &mut self.stateless);
        let is_answered = came.packet.offset == 0
            && came.length >= DATAGRAM_FLOOR
            && stateless.unavailable(now, came.path, client, why);
        if is_answered {
            self.shared.statistics.unavailable_sent += 1;
            let (path, reason) = (came.path, why.to_string().into());
            let event = Event::ClientRefused { path, reason };
            self.shared.events.push_back(event);
        }
    }

    /// Hands a packet to the handshake that it names.
    fn advance_accept(&mut self, now: Time, index: SessionIndex, came: &HandshakePacket<'_>) {
        let (packet, length) = (came.packet, came.length);
        let factory = SessionFactory { config: &self.shared.config, crypto: &self.crypto };
        let Some(accept) = self.accepts.get_mut(index.0) else {
            return;
        };
        let (path, client) = (accept.path, accept.remote);
        let stateless = &mut self.stateless;
        let is_fresh = || stateless.is_cookie(now, path.remote, client, packet.cookie);
        if !accept.admits(packet.cookie, is_fresh) {
            return;
        }
        if !accept.handle_handshake(now, packet, length, &factory) {
            self.shared.statistics.handshakes_failed += 1;
        }
        if let Some(reason) = accept.take_failure() {
            let event = Event::ClientRefused { path, reason };
            self.shared.events.push_back(event);
        }
        // It has padded each of its datagrams: what it is told is a fraction of that.
        if let Some(why) = accept.take_refusal()
            && self.stateless.unavailable(now, path, client, why)
        {
            self.shared.statistics.unavailable_sent += 1;
        }
        let needs_cookie = accept.needs_cookie();
        self.reschedule_accept(index);
        self.start_early_session(now, index);
        if needs_cookie
            && self.ask_for_cookie(now, path, client, length)
            && let Some(accept) = self.accepts.get_mut(index.0)
        {
            accept.cookie_left();
        }
    }
}
