// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case is played: the peer's moves one after the other, and after each what the server holds.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Arrival, Path};
use smt_handshake::{HmacTokens, PlaintextProvider};
use smt_proto::{Config, Endpoint, Time, TransmitBuffer};
use smt_wire::{Handshake, PLAINTEXT_VERSION, SessionIndex};

use super::Meter;
use super::bound::Bound;
use super::case::{Case, Move};
use super::peer::Peer;
use super::server::Server;
use crate::random::Random;

/// The outcome of a case.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// The most that the server held beyond nothing, in thousandths of its bound at that time.
    pub share: usize,
    /// Bytes that it held then.
    pub held: usize,
    /// The bound on what it holds at that time.
    pub bound: usize,
    /// Its sessions then.
    pub sessions: usize,
}

/// Plays a case; nothing else of the process may allocate meanwhile.
pub fn play(case: &Case, meter: &impl Meter) -> Verdict {
    let mut run = Run {
        case,
        server: Server::new(case, meter),
        bound: Bound::new(&case.config, &case.habits),
        random: Random::new(case.seed ^ PEER),
        peers: Vec::new(),
        // Cookies are valid for seconds since the beginning.
        now: Time::default() + Duration::from_secs(60),
        buffer: TransmitBuffer::default(),
        port: 1_024,
        handshakes: VecDeque::new(),
        verdict: Verdict { share: 0, held: 0, bound: 1, sessions: 0 },
    };
    for _ in 0..case.sessions {
        run.connect();
    }
    for _ in 0..case.steps {
        run.step();
    }
    run.verdict
}

struct Run<'a, M> {
    case: &'a Case,
    server: Server<'a, M>,
    bound: Bound,
    random: Random,
    peers: Vec<Peer>,
    now: Time,
    buffer: TransmitBuffer,
    port: u16,
    /// When handshakes were begun, and their bytes.
    handshakes: VecDeque<(Time, usize)>,
    verdict: Verdict,
}

impl<M: Meter> Run<'_, M> {
    fn step(&mut self) {
        match self.draw() {
            Move::Connect => self.connect(),
            Move::HalfConnect => self.half_connect(),
            Move::Wait => self.wait(),
            play if !self.peers.is_empty() => {
                let place = self.random.below(self.peers.len() as u64) as usize;
                let peer = &mut self.peers[place];
                let datagram = peer.make(play, self.case.longest, &mut self.random);
                let path = peer.path;
                self.server.receive(self.now, path, &datagram);
            }
            _ => {}
        }
        self.server.work(self.now);
        self.server.send(self.now, &mut self.buffer, |_| ());
        self.look();
    }

    fn draw(&mut self) -> Move {
        let sum = self.case.moves.iter().map(|(_, weight)| weight).sum();
        let mut at = self.random.below(sum);
        for (play, weight) in &self.case.moves {
            if at < *weight {
                return *play;
            }
            at -= weight;
        }
        Move::Wait
    }

    /// A session by an honest client, which is forgotten when it is live.
    fn connect(&mut self) {
        let path = self.next_path();
        let mut client = client(&self.case.config);
        let begun = client.connect(self.now, server_path(), "server", Duration::from_secs(5));
        begun.expect("a client with room for a session");
        for _ in 0..ROUNDS {
            let mut buffer = TransmitBuffer::default();
            while let Some(transmit) = client.poll_transmit(self.now, &mut buffer) {
                for datagram in buffer.chunks(transmit.segment_size) {
                    self.handshakes.push_back((self.now, datagram.len()));
                    self.server.receive(self.now, path, datagram);
                }
            }
            let now = self.now;
            self.server.send(now, &mut self.buffer, |datagram| {
                client.handle_arrival(now, Arrival::datagram(server_path(), datagram));
            });
            if let Some(session) = self.server.take_accepted() {
                self.peers.push(Peer::new(path, session, &self.case.config));
                return;
            }
        }
    }

    /// Fragments of a long first flight that never is whole.
    fn half_connect(&mut self) {
        let path = self.next_path();
        for _ in 0..self.random.between(1, 20) {
            let fragment = vec![0; self.random.between(1, 1_400) as usize];
            let packet = Handshake {
                destination: SessionIndex(0),
                source: SessionIndex(u64::from(self.port)),
                flight: 1,
                cookie: &[],
                flight_length: 65_536,
                offset: self.random.below(64_000) as u32,
                fragment: &fragment,
            };
            let mut datagram = vec![0; packet.packet_len().max(1_200)];
            packet.emit(PLAINTEXT_VERSION, 1_200, &mut datagram);
            self.handshakes.push_back((self.now, datagram.len()));
            self.server.receive(self.now, path, &datagram);
        }
    }

    /// Time passes; the peer stays alive in all of its sessions.
    fn wait(&mut self) {
        let micros = *self.random.pick(&[10, 300, 3_000, 30_000, 400_000]);
        self.now = self.now + Duration::from_micros(self.random.between(1, micros));
        for peer in &mut self.peers {
            let pong = peer.pong();
            self.server.receive(self.now, peer.path, &pong);
        }
        self.server.wait(self.now, &mut self.buffer);
    }

    /// Compares what the server has held since the last look with its bound.
    fn look(&mut self) {
        let held = self.server.most_held();
        while let Some((begun, _)) = self.handshakes.front()
            && self.now.since(*begun) > HANDSHAKE_LIFE
        {
            self.handshakes.pop_front();
        }
        let flights = self.handshakes.iter().map(|(_, bytes)| bytes).sum();
        // One session more may have ended meanwhile.
        let sessions = self.server.sessions() + 1;
        let bound = self.bound.bytes(sessions, self.handshakes.len(), flights);
        let share = held * 1_000 / bound;
        if share > self.verdict.share {
            self.verdict = Verdict { share, held, bound, sessions };
        }
    }

    /// Some of one host, some of another network.
    fn next_path(&mut self) -> Path {
        self.port = self.port.wrapping_add(1).max(1_024);
        let [network, host] = [0, 1].map(|_| self.random.below(4) as u8);
        Path::to(SocketAddr::from(([192, 0, network, host + 2], self.port)))
    }
}

fn client(config: &Config) -> Endpoint {
    let mut config = config.clone();
    config.accept = false;
    config.memory_max = 1 << 20;
    let tokens = Arc::new(HmacTokens::new([1; 32]));
    Endpoint::new(config, Arc::new(PlaintextProvider), tokens)
}

fn server_path() -> Path {
    Path::to(SocketAddr::from(([192, 0, 2, 1], 17_379)))
}

/// Keeps what the peer draws apart from its case.
const PEER: u64 = 0x9EE2;
/// Round trips of a handshake, with a cookie; and a few to spare.
const ROUNDS: usize = 6;
/// A handshake is forgotten then (SPEC §10), and some timers are late.
const HANDSHAKE_LIFE: Duration = Duration::from_secs(11);
