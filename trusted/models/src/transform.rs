// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of `smt-transform`: nodes of its crash-tolerant counter, one of which lies, and clients
//! with a request each.

mod lies;
mod properties;

use std::sync::Arc;

use smt_transform::counter::Counter;
use smt_transform::sim::observe::{self, Observed};
use smt_transform::{Attested, Group, Input, Message, Node, Output, Request, Step};
use stateright::Property;

use crate::answers::Answers;
use crate::{Cluster, Key, LiarDevice, NODES, Progress, Said, State, System, View};

pub use lies::Lie;
pub use properties::{names, twins};

/// Ticks in which a timer of the counter runs out, and none does twice.
const TIMEOUT: u32 = 16;

/// The most that happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many clients have a request, each one.
    pub requests: usize,
    /// How often the timers of each correct node run out.
    pub views: u64,
    /// The most steps of a liar.
    pub lies: usize,
}

/// Nodes, and their bounds.
pub struct Transform {
    bounds: Bounds,
    group: Arc<Group>,
    requests: Vec<Request>,
    answers: Answers,
}

/// The timers of a node run out.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Timeout;

impl Transform {
    /// Correct nodes.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let group = Arc::new(observe::group(NODES));
        let requests = requests(&group, bounds.requests);
        Self { bounds, group, requests, answers: Answers::default() }
    }
}

/// The requests of so many shipped clients, which add 1, 2 and so on to the counter.
fn requests(group: &Arc<Group>, count: usize) -> Vec<Request> {
    let request = |client: u32| {
        let mut it = observe::client(group, client);
        it.submit(u64::from(client).to_be_bytes().to_vec());
        match it.outputs().pop() {
            Some(Output::Nodes(bytes)) => match Message::decode(&bytes) {
                Some(Message::Request(request)) => Some(request),
                _ => None,
            },
            _ => None,
        }
    };
    (1..).take(count).filter_map(request).collect()
}

impl System for Transform {
    type Node = Node<Counter>;
    type Event = Timeout;
    type Lie = Lie;
    type Observed = Observed;

    fn node(&self, own: u32) -> Option<Node<Counter>> {
        observe::node(&self.group, own).ok()
    }

    fn device(&self, liar: u32) -> LiarDevice {
        LiarDevice::new(liar, NODES, self.group.stream, observe::secret)
    }

    fn receive(&self, node: &mut Node<Counter>, bytes: &[u8]) {
        // The counter is deterministic, and its device gives more counters than a model has steps.
        let _ = node.receive(bytes);
    }

    fn happen(&self, node: &mut Node<Counter>, _: Timeout) {
        for _ in 0..TIMEOUT {
            let _ = node.tick();
        }
    }

    fn said(&self, node: &mut Node<Counter>) -> Vec<Said> {
        let said = |output| {
            let (Output::Nodes(bytes) | Output::Node(_, bytes) | Output::Client(_, bytes)) = output;
            match Message::decode(&bytes) {
                Some(Message::Step(_)) => Some(Said::Statement(bytes)),
                Some(Message::Endorsement(_)) => Some(Said::Other(bytes)),
                _ => None,
            }
        };
        node.outputs().into_iter().filter_map(said).collect()
    }

    fn observe(&self, node: &mut Node<Counter>) -> (View, Observed) {
        let observed = observe::observe(node);
        let progress = |it: &observe::Followed| Progress { held: it.held, is_faulty: it.is_faulty };
        let streams = (0..).zip(&observed.followed).map(|(node, it)| ((node, 1), progress(it)));
        (View { fingerprint: observed.fingerprint, streams: streams.collect() }, observed)
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.iter().map(|it| Message::Request(it.clone()).encode()).collect()
    }

    fn may_come(&self, cluster: &Cluster<Self>, state: &State, to: (u32, usize)) -> bool {
        // One that comes again before it has an answer is a step again, without end.
        let request = self.requests.get(to.1);
        let mut steps = steps(cluster, state, to.0).into_iter();
        !steps.any(|it| matches!(&it.input, Input::Request(it) if Some(it) == request))
    }

    fn events(&self, cluster: &Cluster<Self>, state: &State, own: u32) -> Vec<Timeout> {
        let steps = steps(cluster, state, own).into_iter();
        let timeouts = steps.filter(|it| matches!(it.input, Input::Timeout { .. })).count() as u64;
        Vec::from_iter((timeouts < self.bounds.views).then_some(Timeout))
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
        Message::Step(Attested { attestation, body }).encode()
    }

    fn forgeries(&self, cluster: &Cluster<Self>, state: &State) -> Vec<(Key, Lie)> {
        let is_first = cluster.said(state, (0, 1)).is_empty() && !cluster.liars.contains(&0);
        Vec::from_iter(is_first.then_some(((0, 1), Lie::Request { request: 0 })))
    }

    fn properties(&self, liars: &[u32]) -> Vec<Property<Cluster<Self>>> {
        properties::all(self.bounds, liars)
    }
}

/// The steps of a node.
fn steps(cluster: &Cluster<Transform>, state: &State, node: u32) -> Vec<Step> {
    let said = cluster.said(state, (node, 1)).into_iter();
    said.filter_map(|it| step(&cluster.messages.bytes(it))).collect()
}

/// The step of attested bytes in a message.
fn step(message: &[u8]) -> Option<Step> {
    match Message::decode(message)? {
        Message::Step(it) => postcard::from_bytes(&it.body).ok(),
        _ => None,
    }
}
