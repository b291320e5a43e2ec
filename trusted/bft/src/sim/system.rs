// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas in the simulator of all systems.

use std::convert::Infallible;
use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, Start};
use smt_journal::ModelDisk;
use smt_replica::sim::{
    Expected, Happening, Host, Opened, Outcome, Report, System, Violation, client_key, node_key,
};
use smt_replica::{AnyService, Attested, Digest, Group, Proof, Reply, Request, Standing};

use crate::client::Client;
use crate::message::Message;
use crate::replica::{Identity, Replica};
use crate::sim::attack::Attack;
use crate::sim::coalition::{self, Coalition, Correct, Memory, Notes};
use crate::sim::group::{group, identity};
use crate::sim::liar::{Liar, attest_bytes};
use crate::sim::scenario::Scenario;
use crate::sim::step::{Step, StepName};

pub(super) type World = smt_replica::sim::World<Bft>;

/// Events that are counted in runs without logs, beside attacks: a correct replica entered a later
/// view, crashed, is a member again in a new epoch, accepted the state of others, or went on in a
/// stream from a checkpoint of it; a checkpoint became stable; a client lied; two replicas were cut
/// off from each other.
const EVENTS: [&str; 8] = [
    "ViewChange",
    "Crash",
    "Recovery",
    "StateTransfer",
    "StreamJump",
    "Checkpoint",
    "ByzantineClient",
    "Partition",
];

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    smt_replica::sim::run(Bft::new(scenario), scenario.conditions.clone(), scenario.plan.as_ref())
}

/// No run yet, of a search with these. Liars who work together take each step in one run at least,
/// and it is counted in how many they changed by it what a correct replica did.
pub fn report(has_logs: bool, has_plans: bool) -> Report<Violation> {
    let lies = Expected::lies(&Attack::ALL, &StepName::ALL, has_plans);
    let events = Expected::each(EVENTS.into_iter().chain(has_logs.then_some("Reissue")));
    let closing = Expected::each(has_plans.then_some("Closing"));
    let kills = Expected::kills(has_logs);
    Report::new(lies.into_iter().chain(events).chain(kills).chain(closing))
}

/// The replicas of a run.
pub(super) struct Bft {
    scenario: Scenario,
    group: Arc<Group>,
    epochs: Vec<u64>,
}

impl Bft {
    fn new(scenario: &Scenario) -> Self {
        let conditions = &scenario.conditions;
        let (seed, n) = (conditions.seed, conditions.nodes);
        let mut group = group(n);
        // In two of three runs no batch waits: more of them are under way when something fails.
        if !seed.is_multiple_of(3) {
            group.options.pipeline = group.options.window;
        }
        // In every second run little is kept, and who was away needs the checkpoints of streams.
        if seed / 2 % 2 == 1 {
            group.options.retained = 1;
        }
        group.options = conditions.course.options.unwrap_or(group.options);
        Self { scenario: scenario.clone(), group: Arc::new(group), epochs: vec![1; n as usize] }
    }

    fn start(&self, device: u32, nonce: [u8; 16]) -> Start {
        let epoch = Epoch(self.epochs[device as usize]);
        Start { device: DeviceId(device), epoch, nonce }
    }

    fn service(&self) -> AnyService {
        AnyService::new(self.scenario.conditions.service)
    }

    pub(super) fn replica(&self, device: u32, nonce: [u8; 16]) -> Option<Replica<AnyService>> {
        self.replica_of(self.start(device, nonce))
    }

    fn replica_of(&self, start: Start) -> Option<Replica<AnyService>> {
        Replica::new(self.group.clone(), identity(start), self.service()).ok()
    }
}

impl System for Bft {
    type Node = Replica<AnyService>;
    type Client = Client;
    type Asks = Infallible;
    type Liar = Liar;
    type Happening = ();

    fn client(&self, number: u32, last: u64) -> Client {
        Client::new(self.group.clone(), number, client_key(number), last)
    }

    fn request(request: Request) -> Vec<u8> {
        Message::Request(request).encode()
    }

    fn asked(asks: Infallible) -> u64 {
        match asks {}
    }

    fn host(world: &mut World, device: u32) -> Host<Self> {
        let scenario = &world.system.scenario;
        if scenario.plan.as_ref().is_some_and(|it| it.liars.contains(&device)) {
            let core = world.system.replica(device, world.random.nonce());
            return world.join(device, core);
        }
        let attack = scenario.liars.iter().find(|it| it.0 == device).map(|it| it.1);
        if world.conditions.has_logs && attack.is_none() {
            return world.logged(device, ModelDisk::default());
        }
        let Some(core) = world.system.replica(device, world.random.nonce()) else {
            return Host::Down;
        };
        let Some(attack) = attack else {
            return Host::Correct(Box::new(core));
        };
        let start = core.start;
        let mut cores = vec![core];
        if world.system.scenario.is_rolled_back {
            // The second device is in the same epoch, and begins with the same counter.
            cores.extend(world.system.replica_of(start));
        }
        Host::Liar(Box::new(Liar::new(attack, cores, world.random.next_u64())))
    }

    fn restart(world: &mut World, device: u32) -> Host<Self> {
        world.system.epochs[device as usize] += 1;
        Self::host(world, device)
    }

    fn open(world: &mut World, device: u32, disk: ModelDisk) -> Opened<Self::Node> {
        let start = world.system.start(device, world.kills.nonce());
        let identity = Identity { device: world.device(start), reply_key: node_key(device) };
        let system = &world.system;
        Replica::open(system.group.clone(), identity, system.service(), disk)
    }

    fn receive(replica: &mut Self::Node, bytes: &[u8]) {
        replica.receive(bytes);
    }

    fn executed(replica: &Self::Node) -> u64 {
        replica.ledger.executed
    }

    /// It is active, or its vote for a later view is there.
    fn counts(replica: &Self::Node) -> bool {
        let track = replica.own_track();
        let is_between_views = track.at.is_some_and(|at| at.0 < track.promised);
        replica.metrics().is_active || is_between_views
    }

    fn plan(world: &mut World) {
        for device in world.system.scenario.crashes.clone() {
            let at = 200 + world.random.below(1800);
            let until = at + 20 + world.random.below(500);
            world.schedule.at(at, Happening::Crash(device));
            world.schedule.at(until, Happening::Restart(device));
        }
    }

    fn look(world: &mut World, device: usize) {
        let Some(replica) = world.hosts[device].correct() else {
            return;
        };
        let seen = world.seen[device];
        if replica.history.len() > seen {
            for (place, batch) in &replica.history[seen..] {
                world.history.executed(*place, batch.iter());
            }
            world.seen[device] = replica.history.len();
            world.history.state(replica.ledger.executed, replica.ledger.state());
        }
        let metrics = replica.metrics();
        let happened = [
            (metrics.view > 0, "ViewChange"),
            (metrics.states > 0, "StateTransfer"),
            (metrics.stream_jumps > 0, "StreamJump"),
            (metrics.stable > 0, "Checkpoint"),
            (metrics.reissued > 0, "Reissue"),
            (metrics.is_active && world.system.epochs[device] > 1, "Recovery"),
        ];
        happened.into_iter().filter(|it| it.0).for_each(|it| world.note(it.1));
    }

    type Step = Step;
    type Name = StepName;
    type Notes = Notes;
    type Memory = Memory;

    fn said(replica: &Self::Node, after: u64) -> Vec<Attested> {
        let own = replica.streams.get(&replica.own_key());
        own.into_iter().flat_map(|it| it.after(after, usize::MAX)).cloned().collect()
    }

    fn statement(said: Attested) -> Vec<u8> {
        Message::Statement(said).encode()
    }

    fn attest(replica: &mut Self::Node, body: &[u8]) -> Option<Attested> {
        let said = attest_bytes(replica, body.to_vec());
        replica.drain();
        said
    }

    fn note(notes: &mut Notes, body: &[u8]) {
        notes.note(body);
    }

    fn numbers(of: &Self::Node) -> Vec<u64> {
        let metrics = of.metrics;
        let faulty = of.streams.values().filter(|it| it.track.is_faulty).count();
        let said = of.device.counter();
        let known = of.views.len() as u64;
        vec![said, of.ledger.executed, metrics.states, metrics.stream_jumps, known, faulty as u64]
    }

    fn wanted(replica: &Self::Node) -> u64 {
        replica.own_track().promised
    }

    fn knows(replica: &Self::Node, view: u64) -> bool {
        replica.views.contains_key(&view)
    }

    fn last_answer(replica: &Self::Node, client: u32) -> Option<(u64, Digest, Vec<u8>)> {
        let executed = replica.history.iter().rev().flat_map(|it| it.1.iter().rev());
        let request = { executed }.find(|it| it.client == client)?;
        match replica.ledger.standing(request) {
            Standing::Answered(answer) => Some((request.number, request.digest(), answer.clone())),
            Standing::New | Standing::Refused(_) => None,
        }
    }

    fn waiting(replica: &Self::Node, client: u32) -> Option<(u64, Digest)> {
        let mut waiting = replica.pending.iter().map(|it| &it.request);
        waiting.find(|it| it.client == client).map(|it| (it.number, it.digest()))
    }

    fn reply(of: &Self::Node, client: u32, answer: &(u64, Digest, Vec<u8>)) -> Vec<u8> {
        let (number, request, result) = answer.clone();
        let (replica, view, proof) = (of.own, of.metrics.view, Proof::default());
        let reply = Reply { replica, view, client, number, request, result: Ok(result), proof };
        Message::Reply(reply.sign(&of.reply_key)).encode()
    }

    fn remember(liars: &mut Coalition, correct: &Correct<'_>) {
        coalition::remember(liars, correct);
    }

    fn take(liars: &mut Coalition, step: Step, correct: &Correct<'_>) {
        coalition::take(liars, step, correct);
    }
}
