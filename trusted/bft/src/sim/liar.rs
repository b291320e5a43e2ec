// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica whose host lies. Its device is genuine.

use std::sync::Arc;

use smt_replica::sim::{LIAR_CLIENT, LyingHost, To, client_key, forged};
use smt_replica::{AnyService, Attested, Request, Service, SigningKey};

use crate::message::{Batch, Checkpoint, Message, Opening, Reference, State, Statement, encode};
use crate::replica::Replica;
use crate::sim::attack::Attack;
use crate::sim::system::Bft;
use crate::stream_checkpoint::StreamState;

/// A liar: replicas that follow the protocol but for the lie.
pub(crate) struct Liar {
    attack: Attack,
    host: LyingHost<Replica<AnyService>>,
}

impl smt_replica::sim::Liar for Liar {
    fn receive(&mut self, from: Option<u32>, bytes: &[u8]) {
        self.host.hearing(from).for_each(|it| it.receive(bytes));
    }

    fn tick(&mut self) {
        self.host.cores.iter_mut().for_each(Replica::tick);
        for side in 0..self.host.cores.len() {
            self.lie(side);
        }
    }

    fn outputs(&mut self) -> Vec<(To, Vec<u8>)> {
        let mut sent = std::mem::take(&mut self.host.held);
        for side in 0..self.host.cores.len() {
            for (to, bytes) in self.host.sent::<Bft>(side) {
                sent.extend(self.alter(side, to, bytes));
            }
        }
        if self.attack == Attack::Reorder {
            self.host.reorder(&mut sent);
        }
        sent
    }

    fn has_lied(&self) -> Option<String> {
        (self.host.lies > 0).then(|| format!("{:?}", self.attack))
    }
}

impl Liar {
    pub(crate) fn new(attack: Attack, mut cores: Vec<Replica<AnyService>>, seed: u64) -> Self {
        let (own, replicas) = cores.first().map_or((0, 1), |it| (it.own, it.group.replicas));
        for core in &mut cores {
            core.holds_orders = attack.is_of_leader();
            core.holds_commits = attack == Attack::BadQuorum;
        }
        Self { attack, host: LyingHost::new(cores, own, replicas, seed) }
    }

    /// The fate of a message that the protocol has the replica send.
    fn alter(&mut self, side: usize, to: To, bytes: Vec<u8>) -> Option<(To, Vec<u8>)> {
        match (self.attack, to) {
            (Attack::Silence | Attack::OldState | Attack::Equivocate, _)
                if self.host.withholds(to) =>
            {
                self.host.lies += u64::from(self.attack == Attack::Silence);
                return None;
            }
            (Attack::Omit, _) if self.host.omits() => return None,
            (Attack::Replay | Attack::StaleView, _) => self.host.keep(to, &bytes),
            (Attack::WrongOutput | Attack::ForgedReply, To::Client(_)) => {
                if let Some(Message::Reply(reply)) = Message::decode(&bytes) {
                    let key = self.host.cores[side].reply_key.clone();
                    let is_forged = self.attack == Attack::ForgedReply;
                    let message = |it| Message::Reply(it).encode();
                    return Some((to, self.host.wrong(reply, &key, is_forged, message)));
                }
            }
            (Attack::WrongState, To::Node(_)) => {
                if let Some(Message::State(mut state)) = Message::decode(&bytes) {
                    self.host.lies += 1;
                    state.snapshot = wrong_snapshot(&state.snapshot);
                    return Some((to, Message::State(state).encode()));
                }
            }
            _ => {}
        }
        Some((to, bytes))
    }

    /// Lies of its own accord.
    fn lie(&mut self, side: usize) {
        let track = self.host.cores[side].own_track().clone();
        let Some((view, length)) = track.at else {
            if self.host.random.chance(20) {
                self.host.cores[side].want(track.promised + 1);
            }
            return;
        };
        let leads = self.host.cores[side].group.leader(view) == self.host.cores[side].own;
        let end = self.host.cores[side].views.get(&view).map_or(0, crate::view::View::end);
        if self.attack.is_of_leader() {
            if leads && track.promised <= view {
                self.lie_as_leader(side, view, length + 1);
            }
            return;
        }
        match self.attack {
            Attack::Replay => self.host.replay(),
            Attack::Forge => self.forge(side, view, end + 1),
            Attack::EarlyCommit
                if !leads && track.promised <= view && self.host.random.chance(5) =>
            {
                self.say(side, &Statement::Commit { view, sequence: end + 3 });
            }
            Attack::BreakPromise if !leads => self.break_promise(side, view, end),
            Attack::WrongState => self.invent_state(side, view),
            Attack::FalseCheckpoint => {
                let interval = self.host.cores[side].group.options.interval;
                let sequence = track.checkpoint + interval;
                if self.host.cores[side].ledger.executed + 2 >= sequence {
                    let (chain, state) = ([7; 32], [7; 32]);
                    let checkpoint = Checkpoint { sequence, chain, state };
                    self.say(side, &Statement::Checkpoint(checkpoint));
                }
            }
            Attack::OldState if self.host.lies < 3 && self.host.random.chance(6) => {
                self.forget(side)
            }
            Attack::NotLeader if !leads && self.host.random.chance(20) => {
                let batch = self.own_batch();
                self.say(side, &Statement::Prepare { view, sequence: end + 1, batch });
            }
            Attack::BadQuorum if self.host.random.chance(15) => {
                self.open_alone(side, track.promised)
            }
            Attack::StaleView if self.host.random.chance(10) => {
                let view = view.saturating_sub(1);
                if view > 0 || self.host.random.chance(30) {
                    self.say(side, &Statement::ViewChange { view });
                }
                self.host.replay_oldest(20);
            }
            _ => {}
        }
    }

    /// Has a statement attested, and sends it to all.
    fn say(&mut self, side: usize, statement: &Statement) {
        self.host.lies += 1;
        if let Some(said) = attest(&mut self.host.cores[side], statement) {
            self.host.cores[side].publish(said);
        }
    }

    /// A batch of a client that lies as well.
    fn own_batch(&mut self) -> Batch {
        Arc::new(vec![self.host.own_request(|it| it.below(100).to_be_bytes().to_vec())])
    }

    fn lie_as_leader(&mut self, side: usize, view: u64, sequence: u64) {
        let pending = &mut self.host.cores[side].pending;
        let next = pending.iter_mut().find(|it| it.ordered.is_none());
        let Some(next) = next else {
            return;
        };
        next.ordered = Some(sequence);
        let request = next.request.clone();
        let honest: Batch = Arc::new(vec![request.clone()]);
        let prepare = |batch| Statement::Prepare { view, sequence, batch };
        match self.attack {
            Attack::Equivocate => {
                self.host.lies += 1;
                let other = self.own_batch();
                let one = attest(&mut self.host.cores[side], &prepare(honest));
                let two = attest(&mut self.host.cores[side], &prepare(other));
                for to in (0..self.host.nodes).filter(|it| *it != self.host.cores[side].own) {
                    let said = if to == self.host.friend { one.clone() } else { two.clone() };
                    let bytes = said.map(|it| Message::Statement(it).encode());
                    self.host.held.extend(bytes.map(|it| (To::Node(to), it)));
                }
            }
            Attack::ForgedRequest => {
                let number = request.number + 1;
                let body = (self.host.random.nonce(), 5_u64.to_be_bytes().to_vec());
                let key = client_key(LIAR_CLIENT);
                let forged = Request::sign(&key, request.client, number, body);
                self.say(side, &prepare(Arc::new(vec![request, forged])));
            }
            Attack::Twice => {
                let old = self.host.cores[side].history.last().map(|it| it.1.clone());
                let mut batch = vec![request];
                batch.extend(old.and_then(|it| it.first().cloned()));
                self.say(side, &prepare(Arc::new(batch)));
            }
            _ => {
                let other = self.own_batch();
                self.say(side, &prepare(honest));
                self.say(side, &prepare(other));
                self.host.cores[side].holds_orders = true;
            }
        }
    }

    /// Says in the leader's name what the leader has not said.
    fn forge(&mut self, side: usize, view: u64, sequence: u64) {
        let core = &self.host.cores[side];
        let leader = core.group.leader(view);
        let (own, epoch) = (core.own, core.views.get(&view).and_then(|it| it.epoch(leader)));
        let Some(stream) = epoch.and_then(|it| core.streams.get(&(leader, it))) else {
            return;
        };
        let (Some(epoch), true) = (epoch, leader != own) else {
            return;
        };
        let counter = stream.track.counter + 1;
        let batch = self.own_batch();
        let body = encode(&Statement::Prepare { view, sequence, batch });
        let stream = self.host.cores[side].group.stream;
        let honest = forged(stream, leader, (epoch, counter), body);
        self.host.lies += 1;
        let bytes = Message::Statement(honest).encode();
        self.host.held.push((To::Node(self.host.friend), bytes));
    }

    fn break_promise(&mut self, side: usize, view: u64, end: u64) {
        let track = self.host.cores[side].own_track().clone();
        if track.promised <= view {
            if self.host.random.chance(5) {
                self.say(side, &Statement::ViewChange { view: view + 1 });
            }
        } else if track.at.is_some_and(|at| at.1 < end) {
            self.say(side, &Statement::Commit { view, sequence: end });
        }
    }

    /// Sends states that nobody has asked for.
    fn invent_state(&mut self, side: usize, view: u64) {
        if !self.host.random.chance(30) {
            return;
        }
        let Some(Message::State(mut state)) = self.host.cores[side].state_for_others() else {
            return;
        };
        match self.host.random.below(4) {
            0 => self.invent_opening(side, view, &mut state),
            1 => self.invent_stream(side, &mut state),
            2 => self.invent_checkpoint(side, &mut state),
            _ => state.snapshot = wrong_snapshot(&state.snapshot),
        }
        self.host.lies += 1;
        let bytes = Message::State(state).encode();
        self.host.held.extend((0..self.host.nodes).map(|to| (To::Node(to), bytes.clone())));
    }

    /// A view that nobody has opened, with a log of its own, which it enters itself.
    fn invent_opening(&mut self, side: usize, view: u64, state: &mut State) {
        let batch = self.own_batch();
        let core = &self.host.cores[side];
        let chain = crate::ledger::extend(&[0; 32], &batch);
        let epochs = state.opening.epochs.clone();
        let leads = |view: &u64| core.group.leader(*view) == core.own;
        let Some(view) = (view + 1..).find(leads) else {
            return;
        };
        state.opening = Opening { view, epochs, start: 1, chain, votes: Vec::new() };
        (state.proof, state.log) = (Vec::new(), vec![batch]);
        (state.enters, state.streams) = (Vec::new(), Vec::new());
        let opening = state.opening.digest();
        if let Some(enter) = attest(&mut self.host.cores[side], &Statement::Enter { view, opening })
        {
            self.host.cores[side].publish(enter.clone());
            state.enters.push(enter);
        }
    }

    /// A place of its own stream that it alone states.
    fn invent_stream(&mut self, side: usize, state: &mut State) {
        let core = &mut self.host.cores[side];
        let (device, epoch) = core.own_key();
        let interval = core.group.stream_interval();
        let mut track = core.own_track().checkpointed();
        track.counter = (track.counter / interval + 1) * interval;
        let mut it = StreamState { device, epoch, track, proof: Vec::new() };
        let said = attest(core, &Statement::Streams(vec![it.checkpoint()]));
        it.proof.extend(said.clone());
        state.streams.retain(|other| other.key() != it.key());
        state.streams.push(it);
        if let Some(said) = said {
            core.publish(said);
        }
    }

    /// A checkpoint that it alone has stated.
    fn invent_checkpoint(&mut self, side: usize, state: &mut State) {
        state.snapshot = wrong_snapshot(&state.snapshot);
        let core = &mut self.host.cores[side];
        let digest = crate::ledger::state_digest(&state.snapshot);
        let (start, chain) = (state.opening.start, state.opening.chain);
        let sequence = start.max(1);
        let checkpoint = Checkpoint { sequence, chain, state: digest };
        (state.log, state.streams) = (Vec::new(), Vec::new());
        state.proof = attest(core, &Statement::Checkpoint(checkpoint)).into_iter().collect();
    }

    /// Restarts the device, and hides what it has said before.
    fn forget(&mut self, side: usize) {
        self.host.lies += 1;
        let nonce = self.host.random.nonce();
        restart_keeping_state(&mut self.host.cores[side], nonce);
        // The others heard what it says now hides.
        let others = (1..self.host.nodes).map(|it| (self.host.friend + it) % self.host.nodes);
        self.host.friend =
            others.into_iter().find(|it| *it != self.host.cores[side].own).unwrap_or(0);
    }

    /// Opens a view that it leads, on its own vote.
    fn open_alone(&mut self, side: usize, promised: u64) {
        let core = &mut self.host.cores[side];
        let (own, epoch) = (core.own, core.start.epoch.0);
        let leads = |view: &u64| core.group.leader(*view) == own;
        let Some(view) = (promised + 1..=promised + u64::from(self.host.nodes)).find(leads) else {
            return;
        };
        let Some(vote) = attest(core, &Statement::ViewChange { view }) else {
            return;
        };
        let Some(counter) = vote.attestation().claim().map(|it| it.counter) else {
            return;
        };
        let mac = vote.attestation[1];
        core.publish(vote);
        let one = Reference { device: own, epoch, counter, mac };
        let size = if self.host.random.chance(50) { 1 } else { core.group.quorum() };
        self.say(side, &Statement::NewView { view, votes: vec![one; size] });
    }
}

/// Has a statement attested, and tells nobody.
fn attest(core: &mut Replica<AnyService>, statement: &Statement) -> Option<Attested> {
    attest_bytes(core, encode(statement))
}

pub(super) fn attest_bytes(core: &mut Replica<AnyService>, body: Vec<u8>) -> Option<Attested> {
    let attestation = core.device.attest(&body)?;
    let counter = attestation.claim()?.counter;
    let said = Attested::new(&attestation, body);
    let key = (core.own, core.start.epoch.0);
    core.streams.entry(key).or_default().put(counter, said.clone());
    Some(said)
}

/// A new epoch of the device under a host that keeps its memory.
pub(crate) fn restart_keeping_state<S: Service + Default>(core: &mut Replica<S>, nonce: [u8; 16]) {
    let mut start = core.start;
    start.epoch.0 += 1;
    start.nonce = nonce;
    let identity = crate::replica::Identity {
        device: crate::sim::group::library(start),
        reply_key: SigningKey::from_bytes(&core.reply_key.to_bytes()),
    };
    let Ok(fresh) = Replica::new(core.group.clone(), identity, S::default()) else {
        return;
    };
    let stream = fresh.streams.into_values().next().unwrap_or_default();
    core.device = fresh.device;
    core.start = start;
    core.outputs.extend(fresh.outputs);
    core.streams.insert((core.own, start.epoch.0), stream);
}

pub(crate) fn wrong_snapshot(snapshot: &[u8]) -> Vec<u8> {
    // The service's bytes come first, after their length.
    let mut wrong = snapshot.to_vec();
    if let Some(byte) = wrong.get_mut(8) {
        *byte ^= 0x40;
    }
    wrong
}
