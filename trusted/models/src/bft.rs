// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of `smt-bft`: replicas, one of which lies, and clients with a request each.

mod lies;
mod properties;

use std::sync::Arc;

use smt_bft::sim::observe::{self, Observed};
use smt_bft::{Message, Output, Replica, Statement};
use smt_replica::{Attested, Counter, Group, Request};
use stateright::Property;

use crate::answers::Answers;
use crate::{Cluster, Key, LiarDevice, NODES, Progress, Said, State, System, View};

pub use lies::Lie;
pub use properties::{names, twins};

/// The most that happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many clients have a request, each one.
    pub requests: usize,
    /// The last view that replicas want.
    pub views: u64,
    /// The most statements of a liar, over all its epochs.
    pub lies: usize,
    /// Whether the liar's device may restart.
    pub restarts: bool,
    /// Whether the liar orders requests.
    pub orders: bool,
}

/// Replicas, and their bounds. A timeout is one tick.
pub struct Bft {
    bounds: Bounds,
    group: Arc<Group>,
    requests: Vec<Request>,
    answers: Answers,
}

/// Time passes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Timeout;

impl Bft {
    /// Correct replicas.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let group = Arc::new(observe::group(NODES, 0));
        let requests = requests(&group, bounds.requests);
        let answers = Answers::default();
        Self { bounds, group, requests, answers }
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

impl System for Bft {
    type Node = Replica<Counter>;
    type Event = Timeout;
    type Lie = Lie;
    type Observed = Observed;

    fn node(&self, own: u32) -> Option<Replica<Counter>> {
        observe::replica(&self.group, own).ok()
    }

    fn device(&self, liar: u32) -> LiarDevice {
        LiarDevice::new(liar, NODES, self.group.stream, observe::secret)
    }

    fn receive(&self, node: &mut Replica<Counter>, bytes: &[u8]) {
        node.receive(bytes);
    }

    fn happen(&self, node: &mut Replica<Counter>, _: Timeout) {
        node.tick();
    }

    fn said(&self, node: &mut Replica<Counter>) -> Vec<Said> {
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

    fn observe(&self, node: &Replica<Counter>) -> (View, Observed) {
        let observed = observe::observe(node);
        let progress = |it: &observe::Progress| Progress { held: it.held, is_faulty: it.is_faulty };
        let streams = observed.streams.iter().map(|(key, it)| (*key, progress(it))).collect();
        (View { fingerprint: observed.fingerprint, streams }, observed)
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.iter().map(|it| Message::Request(it.clone()).encode()).collect()
    }

    fn events(&self, cluster: &Cluster<Self>, state: &State, own: u32) -> Vec<Timeout> {
        let promised = cluster.observed(state, own).map_or(0, |it| it.promised);
        Vec::from_iter((promised < self.bounds.views).then_some(Timeout))
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
