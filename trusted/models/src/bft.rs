// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of `smt-bft`: replicas, some of which lie, and clients with a request each.

mod beginnings;
mod bounds;
mod clients;
mod closing;
mod found;
mod lies;
mod process;
mod properties;
mod shown;
pub mod twins;

use std::sync::Arc;

use smt_bft::sim::observe;
use smt_bft::{Message, Output};
use smt_replica::{Attested, Group, Options, Request};
use stateright::Property;

use crate::answers::Answers;
use crate::closing::Closings;
use crate::{Cluster, Key, LiarDevice, Progress, Said, State, System, View};

pub use beginnings::Beginning;
pub use bounds::Bounds;
pub use lies::Lie;
pub use process::{Observed, Process};
pub use properties::names;

/// Ticks of a timeout where closings are played, which a leader must be able to answer in.
const TIMEOUT: u32 = 4;

/// Replicas, and their bounds.
pub struct Bft {
    bounds: Bounds,
    group: Arc<Group>,
    requests: Vec<Request>,
    answers: Answers,
    closings: Closings,
}

/// Something that happens at a correct replica.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Time passes until it says something: that it wants another leader, for example.
    Timeout,
    /// One tick passes.
    Tick,
    /// Its device restarts, and all that it had is lost.
    Restart,
    /// It is killed, and its log gives it back.
    Kill,
}

impl Bft {
    /// Correct replicas.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let group = Arc::new(group(&bounds));
        let mut requests = clients::requests(&group, bounds.requests);
        requests.extend(clients::row(&group, bounds.beginning.row()));
        Self { bounds, group, requests, answers: <_>::default(), closings: <_>::default() }
    }
}

/// The group: as small as may be, where states are given.
fn group(bounds: &Bounds) -> Group {
    let mut group = observe::group(bounds.replicas, if bounds.closings > 0 { TIMEOUT } else { 0 });
    if bounds.states {
        let Options { window, .. } = group.options;
        let small =
            Options { interval: 1, window: 2, pipeline: window, retained: 1, ..group.options };
        group.options = small;
    }
    group
}

impl System for Bft {
    type Node = Process;
    type Event = Event;
    type Lie = Lie;
    type Observed = Observed;

    fn nodes(&self) -> u32 {
        self.bounds.replicas
    }

    fn begin(&self, cluster: &Cluster<Self>, first: State) -> State {
        self.bounds.beginning.script(cluster, first)
    }

    fn node(&self, own: u32) -> Option<Process> {
        Process::new(&self.group, own, self.bounds.kills)
    }

    fn device(&self, liar: u32) -> LiarDevice {
        LiarDevice::new(liar, self.bounds.replicas, self.group.stream, observe::secret)
    }

    fn receive(&self, node: &mut Process, bytes: &[u8]) {
        node.receive(bytes);
    }

    fn happen(&self, node: &mut Process, event: Event) {
        match event {
            Event::Timeout => node.time_out(),
            Event::Tick => node.tick(),
            Event::Restart => node.restart(),
            Event::Kill => node.kill(),
        }
    }

    fn said(&self, node: &mut Process) -> Vec<Said> {
        let said = |output| {
            let (Output::Nodes(bytes) | Output::Node(_, bytes) | Output::Client(_, bytes)) = output;
            match Message::decode(&bytes) {
                Some(Message::Statement(_)) => Some(Said::Statement(bytes)),
                Some(Message::Reply(_)) => Some(Said::Other(bytes)),
                // Questions, and requests that are passed on: the network delivers all anyway.
                _ => None,
            }
        };
        node.outputs().into_iter().filter_map(said).collect()
    }

    fn has_whole_rows(&self) -> bool {
        self.bounds.whole_rows
    }

    fn epoch(&self, node: &Process) -> u64 {
        node.epoch()
    }

    fn gives(&self, node: &Process) -> Option<((u64, u64), Vec<u8>)> {
        if self.bounds.states { node.state() } else { None }
    }

    fn remembered(&self) -> usize {
        self.bounds.old_states
    }

    fn observe(&self, node: &mut Process) -> (View, Observed) {
        let observed = node.observe();
        let progress = |it: &observe::Progress| Progress { held: it.held, is_faulty: it.is_faulty };
        let streams = observed.replica.streams.iter().map(|(key, it)| (*key, progress(it)));
        let (fingerprint, streams) = (observed.replica.fingerprint, streams.collect());
        (View { fingerprint, streams }, observed)
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.iter().map(|it| Message::Request(it.clone()).encode()).collect()
    }

    fn may_come(&self, _: &Cluster<Self>, _: &State, (_, request): (u32, usize)) -> bool {
        request < self.bounds.requests
    }

    fn events(&self, cluster: &Cluster<Self>, state: &State, own: u32) -> Vec<Event> {
        let Some(observed) = cluster.observed(state, own) else {
            return Vec::new();
        };
        let is_active = observed.epoch == 1 || observed.metrics.is_active;
        let may_want = is_active && observed.replica.promised < self.bounds.views;
        let mut events = Vec::from_iter(may_want.then_some(Event::Timeout));
        if self.bounds.recoveries > 0 {
            events.extend(self.may_restart(cluster, state, own).then_some(Event::Restart));
        }
        if self.bounds.kills {
            events.extend([Event::Tick, Event::Kill]);
        }
        events
    }

    fn lies_max(&self) -> usize {
        self.bounds.lies
    }

    fn epochs(&self) -> u64 {
        if self.bounds.restarts { 2 } else { 1 }
    }

    fn alphabet(&self, cluster: &Cluster<Self>, state: &State, key: Key) -> Vec<Lie> {
        self.lies(cluster, state, key)
    }

    fn shown(&self, cluster: &Cluster<Self>, state: &State) -> Vec<Lie> {
        if self.bounds.states { self.all_shown(cluster, state) } else { Vec::new() }
    }

    fn show(&self, cluster: &Cluster<Self>, state: &mut State, lie: &Lie) -> Option<Vec<u8>> {
        self.made_up(cluster, state, lie).map(|it| Message::State(Box::new(it)).encode())
    }

    fn body(&self, cluster: &Cluster<Self>, state: &State, lie: (Key, &Lie)) -> Option<Vec<u8>> {
        postcard::to_allocvec(&self.meant(cluster, state, lie.1)?).ok()
    }

    fn message(&self, attestation: [[u8; 32]; 2], body: Vec<u8>) -> Vec<u8> {
        Message::Statement(Attested { attestation, body }).encode()
    }

    fn forgeries(&self, cluster: &Cluster<Self>, state: &State) -> Vec<(Key, Lie)> {
        let is_first = cluster.said(state, (0, 1)).is_empty() && !cluster.liars.contains(&0);
        let lie = Lie::Prepare { view: 0, place: 1, request: 0 };
        Vec::from_iter(is_first.then_some(((0, 1), lie)))
    }

    fn properties(&self, liars: &[u32]) -> Vec<Property<Cluster<Self>>> {
        properties::all(&self.bounds, liars)
    }
}

impl Bft {
    /// Whether a correct replica may lose all that it has: no more than f are faulty or not back
    /// yet, itself among them.
    fn may_restart(&self, cluster: &Cluster<Self>, state: &State, own: u32) -> bool {
        let (mut restarts, mut faulty) = (0, cluster.liars.len() + 1);
        for (other, seen) in cluster.see(state) {
            restarts += seen.epoch - 1;
            let is_active = seen.observed.as_ref().is_some_and(|it| it.metrics.is_active);
            faulty += usize::from(other != own && seen.epoch > 1 && !is_active);
        }
        restarts < self.bounds.recoveries && faulty <= self.group.faults()
    }
}
