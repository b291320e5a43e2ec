// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hosts of nodes that lie. Their devices are genuine.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::process::ExitCode;

use ed25519_dalek::SigningKey;
use smt_attestation::{Algorithm, DeviceId, Epoch, Header, Kind, StreamId};
use smt_attestor::Attested;
use smt_simulation::Random;

use crate::node::Node;
use crate::output::Output;
use crate::reply::Reply;
use crate::request::Request;
use crate::sim::keys::{LIAR_CLIENT, client_key};
use crate::sim::system::{System, To, messages};

/// How many old messages a liar keeps.
const KEPT: usize = 200;

/// A liar.
pub trait Liar {
    /// Takes a message from a node, or from a client.
    fn receive(&mut self, from: Option<u32>, bytes: &[u8]);
    /// Time passes.
    fn tick(&mut self);
    /// All that leaves the host.
    fn outputs(&mut self) -> Vec<(To, Vec<u8>)>;
    /// The name of the way in which it lies, if it has lied.
    fn has_lied(&self) -> Option<String>;
}

/// The host of a liar: nodes that follow the protocol but for the lie. With a device that was
/// rolled back there are two, which speak with one half of the others each.
pub struct LyingHost<N> {
    /// The nodes.
    pub cores: Vec<N>,
    /// All that is random in its lies.
    pub random: Random,
    /// How often it lied.
    pub lies: u64,
    /// How many nodes the group has.
    pub nodes: u32,
    /// Its own number.
    pub own: u32,
    /// The peer that a silent liar still speaks with.
    pub friend: u32,
    /// Messages that leave with the next outputs.
    pub held: Vec<(To, Vec<u8>)>,
    kept: VecDeque<(To, Vec<u8>)>,
    number: u64,
}

impl<N> LyingHost<N> {
    /// The host of node `own` of `nodes`.
    pub fn new(cores: Vec<N>, own: u32, nodes: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let others = u64::from(nodes).max(2) - 1;
        let shift = u32::try_from(random.below(others)).unwrap_or(0) + 1;
        let friend = (own + shift) % nodes;
        let (kept, held) = (VecDeque::new(), Vec::new());
        Self { cores, random, lies: 0, nodes, own, friend, held, kept, number: 0 }
    }

    /// Whether node `side` of this host speaks with a peer.
    fn speaks(&self, side: usize, peer: u32) -> bool {
        self.cores.len() < 2 || peer as usize % 2 == side
    }

    /// The nodes that take a message of a peer, or of a client.
    pub fn hearing(&mut self, from: Option<u32>) -> impl Iterator<Item = &mut N> {
        let is_one = self.cores.len() < 2;
        let hears = move |side: usize| is_one || from.is_none_or(|it| it as usize % 2 == side);
        self.cores.iter_mut().enumerate().filter(move |it| hears(it.0)).map(|it| it.1)
    }

    /// All that node `side` of this host wants sent to those with whom it speaks.
    pub fn sent<S: System<Node = N>>(&mut self, side: usize) -> Vec<(To, Vec<u8>)>
    where
        N: Node<Output = Output<S::Asks>>,
    {
        let (own, nodes) = (Some(self.own), self.nodes);
        let outputs = self.cores[side].outputs();
        let mut sent: Vec<_> =
            outputs.into_iter().flat_map(|it| messages::<S>(it, own, nodes)).collect();
        sent.retain(|it| !matches!(it.0, To::Node(to) if !self.speaks(side, to)));
        sent
    }

    /// Whether a silent liar withholds a message: it speaks with clients and one other node alone.
    pub fn withholds(&self, to: To) -> bool {
        matches!(to, To::Node(it) if it != self.friend)
    }

    /// Whether a liar who sends half of what it should leaves out a message.
    pub fn omits(&mut self) -> bool {
        let omits = self.random.chance(50);
        self.lies += u64::from(omits);
        omits
    }

    /// Keeps a message, to send it again later.
    pub fn keep(&mut self, to: To, bytes: &[u8]) {
        self.kept.push_back((to, bytes.to_vec()));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// Sends old messages again.
    pub fn replay(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        for _ in 0..8 {
            let at = self.random.below(self.kept.len() as u64) as usize;
            self.held.extend(self.kept.get(at).cloned());
        }
        self.lies += 1;
    }

    /// Sends the oldest of the messages that are kept again.
    pub fn replay_oldest(&mut self, count: usize) {
        self.held.extend(self.kept.iter().take(count).cloned());
    }

    /// Puts messages into another order.
    pub fn reorder(&mut self, sent: &mut [(To, Vec<u8>)]) {
        if sent.len() > 1 {
            self.lies += 1;
            sent.reverse();
        }
    }

    /// A request of a client that lies as well.
    pub fn own_request(&mut self, operation: impl FnOnce(&mut Random) -> Vec<u8>) -> Request {
        self.number += 1;
        let operation = operation(&mut self.random);
        let body = (self.random.nonce(), operation);
        let number = self.number * 1000 + self.random.below(1000);
        Request::sign(&client_key(LIAR_CLIENT), LIAR_CLIENT, number, body)
    }

    /// A wrong answer in the place of a reply, the same from all liars: in the own name, and, if it
    /// is forged, in that of each node too. `message` is the message that a reply is.
    pub fn wrong(
        &mut self,
        mut reply: Reply,
        key: &SigningKey,
        is_forged: bool,
        message: impl Fn(Reply) -> Vec<u8>,
    ) -> Vec<u8> {
        self.lies += 1;
        reply.result = Ok(b"wrong".to_vec());
        for replica in (0..self.nodes).filter(|_| is_forged) {
            let forged = Reply { replica, ..reply.clone() }.sign(key);
            self.held.push((To::Client(reply.client), message(forged)));
        }
        message(reply.sign(key))
    }
}

/// A statement in the name of a device, with a MAC of zeros.
#[must_use]
pub fn forged(stream: u32, device: u32, (epoch, counter): (u64, u64), body: Vec<u8>) -> Attested {
    let header = Header {
        algorithm: Algorithm::HmacSha256,
        kind: Kind::Message,
        stream: StreamId(stream),
        device: DeviceId(device),
        length: u32::try_from(body.len()).unwrap_or(u32::MAX),
        epoch: Epoch(epoch),
        counter,
    };
    Attested { attestation: [header.encode(), [0; 32]], body }
}

/// Runs seeds in which all liars tell one lie, for programs `… LIE FIRST COUNT`: up to the first
/// in which something is violated. `violation` runs a seed; nothing if the lie has no such name.
pub fn main_of_lies<V: Debug>(violation: impl Fn(&str, u64) -> Option<Vec<V>>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [lie, first, count] = &words[..] else {
        eprintln!("usage: LIE FIRST COUNT");
        return ExitCode::FAILURE;
    };
    let (Ok(first), Ok(count)) = (first.parse::<u64>(), count.parse::<u64>()) else {
        eprintln!("FIRST and COUNT are numbers");
        return ExitCode::FAILURE;
    };
    for seed in first..first.saturating_add(count) {
        match violation(lie, seed).map(|it| it.into_iter().next()) {
            None => {
                eprintln!("no lie has the name {lie}");
                return ExitCode::FAILURE;
            }
            Some(Some(it)) => {
                println!("seed {seed}: {it:?}");
                return ExitCode::FAILURE;
            }
            Some(None) => {}
        }
    }
    println!("{count} seeds, no violation");
    ExitCode::SUCCESS
}
