// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node as a state machine without input and output of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_attestation::{
    Algorithm, DeviceId, Epoch, GroupSecret, Kernel, Member, Misuse, Start, StreamId,
};
use smt_bft::{Group, Request, Service, SigningKey};

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::late::Accused;
use crate::log::Log;
use crate::message::{Attested, Message, Statement, encode};
use crate::rule::{Broken, Rule};
use crate::track::{Stream, Track};

/// A device for groups of up to nine nodes.
type Device = Kernel<1, 8, 64>;

/// Bytes of a statement beside those of an operation, at most: an ORDER has 150 of them, and an
/// OPEN of nine nodes 250.
const BODY_REST: usize = 1024;
/// After so many ticks the head hears again of a request that waits.
const FORWARD: u32 = 4;

/// Something that a node or a client wants done. Nothing need arrive: all is asked for again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Bytes for one node.
    Node(u32, Vec<u8>),
    /// Bytes for all other nodes.
    Nodes(Vec<u8>),
    /// Bytes for a client.
    Client(u32, Vec<u8>),
    /// The service of configurations is to make the one after this number, when f + 1 nodes say so.
    Accuse(u64),
}

/// The secrets of a node.
pub struct Identity {
    /// The node's number, which is its device's.
    pub node: u32,
    /// The group's secret, for the device.
    pub secret: GroupSecret,
    /// The key with which the host signs replies.
    pub reply_key: SigningKey,
}

/// Numbers of a node, for logs and tests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Metrics {
    /// The configuration that it has entered.
    pub configuration: u64,
    /// The place up to which all is committed.
    pub committed: u64,
    /// How often it has accused since its log began.
    pub accusations: u64,
}

/// A request that waits to be committed.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) age: u32,
}

/// One of 2f + 1 nodes.
pub struct Node<S> {
    pub(crate) group: Arc<Group>,
    pub(crate) own: u32,
    kernel: Device,
    pub(crate) reply_key: SigningKey,
    /// A service in which nothing was executed.
    pub(crate) empty: S,
    pub(crate) streams: Vec<Stream>,
    /// Configurations that the trusted service has made, and the logs of those that were opened.
    pub(crate) configurations: BTreeMap<u64, Configuration>,
    /// The proof of the newest of them.
    pub(crate) made: Option<Made>,
    pub(crate) logs: BTreeMap<u64, Log<S>>,
    /// One request of each client, the newest.
    pub(crate) pending: BTreeMap<u32, Pending>,
    /// The configuration, and the place in its log, that f + 1 have proved.
    pub(crate) committed: (u64, u64),
    /// The place up to which clients have had their replies.
    pub(crate) replied: u64,
    pub(crate) waited: u32,
    /// The last accusation.
    pub(crate) accused: Option<Accused>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) metrics: Metrics,
    pub(crate) broken: Broken,
    /// A liar's host orders itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_orders: bool,
    /// A liar's host proves and opens itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_proofs: bool,
}

impl<S: Service + Clone> Node<S> {
    /// Starts a node of a new group, in configuration 0.
    ///
    /// # Errors
    /// Those of [`Kernel::open`].
    pub fn new(group: Arc<Group>, identity: Identity, empty: S) -> Result<Self, Misuse> {
        let Identity { node: own, secret, reply_key } = identity;
        let start = Start { device: DeviceId(own), epoch: Epoch(1), nonce: [0; 16] };
        let mut kernel = Device::start(start);
        let members = (0..group.replicas).map(DeviceId);
        let members: Vec<Member> =
            members.map(|device| Member { device, epoch: Epoch(1) }).collect();
        let of_device = smt_attestation::Group {
            stream: StreamId(group.stream),
            algorithm: Algorithm::HmacSha256,
            quorum: u32::try_from(group.quorum()).unwrap_or(u32::MAX),
            members: &members,
        };
        kernel.open(&secret, &of_device)?;
        let first = Configuration::of_number(0, group.replicas);
        Ok(Self {
            own,
            kernel,
            reply_key,
            streams: vec![Stream::default(); group.replicas as usize],
            configurations: BTreeMap::from([(0, first.clone())]),
            made: None,
            logs: BTreeMap::from([(0, Log::first(first, empty.clone()))]),
            empty,
            pending: BTreeMap::new(),
            committed: (0, 0),
            replied: 0,
            waited: 0,
            accused: None,
            outputs: Vec::new(),
            metrics: Metrics::default(),
            broken: Broken::default(),
            #[cfg(feature = "sim")]
            holds_orders: false,
            #[cfg(feature = "sim")]
            holds_proofs: false,
            group,
        })
    }

    /// Takes a message: from a node or a client, forwarded or not.
    pub fn receive(&mut self, bytes: &[u8]) {
        if let Some(message) = Message::decode(bytes) {
            self.take(message);
        }
    }

    /// Takes a message that is decoded.
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.take_request(request),
            Message::Statement(statement) => self.take_statement(statement),
            Message::Made(made) => return self.learn(made),
            Message::Status(_) | Message::Reply(_) => {
                let answer = self.answer(&message);
                self.outputs.extend(answer);
                return;
            }
        }
        self.advance();
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.drop_done();
        self.accuse_if_late();
        let old = self.pending.values().filter(|it| it.age % FORWARD == 1);
        let old: Vec<Request> = old.map(|it| it.request.clone()).collect();
        old.into_iter().for_each(|it| self.forward(it));
        let question = self.question();
        self.outputs.push(question);
        self.advance();
    }

    /// All that is to be done, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The numbers of this moment.
    pub fn metrics(&self) -> Metrics {
        let configuration = self.own_track().at.0;
        Metrics { configuration, committed: self.replied, ..self.metrics }
    }

    /// The nodes that have said what no correct node says.
    pub fn faulty(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.streams).filter(|it| it.1.track.is_faulty).map(|it| it.0)
    }

    pub(crate) fn own_track(&self) -> &Track {
        &self.streams[self.own as usize].track
    }

    /// The order of the configuration that this node has entered.
    pub(crate) fn current(&self) -> Option<&Configuration> {
        self.configurations.get(&self.own_track().at.0)
    }

    /// Has a statement attested.
    pub(crate) fn attest(&mut self, statement: &Statement) -> Option<Attested> {
        let body = encode(statement);
        let stream = self.kernel.stream_mut(StreamId(self.group.stream))?;
        // A counter that has run out ends the node: it says nothing more.
        let attestation = stream.attest(&body).ok()?;
        Some(Attested::new(&attestation, body))
    }

    /// Takes a statement of this device, and sends it to those who need it first.
    pub(crate) fn publish(&mut self, said: Attested) {
        let Some(header) = said.attestation().claim() else {
            return;
        };
        self.streams[self.own as usize].put(header.counter, said);
        self.drain();
    }

    pub(crate) fn say(&mut self, statement: &Statement) {
        if let Some(said) = self.attest(statement) {
            self.publish(said);
        }
    }

    /// The node that has attested this, and the counter. Nothing for a statement that is longer
    /// than any of a correct node, and would take the memory and the disks of all.
    pub(crate) fn authenticate(&self, it: &Attested) -> Option<(u32, u64)> {
        if it.body.len() > self.group.options.operation.saturating_add(BODY_REST) {
            return None;
        }
        let attestation = it.attestation();
        let stream = self.kernel.stream(StreamId(self.group.stream))?;
        let header = match stream.check(&attestation, &it.body) {
            Ok(header) => header,
            Err(_) if self.broken.lacks(Rule::Mac) => attestation.claim()?,
            Err(_) => return None,
        };
        let is_member = header.epoch.0 == 1 && header.device.0 < self.group.replicas;
        is_member.then_some((header.device.0, header.counter))
    }

    fn take_statement(&mut self, statement: Attested) {
        if let Some((node, counter)) = self.authenticate(&statement)
            && node != self.own
        {
            self.streams[node as usize].put(counter, statement);
        }
    }

    /// A configuration was entered: all requests get their time again.
    pub(crate) fn entered(&mut self) {
        self.waited = 0;
        self.accused = None;
        self.pending.values_mut().for_each(|it| it.age = 0);
    }
}
