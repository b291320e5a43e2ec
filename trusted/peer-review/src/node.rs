// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node as a state machine without input and output of its own: what it takes, and its messages.
//! `logging` is its own log, `witness` what it does as the witness of others.

mod effect;
mod logging;
mod snapshot;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::{Attestor, AttestorError, OwnDevice, REISSUED_MAX, UNLOGGED_MAX};
use zeroize::Zeroizing;

use crate::application::Application;
use crate::audited::{Audited, Suspicion};
use crate::authenticator::{Authenticator, Receipt, SentMessage};
use crate::digest::digest;
use crate::entry::Input;
use crate::evidence::Evidence;
use crate::group::{Group, GroupError};
use crate::log::Log;
use crate::message::Message;
use crate::outbox::Outbox;
use crate::state::{Fault, State};

/// Something that a node wants done. [`Output::Host`](smt_replica::Output::Host) has what the
/// application delivers.
pub type Output = smt_replica::Output<Vec<u8>>;

/// The opinion of a node on another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// There is nothing against it.
    Trusted,
    /// It has not answered, for these reasons. This ends when it answers.
    Suspected(Vec<Suspicion>),
    /// There is evidence, which convinces everybody. This does not end.
    Exposed(Box<Evidence>),
}

/// Why a node does not begin, or logs nothing more: it takes no message and answers no new audit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The group is none, or the node none of it.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The device gives no signatures.
    #[error(transparent)]
    Device(#[from] AttestorError),
    /// The application does what the group does not allow. Its state is lost.
    #[error("the node ends: {0}. The group's options or the application must change")]
    Application(Fault),
    /// The device is further than the log.
    #[error(
        "the device has attested entry {counter}, and the log goes to entry {last}: it was restored \
         or lost. The device must begin a new epoch, in a new group"
    )]
    OldLog {
        /// The counter that the device has given now.
        counter: u64,
        /// The last entry of the log.
        last: u64,
    },
}

/// Messages that a node takes of itself as a witness in one tick.
const BROUGHT_MAX: usize = 16;
// An entry may need a checkpoint before it, and others may wait for the journal.
const _: () = assert!(2 * BROUGHT_MAX + UNLOGGED_MAX - 1 < REISSUED_MAX, "all are issued again");

/// All that a host keeps for its node beside the application's state. A liar may restore it; the
/// device it cannot.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Host {
    pub(crate) log: Log,
    pub(crate) outboxes: BTreeMap<u32, Outbox>,
    /// The last receipt that was given to each sender.
    pub(crate) receipts: BTreeMap<u32, Receipt>,
    asked: BTreeMap<u32, Asked>,
    /// The newest signed entry of each node.
    seen: BTreeMap<u32, Authenticator>,
    exposed: BTreeMap<u32, Evidence>,
    /// When each node was given evidence last.
    informed: BTreeMap<u32, u64>,
    /// When a message of each sender was taken last that a witness had brought.
    challenged: BTreeMap<u32, u64>,
    /// How many nonces were derived.
    nonces: u64,
    ticks: u64,
}

/// The questions of a witness.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Asked {
    after: u64,
    nonce: Option<[u8; 16]>,
    at: u64,
    /// The tick of the last answer, and the index of its last entry.
    answered: Option<u64>,
    end: u64,
    #[cfg(feature = "sim")]
    #[serde(skip)]
    recorded: u64,
}

/// A node, which is a witness of others.
pub struct Node<A> {
    pub(crate) group: Arc<Group>,
    pub(crate) own: u32,
    pub(crate) device: Attestor,
    reference: A,
    pub(crate) host: Host,
    pub(crate) state: State<A>,
    /// The nodes of which this one is a witness, each with its state as its log gives it.
    pub(crate) audits: BTreeMap<u32, (Audited, State<A>)>,
    /// How many messages this node has brought to itself, as a witness, in this tick. It does so in
    /// [`Node::tick`] alone, which begins with none: between two inputs, where snapshots are made,
    /// nothing depends on it.
    brought: usize,
    /// How many messages were not taken because a receiver is slow.
    held: u64,
    /// From which nonces are derived.
    secret: Zeroizing<[u8; 32]>,
    /// Peers whose evidence has proved nothing since the last tick: to verify it takes long.
    unproven: BTreeSet<u32>,
    outputs: Vec<Output>,
    pub(crate) failure: Option<NodeError>,
    #[cfg(feature = "sim")]
    pub(crate) lie: crate::sim::Lie,
}

impl<A: Application> Node<A> {
    /// A node without a journal: once it is killed it must stay off. Its device has attested
    /// nothing in the group's stream. `secret` is 32 random bytes, from which come the nonces of
    /// audits.
    ///
    /// # Errors
    /// The group is none, the node none of it, or the device not the one that the group has of it.
    pub fn new(
        group: Arc<Group>,
        device: OwnDevice,
        secret: [u8; 32],
        application: &A,
    ) -> Result<Self, NodeError> {
        let mut node = Self::with_journal(group, device, secret, application)?;
        node.device = node.device.without_log();
        Ok(node)
    }

    /// The same for a node with a journal.
    pub(crate) fn with_journal(
        group: Arc<Group>,
        device: OwnDevice,
        secret: [u8; 32],
        application: &A,
    ) -> Result<Self, NodeError> {
        let own = Self::check(&group, &device)?;
        let device = group.open(device)?;
        let reference = application.start(own);
        let others = (0..group.nodes()).filter(|it| group.is_witness(own, *it));
        let audited = |it| (Audited::new(own, it), State::new(reference.start(it)));
        let audits = others.map(|it| (it, audited(it))).collect();
        Ok(Self {
            group,
            own,
            device,
            state: State::new(reference.clone()),
            reference,
            host: Host::default(),
            audits,
            brought: 0,
            held: 0,
            secret: Zeroizing::new(secret),
            unproven: BTreeSet::new(),
            outputs: Vec::new(),
            failure: None,
            #[cfg(feature = "sim")]
            lie: crate::sim::Lie::default(),
        })
    }

    /// The number of the node that a device is, in a group with which nodes can run.
    pub(crate) fn check(group: &Group, device: &OwnDevice) -> Result<u32, NodeError> {
        group.check()?;
        let start = device.start();
        let own = start.device.0;
        if own >= group.nodes() {
            return Err(GroupError::NoNode(own).into());
        }
        group.refuse_other_epoch(start)?;
        Ok(own)
    }

    /// The host's input for the application. False if it was not taken: it is too long, or the node
    /// has failed.
    pub fn local(&mut self, input: Vec<u8>) -> bool {
        self.record(Input::Local(input)).is_some()
    }

    /// Takes bytes of another node, which the transport has authenticated.
    pub fn receive(&mut self, from: u32, bytes: &[u8]) {
        if let Some(message) = Message::decode(bytes).filter(|_| from < self.group.nodes()) {
            self.take(from, message);
        }
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.host.ticks += 1;
        self.brought = 0;
        self.unproven.clear();
        let options = self.group.options;
        let due: Vec<_> =
            self.host.outboxes.iter_mut().map(|(to, it)| (*to, it.tick(&options))).collect();
        for (to, due) in due {
            for message in due.again {
                self.send(to, Message::Sent(Box::new(message)));
            }
            if let Some(message) = due.complaint {
                self.complain(&message);
            }
        }
        let audited = self.audits.keys().filter(|it| !self.host.exposed.contains_key(it));
        let audited: Vec<u32> = audited.copied().collect();
        for node in audited {
            let nonce = self.nonce();
            let group = self.group.clone();
            let audits = self.audits.get_mut(&node);
            let sent = audits.map(|(it, state)| it.tick(state, &group, nonce));
            sent.into_iter().flatten().for_each(|(to, message)| self.send(to, message));
        }
        if self.host.ticks.is_multiple_of(u64::from(options.audit.max(1))) {
            let exposed = Message::Exposed(self.host.exposed.keys().copied().collect());
            self.send_all(&exposed);
        }
    }

    /// All that is to be done, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The opinion of this node on another one. Only witnesses suspect.
    pub fn verdict(&self, node: u32) -> Verdict {
        if let Some(evidence) = self.evidence(node) {
            return Verdict::Exposed(Box::new(evidence.clone()));
        }
        let suspicions = self.suspicions(node);
        match suspicions.is_empty() {
            true => Verdict::Trusted,
            false => Verdict::Suspected(suspicions),
        }
    }

    /// The evidence against a node that is exposed.
    pub fn evidence(&self, node: u32) -> Option<&Evidence> {
        self.host.exposed.get(&node)
    }

    /// Why this node suspects another one, as its witness.
    pub fn suspicions(&self, node: u32) -> Vec<Suspicion> {
        let audited = self.audits.get(&node);
        audited.map_or_else(Vec::new, |it| it.0.suspicions(&self.group.options))
    }

    /// The index up to which this node has audited another one, if it is its witness.
    pub fn audited(&self, node: u32) -> Option<u64> {
        self.audits.get(&node).map(|it| it.0.index())
    }

    /// The index of this node's last entry.
    pub fn last(&self) -> u64 {
        self.host.log.last()
    }

    /// The most messages that a receiver which gives receipts has given none for. One that gives
    /// none for as long as its witnesses would suspect it does not count: it holds up nobody.
    pub fn backlog(&self) -> usize {
        let suspect = self.group.options.suspect;
        let present = self.host.outboxes.values().filter(|it| it.age() <= suspect);
        present.map(Outbox::count).max().unwrap_or(0)
    }

    /// How many messages this node has not taken, because a receiver of its own is slow.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The application's state.
    pub fn application(&self) -> &A {
        &self.state.application
    }

    /// Why the node logs nothing more, if that is so.
    pub fn failure(&self) -> Option<&NodeError> {
        self.failure.as_ref()
    }

    /// How many entries the device has signed again, since the journal did not have the signatures.
    pub fn reissued(&self) -> u64 {
        self.device.reissues()
    }

    /// The most audits of one witness that the log has.
    #[cfg(feature = "sim")]
    pub(crate) fn audits_recorded(&self) -> u64 {
        self.host.asked.values().map(|it| it.recorded).max().unwrap_or(0)
    }

    /// Takes a message that is decoded.
    pub(crate) fn take(&mut self, from: u32, message: Message) {
        match message {
            Message::Sent(message) => self.take_sent(*message, None),
            Message::Challenge(message) => self.take_sent(*message, Some(from)),
            Message::Receipt(receipt) => self.take_receipt(&receipt),
            Message::Audit { after, nonce } => self.answer(from, after, nonce),
            Message::Segment(segment) => self.take_segment(from, &segment),
            Message::Complaint(message) => self.take_complaint(from, &message),
            Message::Exposed(known) => self.inform(from, &known),
            Message::Evidence(evidence) => self.expose(*evidence),
        }
    }

    /// Takes a message of the application, and gives a receipt to its sender and to a witness.
    fn take_sent(&mut self, message: SentMessage, witness: Option<u32>) {
        let from = message.from();
        if message.to != self.own {
            return;
        }
        #[cfg(feature = "sim")]
        if witness == Some(self.own) && self.lie.hides() {
            return;
        }
        let last = self.state.received(from);
        if message.number == last + 1 {
            // They come again. A device that outlives the node issues its last signatures again,
            // and no older ones: one input makes no more entries than these.
            if witness == Some(self.own) {
                self.brought += 1;
                if self.brought > BROUGHT_MAX {
                    return;
                }
            }
            if self.holds_back(from, witness.is_some()) {
                self.held += 1;
                return;
            }
            let authenticator = message.authenticator.clone();
            let Some(own) = self.record(Input::Received(Box::new(message.clone()))) else {
                return;
            };
            self.host.receipts.insert(from, Receipt::new(own, &message));
            self.note(authenticator);
        } else if message.number > last {
            return;
        }
        if let Some(receipt) = self.host.receipts.get(&from).cloned() {
            let receipt = Message::Receipt(Box::new(receipt));
            let witness = witness.filter(|it| *it != from);
            witness.into_iter().for_each(|it| self.send(it, receipt.clone()));
            self.send(from, receipt);
        }
    }

    /// Whether a message is not taken now, because messages of this node wait for receipts: else a
    /// slow receiver would lose some, and this node be suspected for them. It comes again. Those
    /// that witnesses bring are taken slowly, and soon enough not to be suspected.
    fn holds_back(&mut self, from: u32, is_challenge: bool) -> bool {
        if self.backlog() < self.group.options.held_from() {
            return false;
        }
        let closest = u64::from(self.group.options.suspect / 2);
        let is_early =
            self.host.challenged.get(&from).is_some_and(|it| self.host.ticks < it + closest);
        if is_challenge && !is_early {
            self.host.challenged.insert(from, self.host.ticks);
        }
        !is_challenge || is_early
    }

    /// Takes a receipt: for a message of this node, or of one that it audits, which gets it too.
    fn take_receipt(&mut self, receipt: &Receipt) {
        let outbox = self.host.outboxes.get(&receipt.by());
        let is_own = receipt.from == self.own && outbox.is_some_and(|it| it.wants(receipt));
        let audited = self.audits.get(&receipt.from).is_some_and(|it| it.0.wants(receipt));
        let is_news = is_own || audited;
        let is_genuine = is_news && self.is_receipt(receipt);
        if !is_genuine {
            return;
        }
        self.note(receipt.authenticator.clone());
        if is_own && let Some(outbox) = self.host.outboxes.get_mut(&receipt.by()) {
            outbox.acknowledge(receipt.clone());
        }
        if let Some((audited, _)) = self.audits.get_mut(&receipt.from) {
            audited.acknowledge(receipt);
            self.send(receipt.from, Message::Receipt(Box::new(receipt.clone())));
        }
    }

    fn is_receipt(&self, receipt: &Receipt) -> bool {
        receipt.is_genuine(&self.group)
    }

    /// Tells the witnesses of both ends of a message that has no receipt. Its own ones get the
    /// receipt of the message before too: while receipts come, theirs would be older, and a message
    /// behind others without a receipt tells nothing.
    fn complain(&mut self, message: &SentMessage) {
        let receipt = self.host.outboxes.get(&message.to).and_then(Outbox::receipt).cloned();
        for (to, receipt) in self.group.witnesses(self.own).zip(receipt.iter().cycle()) {
            self.send(to, Message::Receipt(Box::new(receipt.clone())));
        }
        let own = self.group.witnesses(self.own);
        let other = self.group.witnesses(message.to).filter(|it| *it != message.to);
        let mut to: Vec<u32> = own.chain(other).collect();
        to.sort_unstable();
        to.dedup();
        for to in to {
            self.send(to, Message::Complaint(Box::new(message.clone())));
        }
    }

    fn nonce(&mut self) -> [u8; 16] {
        self.host.nonces += 1;
        let hash = digest("nonce", &[&*self.secret, &self.host.nonces.to_be_bytes()]);
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&hash[..16]);
        nonce
    }

    fn send(&mut self, to: u32, message: Message) {
        if to == self.own {
            self.take(to, message);
        } else {
            self.outputs.push(Output::Node(to, message.encode()));
        }
    }

    fn send_all(&mut self, message: &Message) {
        self.outputs.push(Output::Nodes(message.encode()));
    }
}
