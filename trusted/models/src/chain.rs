// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of `smt-chain`: nodes, one of which lies, clients with a request each, and the trusted
//! service of configurations.

mod closing;
mod lies;
mod process;
mod properties;

use std::sync::Arc;

use smt_chain::sim::observe;
use smt_chain::{Accuse, Message, Output, Statement};
use smt_replica::{Attested, Group, Request};
use stateright::Property;

use crate::answers::Answers;
use crate::closing::Closings;
use crate::{Cluster, Key, LiarDevice, NODES, Progress, Said, State, System, View};

pub use lies::Lie;
pub use process::{Observed, Process};
pub use properties::{names, twins};

/// The most that happens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// How many clients have a request, each one.
    pub requests: usize,
    /// The last configuration that the service makes.
    pub configurations: u64,
    /// The most statements of a liar.
    pub lies: usize,
    /// Whether each entry is left out of the log that all have proved.
    pub leaves_out: bool,
    /// Whether nodes have logs, and are killed. Their devices are not.
    pub kills: bool,
    /// One state of so many is closed in a fair way. 0: none, and each tick is a timeout.
    pub closings: u64,
}

impl Bounds {
    /// Nodes with logs, which are killed, and leave out each entry that all have proved.
    #[must_use]
    pub fn logs() -> Self {
        let (requests, configurations, lies, closings) = (1, 1, 1, 64);
        Self { requests, configurations, lies, leaves_out: true, kills: true, closings }
    }
}

/// Ticks of a timeout where closings are played, in which a request must be able to go round.
const TIMEOUT: u32 = 4;

/// Nodes, and their bounds.
pub struct Chain {
    bounds: Bounds,
    group: Arc<Group>,
    requests: Vec<Request>,
    answers: Answers,
    closings: Closings,
}

/// An event at a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Time passes until it accuses, if it waits for anything.
    Timeout,
    /// It hears of a configuration that the service has made.
    Configure(u64),
    /// It is killed, and its log gives it back.
    Kill,
    /// The same, after its log has begun anew with a snapshot.
    KillAfterSnapshot,
}

impl Chain {
    /// Correct nodes.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let mut group = observe::group(NODES);
        if bounds.leaves_out {
            group.options.interval = 1;
        }
        if bounds.closings > 0 {
            group.options.timeout = TIMEOUT;
        }
        let group = Arc::new(group);
        let requests = requests(&group, bounds.requests);
        Self { bounds, group, requests, answers: <_>::default(), closings: <_>::default() }
    }

    /// Whether the service has made a configuration: f + 1 nodes have once accused the one before.
    /// A liar accuses each.
    fn is_made(&self, cluster: &Cluster<Self>, state: &State, number: u64) -> bool {
        let accused = cluster.messages.number(&accusation(number - 1));
        let seen = cluster.see(state);
        let correct = seen.iter().filter(|it| it.1.others.contains(&accused)).count();
        correct + cluster.liars.len() >= self.group.quorum()
    }
}

/// The requests of so many shipped clients, which add 1, 2 and so on to the counter.
fn requests(group: &Arc<Group>, count: usize) -> Vec<Request> {
    let request = |client: u32| {
        let mut it = observe::client(group, client);
        it.submit([client as u8; 16], u64::from(client).to_be_bytes().to_vec());
        match it.outputs().pop() {
            Some(Output::Node(_, bytes)) => match Message::decode(&bytes) {
                Some(Message::Request(request)) => Some(request),
                _ => None,
            },
            _ => None,
        }
    };
    (1..).take(count).filter_map(request).collect()
}

/// An accusation as a message of the model.
fn accusation(number: u64) -> Vec<u8> {
    [b"accuses ".as_slice(), &number.to_be_bytes()].concat()
}

impl System for Chain {
    type Node = Process;
    type Event = Event;
    type Lie = Lie;
    type Observed = Observed;

    fn node(&self, own: u32) -> Option<Process> {
        Process::new(&self.group, own, self.bounds.kills)
    }

    fn device(&self, liar: u32) -> LiarDevice {
        LiarDevice::new(liar, NODES, self.group.stream, observe::secret)
    }

    fn receive(&self, node: &mut Process, bytes: &[u8]) {
        node.receive(bytes);
    }

    fn happen(&self, node: &mut Process, event: Event) {
        match event {
            Event::Timeout => node.time_out(),
            Event::Configure(number) => node.configure(number),
            Event::Kill => node.kill(false),
            Event::KillAfterSnapshot => node.kill(true),
        }
    }

    fn said(&self, node: &mut Process) -> Vec<Said> {
        let other = |output| match output {
            Output::Client(_, bytes) => Some(Said::Other(bytes)),
            Output::Host(Accuse(number)) => Some(Said::Other(accusation(number))),
            Output::Node(..) | Output::Nodes(_) => None,
        };
        let statements = node.said().into_iter();
        let statements = statements.map(|it| Said::Statement(Message::Statement(it).encode()));
        statements.chain(node.outputs().into_iter().filter_map(other)).collect()
    }

    fn observe(&self, node: &mut Process) -> (View, Observed) {
        let observed = node.observe();
        let progress = |it: &observe::Progress| Progress { held: it.held, is_faulty: it.is_faulty };
        let streams = (0..).zip(&observed.node.streams).map(|(node, it)| ((node, 1), progress(it)));
        let (fingerprint, streams) = (observed.node.fingerprint, streams.collect());
        (View { fingerprint, streams }, observed)
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.iter().map(|it| Message::Request(it.clone()).encode()).collect()
    }

    fn events(&self, cluster: &Cluster<Self>, state: &State, own: u32) -> Vec<Event> {
        let promised = cluster.observed(state, own).map_or(0, |it| it.node.promised);
        let made = (1..=self.bounds.configurations).filter(|it| self.is_made(cluster, state, *it));
        let mut events: Vec<Event> = made.map(Event::Configure).collect();
        events.extend((promised < self.bounds.configurations).then_some(Event::Timeout));
        if self.bounds.kills {
            events.extend([Event::Kill, Event::KillAfterSnapshot]);
        }
        events
    }

    fn lies_max(&self) -> usize {
        self.bounds.lies
    }

    fn alphabet(&self, cluster: &Cluster<Self>, state: &State, key: Key) -> Vec<Lie> {
        self.lies(cluster, state, key.0)
    }

    fn body(&self, cluster: &Cluster<Self>, state: &State, lie: (Key, &Lie)) -> Option<Vec<u8>> {
        postcard::to_allocvec(&self.meant(cluster, state, lie)?).ok()
    }

    fn message(&self, attestation: [[u8; 32]; 2], body: Vec<u8>) -> Vec<u8> {
        Message::Statement(Attested { attestation, body }).encode()
    }

    fn forgeries(&self, cluster: &Cluster<Self>, state: &State) -> Vec<(Key, Lie)> {
        let is_first = cluster.said(state, (0, 1)).is_empty() && !cluster.liars.contains(&0);
        let lie = Lie::Order { configuration: 0, place: 1, request: 0, answer: 1 };
        Vec::from_iter(is_first.then_some(((0, 1), lie)))
    }

    fn properties(&self, liars: &[u32]) -> Vec<Property<Cluster<Self>>> {
        properties::all(self.bounds, liars)
    }
}

/// The statement of attested bytes in a message.
fn statement(message: &[u8]) -> Option<(Attested, Statement)> {
    match Message::decode(message)? {
        Message::Statement(it) => postcard::from_bytes(&it.body).ok().map(|said| (it, said)),
        _ => None,
    }
}
