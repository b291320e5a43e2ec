// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of the counter in the simulator of all systems.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use smt_journal::ModelDisk;
use smt_replica::sim::{
    Entry, Expected, Happening, Host, LIAR_CLIENT, Opened, Outcome, Report, System, Violation,
    client_key,
};
use smt_replica::{Attested, Digest, Request, digest, session_of};

use crate::caller::Caller;
use crate::client::Client;
use crate::counter::{self, Counter};
use crate::group::Group;
use crate::message::{Message, SYSTEM, decode};
use crate::node::Node;
use crate::sim::attack::Attack;
use crate::sim::group::{group, identity};
use crate::sim::liar::Liar;
use crate::sim::plan::{self, Coalition, Correct, Step, StepName};
use crate::sim::scenario::Scenario;

type World = smt_replica::sim::World<Transformed>;

/// Events that are counted in runs without logs, beside attacks: a node stopped for ever, or
/// entered a later view; two nodes were cut off, a client lied; a liar was found by a node.
const EVENTS: [&str; 5] = ["Stop", "ViewChange", "Partition", "ByzantineClient", "LiarFound"];
/// Events of nodes with logs. These have no form from which a log is begun anew.
const KILLS: [&str; 3] = ["Kill", "KillOfAll", "UnsyncedWrite"];

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    smt_replica::sim::run(
        Transformed::new(scenario),
        scenario.conditions.clone(),
        scenario.plan.as_ref(),
    )
}

/// No run yet, of a search with these.
pub fn report(has_logs: bool, has_plans: bool) -> Report<Violation> {
    let lies = Expected::lies(&Attack::ALL, &StepName::ALL, has_plans);
    let kills = KILLS.into_iter().filter(|_| has_logs);
    let events = Expected::each(EVENTS.into_iter().chain(kills));
    Report::new(lies.into_iter().chain(events))
}

/// The nodes of a run.
pub(super) struct Transformed {
    scenario: Scenario,
    group: Arc<Group>,
    /// The view whose leader's log each node had when it was looked at.
    latest: Vec<u64>,
}

impl Transformed {
    fn new(scenario: &Scenario) -> Self {
        let nodes = scenario.conditions.nodes;
        let (group, latest) = (Arc::new(group(nodes)), vec![0; nodes as usize]);
        Self { scenario: scenario.clone(), group, latest }
    }
}

fn protocol(nodes: u32) -> impl Fn(u32) -> Counter {
    move |own| Counter::new(own, nodes)
}

/// A request by all that the log of the counter has of it.
fn entry(&(caller, number, added): &counter::Entry) -> Entry {
    let (client, operation) = (caller.client, added.to_be_bytes().to_vec());
    let digest = Transformed::digest(client, number, ([0; 16], operation.clone()));
    Entry { client, number, digest, operation }
}

impl System for Transformed {
    type Node = Node<Counter>;
    type Client = Client;
    type Asks = Infallible;
    type Liar = Liar;
    type Happening = ();

    const EXECUTES_ONCE: bool = false;

    fn client(&self, number: u32, last: u64) -> Client {
        let process = [session_of(last) as u8; 16];
        Client::new(&self.group, number, client_key(number), (process, last))
    }

    fn digest(client: u32, number: u64, (_, operation): ([u8; 16], Vec<u8>)) -> Digest {
        let numbers = [&client.to_be_bytes()[..], &number.to_be_bytes()];
        digest(SYSTEM, "request of a run", &[numbers[0], numbers[1], &operation])
    }

    fn request(request: Request) -> Vec<u8> {
        Message::Request(request).encode()
    }

    fn asked(asks: Infallible) -> u64 {
        match asks {}
    }

    fn host(world: &mut World, number: u32) -> Host<Self> {
        let lie = world.system.scenario.liars.iter().find(|it| it.0 == number).map(|it| it.1);
        let plan = world.system.scenario.plan.as_ref();
        let is_together = plan.is_some_and(|it| it.liars.contains(&number));
        if lie.is_none() && !is_together && world.conditions.has_logs {
            return world.logged(number, ModelDisk::default());
        }
        let protocol = protocol(world.conditions.nodes);
        let node = Node::new(world.system.group.clone(), identity(number), protocol);
        if is_together {
            return world.join(number, node.ok());
        }
        match (node, lie) {
            (Err(_), _) => Host::Down,
            (Ok(node), None) => Host::Correct(Box::new(node)),
            (Ok(node), Some(attack)) => {
                Host::Liar(Box::new(Liar::new(attack, node, world.random.next_u64())))
            }
        }
    }

    fn open(world: &mut World, number: u32, disk: ModelDisk) -> Opened<Self::Node> {
        let protocol = protocol(world.conditions.nodes);
        Node::open(world.system.group.clone(), identity(number), protocol, disk)
    }

    fn receive(node: &mut Self::Node, bytes: &[u8]) {
        // An error is the node's failure too.
        let _ = node.receive(bytes);
    }

    fn executed(node: &Self::Node) -> u64 {
        node.protocol().executed().len() as u64
    }

    fn plan(world: &mut World) {
        for node in world.system.scenario.stops.clone() {
            let at = 200 + world.random.below(2500);
            world.schedule.at(at, Happening::Stop(node));
        }
    }

    /// Looks at what a correct node has executed since, and whom it takes for a liar.
    fn look(world: &mut World, number: usize) {
        let Some(node) = world.hosts[number].correct() else {
            return;
        };
        let (latest, executed) = (node.protocol().latest(), node.protocol().executed());
        // A new leader may have replaced the log.
        let is_same = world.system.latest[number] == latest;
        let first = if is_same { world.seen[number] } else { 0 };
        for (place, it) in (0..).zip(executed).skip(first) {
            world.history.executed(place, [entry(it)]);
        }
        (world.system.latest[number], world.seen[number]) = (latest, executed.len());
        let scenario = &world.system.scenario;
        let has_changed_view = node.protocol().view() > 0;
        let faulty: Vec<u32> = node.faulty().collect();
        let is_liar = |it: &u32| scenario.is_liar(*it);
        let (found, slandered): (Vec<u32>, Vec<u32>) = faulty.into_iter().partition(is_liar);
        slandered.into_iter().for_each(|it| world.history.violate(Violation::Slandered(it)));
        (!found.is_empty()).then(|| world.note("LiarFound"));
        has_changed_view.then(|| world.note("ViewChange"));
    }

    type Step = Step;
    type Name = StepName;
    type Notes = ();
    type Memory = ();

    fn said(node: &Self::Node, after: u64) -> Vec<Attested> {
        let own = node.histories[node.own as usize].kept();
        own.filter(|it| *it.0 > after).map(|it| it.1.clone()).collect()
    }

    fn statement(said: Attested) -> Vec<u8> {
        Message::Step(said).encode()
    }

    fn attest(node: &mut Self::Node, body: &[u8]) -> Option<Attested> {
        let (counter, said) = node.attest(&decode(body)?)?;
        node.publish(counter, said.clone());
        Some(said)
    }

    fn numbers(node: &Self::Node) -> Vec<u64> {
        let faulty = node.faulty().count() as u64;
        vec![node.device.counter(), Self::executed(node), node.protocol().view(), faulty]
    }

    fn wanted(node: &Self::Node) -> u64 {
        node.protocol().view()
    }

    fn knows(node: &Self::Node, view: u64) -> bool {
        node.protocol().view() >= view
    }

    fn last_answer(node: &Self::Node, client: u32) -> Option<(u64, Digest, Vec<u8>)> {
        node.calls.last_answer(client)
    }

    fn waiting(node: &Self::Node, client: u32) -> Option<(u64, Digest)> {
        let mut requests = node.requests.values();
        let request = requests.find(|it| it.client == client).map(|it| (it.number, it.digest()));
        request.or_else(|| node.calls.open(client))
    }

    fn reply(
        node: &Self::Node,
        client: u32,
        (number, request, answer): &(u64, Digest, Vec<u8>),
    ) -> Vec<u8> {
        node.endorsement(client, (*number, *request), answer.clone())
    }

    fn take(liars: &mut Coalition, step: Step, _correct: &Correct<'_>) {
        plan::take(liars, &step);
    }

    /// Liars that have left proof are found by all correct nodes, and no log has a request of a
    /// correct client twice.
    fn finish(world: &mut World) {
        let correct = || world.hosts.iter().filter_map(Host::correct);
        let mut violations = Vec::new();
        for (number, host) in (0..).zip(&world.hosts) {
            if let Host::Liar(liar) = host
                && liar.has_left_proof()
                && !correct().all(|it| it.faulty().any(|it| it == number))
            {
                violations.push(Violation::NotFound(number));
            }
        }
        for node in correct() {
            let mut executed = BTreeSet::new();
            for &(Caller { client, .. }, number, _) in node.protocol().executed() {
                if client != LIAR_CLIENT && !executed.insert((client, number)) {
                    violations.push(Violation::Twice(client, number));
                }
            }
        }
        violations.into_iter().for_each(|it| world.history.violate(it));
    }
}
