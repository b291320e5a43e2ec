// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The exploration of all executions within some bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::bounds::Bounds;
use crate::broken::{Broken, Rules};
use crate::packet::Packet;
use crate::reached::{self, Reached, ReachedSet};
use crate::violation::{self, Violation};
use crate::world::{Action, World};

/// The findings of an exploration.
#[derive(Debug)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Steps of the longest of the shortest executions to a state.
    pub depth: usize,
    /// Properties that do not hold, each with an execution that shows it, a line for each step.
    pub violations: BTreeMap<Violation, Vec<String>>,
    /// Everything that was reached.
    pub reached: Vec<Reached>,
}

/// Tries all executions within some bounds, of the protocol or of a variant without a rule. It ends
/// at the first violation.
#[must_use]
pub fn explore(bounds: Bounds, broken: Option<Broken>) -> Explored {
    let exploration = Exploration { bounds, rules: Rules(broken), reached: ReachedSet::default() };
    let checker = exploration
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let discoveries = checker.discoveries();
    let exploration = checker.model();
    let violations = violation::ALL.iter().filter_map(|(violation, name)| {
        let trace = &discoveries.get(name)?.last_state().trace;
        let trace = exploration.shortest(trace, *violation);
        Some((*violation, exploration.describe(trace)))
    });
    let reached = reached::ALL.iter().map(|(reached, _)| *reached);
    Explored {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        violations: violations.collect(),
        reached: reached.filter(|reached| exploration.reached.contains(*reached)).collect(),
    }
}

struct Exploration {
    bounds: Bounds,
    rules: Rules,
    reached: ReachedSet,
}

/// A state: how it came about, and all that its future depends on. States are the same if the
/// second is.
#[derive(Clone, Debug)]
struct State {
    trace: Vec<Action>,
    observed: Observed,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.observed == other.observed
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.observed.hash(state);
    }
}

/// All of a world that its future depends on, or that properties are about. The plaintexts that
/// were sealed are those of the network's packets.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Observed {
    session: u8,
    begun: u8,
    cancels: u32,
    network: BTreeSet<Packet>,
    client: ObservedClient,
    server: ObservedServer,
    delivered: BTreeMap<u8, u32>,
    voided: BTreeSet<u8>,
    violations: BTreeSet<Violation>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct ObservedClient {
    limit: u64,
    epoch: u32,
    previous: Option<u32>,
    is_done_told: bool,
    controls: u64,
    /// Which of the server's control packets were taken.
    controls_taken: Vec<bool>,
    /// Counter, number, epochs of the sealed records, whether it is cancelled.
    messages: Vec<(u64, u8, Vec<Option<u32>>, bool)>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct ObservedServer {
    floor: u64,
    /// The counters that the messages have: whether each is seen and delivered.
    window: Vec<(bool, u8)>,
    epoch: u32,
    previous: Option<u32>,
    dropped: BTreeSet<u32>,
    controls: u64,
    controls_taken: Vec<bool>,
    incoming: Vec<(u64, BTreeSet<u32>)>,
}

impl Observed {
    fn of(world: &World<'_>) -> Self {
        Self {
            session: world.session,
            begun: world.begun,
            cancels: world.cancels,
            network: world.network.clone(),
            client: ObservedClient::of(world),
            server: ObservedServer::of(world),
            delivered: world.delivered.clone(),
            voided: world.voided.clone(),
            violations: world.violations.clone(),
        }
    }
}

impl ObservedClient {
    fn of(world: &World<'_>) -> Self {
        let client = &world.client;
        let taken = |number| !client.replay.check(number);
        let messages = client.messages.iter().map(|(counter, outgoing)| {
            let epochs = outgoing.epochs().map(|(_, epoch)| epoch).collect();
            (*counter, outgoing.number, epochs, outgoing.is_cancelled)
        });
        Self {
            limit: client.limit,
            epoch: client.seal.epoch(),
            previous: client.seal.previous(),
            is_done_told: client.is_done_told,
            controls: client.controls,
            controls_taken: (0..CONTROLS).map(taken).collect(),
            messages: messages.collect(),
        }
    }
}

impl ObservedServer {
    fn of(world: &World<'_>) -> Self {
        let server = &world.server;
        let taken = |number| !server.replay.check(number);
        let window = &server.window;
        let seen = |counter| (window.is_seen(counter), window.is_delivered(counter) as u8);
        let incoming = server.incoming.iter();
        Self {
            floor: window.floor(),
            window: COUNTERS.map(seen).to_vec(),
            epoch: server.open.epoch(),
            previous: server.open.previous(),
            dropped: server.dropped.clone(),
            controls: server.controls,
            controls_taken: (0..CONTROLS).map(taken).collect(),
            incoming: incoming
                .map(|(counter, incoming)| (*counter, incoming.opened.clone()))
                .collect(),
        }
    }
}

impl Exploration {
    fn world(&self, trace: &[Action]) -> World<'_> {
        let mut world = World::new(&self.bounds, self.rules, &self.reached);
        for action in trace {
            world.step(*action);
        }
        world
    }

    /// The beginning of an execution up to the violation.
    fn shortest<'t>(&self, trace: &'t [Action], violation: Violation) -> &'t [Action] {
        let is_violated = |length: &usize| {
            let world = self.world(&trace[..*length]);
            match violation {
                Violation::NeverEnds => !world.ends(),
                violation => world.violations.contains(&violation),
            }
        };
        let length = (0..trace.len()).find(is_violated);
        &trace[..length.unwrap_or(trace.len())]
    }

    /// An execution, a line for each step.
    fn describe(&self, trace: &[Action]) -> Vec<String> {
        let mut world = World::new(&self.bounds, self.rules, &self.reached);
        let line = |action: &Action| {
            let line = match action {
                Action::Arrive(place) => {
                    let packet = world.network.iter().nth(usize::from(*place));
                    format!("arrives: {}", packet.map(Packet::describe).unwrap_or_default())
                }
                action => format!("{action:?}"),
            };
            world.step(*action);
            line
        };
        trace.iter().map(line).collect()
    }

    fn is_violated(&self, state: &State, violation: Violation) -> bool {
        match violation {
            Violation::NeverEnds => !self.world(&state.trace).ends(),
            violation => state.observed.violations.contains(&violation),
        }
    }
}

impl Model for Exploration {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let observed = Observed::of(&self.world(&[]));
        vec![State { trace: Vec::new(), observed }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(self.world(&state.trace).actions());
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut world = self.world(&state.trace);
        world.step(action);
        let observed = Observed::of(&world);
        if observed == state.observed {
            return None;
        }
        let trace = [state.trace.as_slice(), &[action]].concat();
        Some(State { trace, observed })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! always {
            ($($violation:ident)*) => {
                [$(Property::always(
                    violation::name(Violation::$violation),
                    |model: &Self, state| !model.is_violated(state, Violation::$violation),
                )),*]
            };
        }
        macro_rules! sometimes {
            ($($reached:ident)*) => {
                [$(Property::sometimes(
                    reached::name(Reached::$reached),
                    |model: &Self, _| model.reached.contains(Reached::$reached),
                )),*]
            };
        }
        let always = always!(
            DeliveredTwice VoidedAndDelivered FalseSeen NonceReused DroppedEpochOpened
            ClientKeyLost ServerKeyLost OutOfRange FalseLimit ControlTwice
            ControlRefused NeverEnds
        );
        let sometimes = sometimes!(
            Delivered DeliveredAll RefusedRepetition Blocked UsedAdvertisedLimit
            RefusedControlAgain NewEpoch SpannedEpochs FinishedEpoch RefusedDroppedEpoch
            RefusedOtherAck Voided CancelledTooLate CancelledLongAgo Restarted RefusedOldSession
            DeliveredAfterRestart
        );
        always.into_iter().chain(sometimes).collect()
    }
}

/// Control numbers of a side that are looked at: more than any exploration uses.
const CONTROLS: u64 = 24;

/// The counters of messages: the floor's, and those from the first free one on.
const COUNTERS: [u64; 4] = [0, 63, 64, 65];
