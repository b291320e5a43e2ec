// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reception of an endpoint: from a datagram to the session that it is for.
//!
//! Everything here works on bytes that are not authenticated: it looks up, counts and hands on, and
//! answers at most with a smaller packet, at a bounded rate.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::ops::RangeInclusive;

use smt_carrier::{Arrival, Ecn, Marks, Path};
use smt_wire::{Control, DataHeader, Packet, ParseError, Reset, SessionIndex, Unavailable, parse};

use super::Endpoint;
use super::handshake::HandshakePacket;
use crate::error::{SessionEnd, Unavailability};
use crate::establish::client::{ClientHandshake, Progress};
use crate::establish::identity_shares::IdentityHash;
use crate::establish::stateless::is_equal;
use crate::event::{ConnectId, Event};
use crate::limits::DATAGRAM_FLOOR;
use crate::message::arrived_data::{ArrivedData, OpenedRecords};
use crate::time::Time;

impl Endpoint {
    /// Takes datagrams that have come together by one path.
    ///
    /// Congestion marks are counted (`Statistics::datagrams_ce`), and nothing reacts to them. A
    /// datagram that is marked as trimmed must have at least the DATA header left; the bytes behind
    /// it are not looked at. The header is a hint and changes nothing but when bytes are asked for,
    /// and only under a policy that pulls (SPEC §9.10).
    pub fn handle_arrival(&mut self, now: Time, arrival: Arrival<'_>) {
        if self.is_copy {
            return;
        }
        self.follow_rotation(now);
        let Marks { trimmed, ecn } = arrival.marks;
        let mut opened = OpenedRecords::new(arrival.opened);
        for datagram in arrival.segments() {
            self.shared.statistics.datagrams_received += 1;
            self.shared.statistics.datagrams_ce += u64::from(ecn == Ecn::Ce);
            match trimmed {
                false => {
                    let datagram = Datagram { bytes: datagram, opened, spi: arrival.spi };
                    self.handle_datagram(now, arrival.path, datagram);
                }
                true => self.handle_trimmed(now, arrival.path, datagram),
            }
            opened = opened.behind(datagram.len());
        }
    }

    /// Takes one whole datagram that came by `path`.
    fn handle_datagram(&mut self, now: Time, path: Path, datagram: Datagram<'_>) {
        let Datagram { bytes, opened, spi } = datagram;
        let mut rest = bytes;
        while !rest.is_empty() {
            match parse(self.shared.config.version, rest) {
                Ok((packet, further)) => {
                    let length = rest.len() - further.len();
                    let opened = opened.behind(bytes.len() - rest.len());
                    match &packet {
                        Packet::Data(data) => {
                            let data = ArrivedData::new(data, opened);
                            self.handle_data(now, path, &data, spi);
                        }
                        others => self.handle_other(now, path, others, length),
                    }
                    if matches!(packet, Packet::VersionAnswer(_)) {
                        // The packet is for all connects at once, and is alone in its datagram:
                        // thousands in one are an attack.
                        return;
                    }
                    rest = further;
                }
                Err(error) => {
                    self.shared.statistics.packets_malformed += 1;
                    match error {
                        ParseError::UnknownType { length, .. }
                            if length > 0 && length <= rest.len() =>
                        {
                            rest = &rest[length..];
                            continue;
                        }
                        // Version 0 is an answer's own: it is never answered, of whatever type
                        // (SPEC §12.2).
                        ParseError::UnknownVersion(1..) if self.shared.config.accept => {
                            self.stateless.version(now, path, rest.len());
                        }
                        _ => {}
                    }
                    self.foreign.note(now, path.remote);
                    return;
                }
            }
        }
    }

    /// Takes the part that a switch has left of a datagram that came by `path`.
    fn handle_trimmed(&mut self, now: Time, path: Path, datagram: &[u8]) {
        let Ok(header) = DataHeader::of_trimmed(self.shared.config.version, datagram) else {
            self.shared.statistics.packets_malformed += 1;
            return;
        };
        let index = header.session;
        let session = self.sessions.get_mut(index.0);
        let Some(session) = session.filter(|session| is_on(session.path, path)) else {
            self.shared.statistics.packets_unknown_session += 1;
            return;
        };
        session.handle_trimmed(now, &header, &mut self.shared);
        self.reschedule(index);
    }

    /// Takes the carrier's report that a peer is unreachable. The report is a hint: it makes live
    /// sessions ask, and an unanswered connect repeat its flight. A report that comes after that
    /// ends the connect (SPEC §9.9).
    pub fn handle_unreachable(&mut self, now: Time, remote: SocketAddr) {
        self.handle_hint(now, remote, ClientHandshake::handle_unreachable);
        let with_host = self.sessions_with(remote, SessionIndex(0)..=SessionIndex(u64::MAX));
        for index in with_host.collect::<Vec<_>>() {
            if let Some(session) = self.sessions.get_mut(index.0) {
                session.suspect(now);
                self.reschedule(index);
            }
        }
    }

    /// Takes the carrier's word that datagrams of this length to `remote` are larger than the path
    /// carries. Probes of a session are lost so. Datagrams that every path has to carry (SPEC §9.8)
    /// are not: then a connect repeats its flight, and fails with the next such word. Returns
    /// whether it was such a datagram: sessions to `remote` send nothing until the path is mended.
    pub fn handle_send_too_large(&mut self, now: Time, remote: SocketAddr, length: usize) -> bool {
        let is_least = length <= DATAGRAM_FLOOR;
        if is_least {
            self.handle_hint(now, remote, ClientHandshake::handle_path_too_small);
        }
        is_least
    }

    /// Hands a hint about the path to the connects of this address.
    fn handle_hint(
        &mut self,
        now: Time,
        remote: SocketAddr,
        hint: impl Fn(&mut ClientHandshake, Time) -> Progress,
    ) {
        let on_path = self.connects.iter().filter(|(_, connect)| connect.path.remote == remote);
        for id in on_path.map(|(_, connect)| connect.id).collect::<Vec<_>>() {
            let Some(connect) = self.connects.get_mut(id.0) else {
                continue;
            };
            let progress = hint(connect, now);
            self.progress(now, id, progress);
        }
    }

    /// Takes the carrier's word that this host has refused to send to `remote`, by a firewall of
    /// its own or for want of a route. It is a hint: a connect that is not answered says so in its
    /// error.
    pub fn handle_send_refused(&mut self, remote: SocketAddr) {
        for (_, connect) in self.connects.iter_mut() {
            if connect.path.remote == remote {
                connect.handle_send_refused();
            }
        }
    }

    /// Takes a packet that is no DATA. Apart, for the stack frame of those that are.
    #[inline(never)]
    fn handle_other(&mut self, now: Time, path: Path, packet: &Packet<'_>, length: usize) {
        match packet {
            Packet::Data(_) => {}
            Packet::Control(control) => self.handle_control(now, path, control, length),
            Packet::Handshake(handshake) => {
                let came = HandshakePacket { path, packet: handshake, length };
                match handshake.destination {
                    SessionIndex(0) => self.handle_first_flight(now, &came),
                    _ => self.handle_handshake(now, &came),
                }
            }
            Packet::Cookie(cookie) => {
                let Some(id) = self.connect_at(path, cookie.destination) else {
                    return;
                };
                if let Some(connect) = self.connects.get_mut(id.0) {
                    connect.handle_cookie(now, cookie.cookie);
                    self.reschedule_connect(id);
                }
            }
            Packet::VersionAnswer(answer) => {
                let ours = self.shared.config.version;
                let connects = self
                    .connects
                    .iter_mut()
                    .filter(|(_, connect)| connect.path.remote == path.remote);
                connects.for_each(|(_, connect)| connect.handle_version(ours, answer.versions));
            }
            Packet::Reset(reset) => self.handle_reset(path, reset),
            Packet::Unavailable(unavailable) => {
                self.handle_unavailable(now, path, *unavailable);
            }
        }
    }

    fn handle_data(&mut self, now: Time, path: Path, data: &ArrivedData<'_>, spi: Option<u32>) {
        let index = data.header.session;
        let Some(session) =
            self.sessions.get_mut(index.0).filter(|session| is_on(session.path, path))
        else {
            let length = DataHeader::LEN + data.payload.len();
            self.handle_unknown_session(now, path, index, length);
            return;
        };
        if session.takes_data_of(spi, &mut self.shared) {
            session.handle_data(now, data, &mut self.shared);
        }
        self.finish_early_session(index);
        self.reschedule(index);
    }

    /// Gives a control packet to its session. It is not inlined, for the stack frame of its caller.
    #[inline(never)]
    fn handle_control(&mut self, now: Time, path: Path, control: &Control<'_>, length: usize) {
        let index = control.header.session;
        if let Some(session) =
            self.sessions.get_mut(index.0).filter(|session| is_on(session.path, path))
        {
            session.handle_control(now, control, &mut self.shared);
            self.finish_early_session(index);
            self.reschedule(index);
        } else if let Some(id) = self.connect_at(path, index) {
            let Some(connect) = self.connects.get_mut(id.0) else {
                return;
            };
            let progress = connect.handle_control(control, &mut self.shared.statistics);
            self.progress(now, id, progress);
        } else if self.accepts.get(index.0).is_some_and(|accept| is_on(accept.path, path)) {
            self.confirm_accept(now, path, control);
        } else {
            self.handle_unknown_session(now, path, index, length);
        }
    }

    /// Gives a control packet to a client's handshake: CONFIRM makes it a session. It is not
    /// inlined, for the stack frame of its caller.
    #[inline(never)]
    fn confirm_accept(&mut self, now: Time, path: Path, control: &Control<'_>) {
        let index = control.header.session;
        let Some(accept) = self.accepts.get_mut(index.0) else {
            return;
        };
        let statistics = &mut self.shared.statistics;
        let Some(mut established) = accept.handle_control(control, statistics) else {
            if let Some(reason) = accept.take_failure() {
                statistics.handshakes_failed += 1;
                let event = Event::ClientRefused { path, reason };
                self.shared.events.push_back(event);
            }
            return;
        };
        self.remove_accept(index);
        if !self.has_room_for(path.remote.ip()) {
            return;
        }
        let peer = core::mem::take(&mut established.peer);
        self.shared.statistics.sessions_resumed += u64::from(peer.is_resumed);
        self.start_session(now, established);
        let identity = IdentityHash::of(&peer, self.crypto.library.hash());
        self.shared.events.push_back(Event::Accepted { session: index, path, peer });
        self.bound_identity(identity, index);
        self.reschedule(index);
    }

    /// A packet for no live session: RESET, if its index can never be live again (SPEC §12.1).
    pub(super) fn handle_unknown_session(
        &mut self,
        now: Time,
        path: Path,
        index: SessionIndex,
        length: usize,
    ) {
        self.shared.statistics.packets_unknown_session += 1;
        let config = &self.shared.config;
        // An index that another shard has issued may be live there.
        let is_closed = self.has_issued(index)
            && !self.sessions.contains(index.0)
            && !self.accepts.contains(index.0)
            && !self.connect_of.contains_key(&index);
        let is_old = config.durable_boot && index.boot() < config.boot;
        if (is_closed || is_old) && length > Reset::LEN && self.stateless.reset(now, path, index) {
            self.shared.statistics.resets_sent += 1;
        }
    }

    fn handle_unavailable(&mut self, now: Time, path: Path, packet: Unavailable) {
        let Some(id) = self.connect_at(path, packet.destination) else {
            self.shared.statistics.packets_unknown_session += 1;
            return;
        };
        if let Some(connect) = self.connects.get_mut(id.0) {
            let progress = connect.handle_unavailable(now, Unavailability::from_code(packet.code));
            self.progress(now, id, progress);
        }
    }

    fn handle_reset(&mut self, path: Path, reset: &Reset) {
        let named = self.sessions_with(path.remote, reset.index..=reset.index);
        // A peer that numbers its sessions has one session of this index. A peer that does not
        // number them may have many; only the newest are looked at, since anybody can cause this
        // search.
        let named: Vec<_> = named.rev().take(RESETTABLE).collect();
        if named.is_empty() {
            self.shared.statistics.packets_unknown_session += 1;
        }
        for index in named {
            let Some(session) = self.sessions.get_mut(index.0) else {
                continue;
            };
            let is_genuine =
                session.peer_reset_token.is_some_and(|token| is_equal(&token, &reset.token));
            if is_genuine {
                session.end(SessionEnd::Reset, &mut self.shared);
                self.reschedule(index);
            } else {
                self.shared.statistics.controls_forged += 1;
            }
        }
    }

    /// Live sessions with this host whose remote index is one of these; those of one remote index
    /// come oldest first.
    fn sessions_with(
        &self,
        remote: SocketAddr,
        indices: RangeInclusive<SessionIndex>,
    ) -> impl DoubleEndedIterator<Item = SessionIndex> {
        let first = (remote, *indices.start(), SessionIndex(0));
        let last = (remote, *indices.end(), SessionIndex(u64::MAX));
        let found = self.by_remote.range(first..=last);
        found.map(|(_, _, index)| *index)
    }

    pub(super) fn connect_at(&self, path: Path, index: SessionIndex) -> Option<ConnectId> {
        let id = *self.connect_of.get(&index)?;
        let connect = self.connects.get(id.0)?;
        (connect.path.remote == path.remote).then_some(id)
    }
}

/// A whole datagram, with the carrier's word about it.
struct Datagram<'a> {
    bytes: &'a [u8],
    /// The records in it that the carrier has opened.
    opened: OpenedRecords<'a>,
    /// The SPI of the association under which the carrier has opened all of it.
    spi: Option<u32>,
}

/// Whether a datagram came by a session's path. A session without a local address takes any.
pub(super) fn is_on(session: Path, datagram: Path) -> bool {
    session.remote == datagram.remote
        && (session.local.is_none() || session.local == datagram.local)
}

/// Sessions of one remote index that a RESET may be for.
const RESETTABLE: usize = 8;
