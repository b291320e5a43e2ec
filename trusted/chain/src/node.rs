// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node as a state machine without input and output of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::Attested;
use smt_attestor::{Attestor, AttestorError, OwnDevice};
use smt_replica::{Effect, Group, KnownRoots, PendingRequests, Request, Service, SigningKey};

use crate::accusation::Made;
use crate::configuration::Configuration;
use crate::late::Accused;
use crate::log::Log;
use crate::message::{Message, Statement, encode};
use crate::state::Table;
use crate::track::{Stream, Track};

/// After so many ticks the head hears again of a request that waits.
const FORWARD: u32 = 4;

/// Something that a node or a client wants done.
pub type Output = smt_replica::Output<Accuse>;

/// The service of configurations is to make the one after this number, when f + 1 nodes say so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accuse(pub u64);

/// The device and the key of a node.
pub struct Identity {
    /// The device. Its number is the node's, and its epoch the one that the group has of it.
    pub device: OwnDevice,
    /// The key with which the host signs replies.
    pub reply_key: SigningKey,
}

impl Identity {
    /// A node that has forgotten what it has said must not come back.
    pub(crate) fn refuse_other_epoch(&self, group: &Group) -> Result<(), AttestorError> {
        let start = self.device.start();
        let (own, device) = (start.device.0, start.epoch.0);
        match group.epochs.get(own as usize).copied().unwrap_or(0) {
            group if group == device => Ok(()),
            group => Err(AttestorError::OtherEpoch { device, group }),
        }
    }
}

/// Numbers of a node, for logs and tests.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Metrics {
    /// The configuration that it has entered.
    pub configuration: u64,
    /// The place up to which all is committed.
    pub committed: u64,
    /// The place up to which the log is left out, but for the state after it.
    pub left_out: u64,
    /// How often it has accused since its log began.
    pub accusations: u64,
    /// How many statements its device has issued again, since the log did not have them.
    pub reissued: u64,
}

/// One of 2f + 1 nodes.
pub struct Node<S> {
    pub(crate) group: Arc<Group>,
    pub(crate) own: u32,
    pub(crate) device: Attestor,
    pub(crate) reply_key: SigningKey,
    /// A service in which nothing was executed.
    pub(crate) empty: S,
    pub(crate) streams: Vec<Stream>,
    /// Configurations that the trusted service has made, and the logs of those that were opened.
    pub(crate) configurations: BTreeMap<u64, Configuration>,
    /// The proof of the newest of them.
    pub(crate) made: Option<Made>,
    pub(crate) logs: BTreeMap<u64, Log<S>>,
    /// Requests that wait to be committed.
    pub(crate) pending: PendingRequests,
    /// The configuration, and the place in its log, that f + 1 have proved.
    pub(crate) committed: (u64, u64),
    /// The place up to which clients have had their replies.
    pub(crate) replied: u64,
    /// The places of requests up to there. A log has executed others after them, which may be left
    /// behind with its configuration.
    pub(crate) answered: Table,
    pub(crate) waited: u32,
    /// The last accusation.
    pub(crate) accused: Option<Accused>,
    /// Signatures of clients that were verified.
    pub(crate) known: KnownRoots,
    pub(crate) outputs: Vec<Output>,
    pub(crate) metrics: Metrics,
    /// A liar's host orders itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_orders: bool,
    /// A liar's host proves and opens itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_proofs: bool,
    /// All that was answered, for the comparison of nodes.
    #[cfg(feature = "sim")]
    pub(crate) history: BTreeMap<u64, Arc<crate::log::Entry>>,
}

impl<S: Service + Clone> Node<S> {
    /// Starts a node of a new group, in configuration 0, without a log: once it is killed it must
    /// stay off.
    ///
    /// # Errors
    /// The device is in another epoch than the group has of it, or cannot have such a group.
    pub fn new(group: Arc<Group>, identity: Identity, empty: S) -> Result<Self, AttestorError> {
        let mut node = Self::with_log(group, identity, empty)?;
        node.device = node.device.without_log();
        Ok(node)
    }

    /// The same for a node with a log.
    pub(crate) fn with_log(
        group: Arc<Group>,
        identity: Identity,
        empty: S,
    ) -> Result<Self, AttestorError> {
        identity.refuse_other_epoch(&group)?;
        let Identity { device, reply_key } = identity;
        let own = device.start().device.0;
        let device = group.open(device)?;
        let first = Configuration::of_number(0, group.replicas);
        Ok(Self {
            own,
            device,
            reply_key,
            streams: vec![Stream::default(); group.replicas as usize],
            configurations: BTreeMap::from([(0, first.clone())]),
            made: None,
            logs: BTreeMap::from([(0, Log::first(first, empty.clone()))]),
            empty,
            pending: PendingRequests::default(),
            committed: (0, 0),
            replied: 0,
            answered: Table::default(),
            waited: 0,
            accused: None,
            known: KnownRoots::default(),
            outputs: Vec::new(),
            metrics: Metrics::default(),
            #[cfg(feature = "sim")]
            holds_orders: false,
            #[cfg(feature = "sim")]
            holds_proofs: false,
            #[cfg(feature = "sim")]
            history: BTreeMap::new(),
            group,
        })
    }

    /// Takes a message: from a node or a client, forwarded or not.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes) else {
            return;
        };
        match self.effect_of(&message) {
            Effect::Nothing => {}
            Effect::Answer(_) => {
                let answer = self.answer(&message);
                self.outputs.extend(answer);
            }
            Effect::Change => self.take(message),
        }
    }

    /// Takes a message that had [`Effect::Change`] when it came: its signature or MAC was verified
    /// then, and is not verified again.
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.take_request(request),
            Message::Statement(statement) => self.take_statement(statement),
            Message::Made(made) => return self.learn(made),
            Message::Status(_) | Message::Reply(_) => {}
        }
        self.advance();
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.drop_done();
        self.accuse_if_late();
        let old = self.pending.iter().filter(|it| it.age % FORWARD == 1);
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
        let left_out = self.logs.get(&self.committed.0).map_or(0, Log::left_out);
        let (committed, reissued) = (self.replied, self.device.reissues());
        Metrics { configuration, committed, left_out, reissued, ..self.metrics }
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

    /// Has a statement attested. A device that fails ends the node (`Durable::commit`).
    pub(crate) fn attest(&mut self, statement: &Statement) -> Option<Attested> {
        let body = encode(statement);
        let attestation = self.device.attest(&body)?;
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

    fn take_statement(&mut self, statement: Attested) {
        let Some(header) = statement.attestation().claim() else {
            return;
        };
        if let Some(stream) = self.streams.get_mut(header.device.0 as usize) {
            stream.put(header.counter, statement);
        }
    }

    /// A configuration was entered: all requests get their time again.
    pub(crate) fn entered(&mut self) {
        self.waited = 0;
        self.accused = None;
        self.pending.wait_again();
    }
}
