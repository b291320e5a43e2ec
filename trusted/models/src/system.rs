// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts in which the systems differ.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use stateright::Property;

use crate::cluster::{Cluster, Key, NODES, State};
use crate::{LiarDevice, MessageId};

/// A system of nodes that take the attested streams of each other.
pub trait System: Send + Sync + Sized + 'static {
    /// The shipped state machine.
    type Node;
    /// An input that is no message: time, for example.
    type Event: Copy + Debug + Eq + Hash + Send + Sync + 'static;
    /// A statement of a liar.
    type Lie: Clone + Debug + Eq + Hash + Send + Sync + 'static;
    /// The parts that properties look at.
    type Observed: Send + Sync;

    /// How many nodes there are.
    fn nodes(&self) -> u32 {
        NODES
    }
    /// The state from which on all is explored, by way of a script.
    fn begin(&self, _: &Cluster<Self>, first: State) -> State {
        first
    }
    /// A correct node before its first input. Nothing if its device
    /// refuses the group.
    fn node(&self, own: u32) -> Option<Self::Node>;
    /// The device of a liar.
    fn device(&self, liar: u32) -> LiarDevice;
    /// Delivers a message.
    fn receive(&self, node: &mut Self::Node, bytes: &[u8]);
    /// An event happens.
    fn happen(&self, node: &mut Self::Node, event: Self::Event);
    /// All that the node has said since the last call, or since its start.
    fn said(&self, node: &mut Self::Node) -> Vec<Said>;
    /// Whether a stream comes to a node as far as it was said, and no less of it.
    fn has_whole_rows(&self) -> bool {
        false
    }
    /// The epoch of a node's device, whose statements are those that it has said last.
    fn epoch(&self, _: &Self::Node) -> u64 {
        1
    }
    /// The message beside statements that it gives now to anybody who asks, and its kind.
    fn gives(&self, _: &Self::Node) -> Option<((u64, u64), Vec<u8>)> {
        None
    }
    /// The number of kinds before the last of which such a message is remembered: it may come late.
    fn remembered(&self) -> usize {
        0
    }
    /// Looks at a node.
    fn observe(&self, node: &mut Self::Node) -> (View, Self::Observed);

    /// The messages that clients send to all nodes.
    fn requests(&self) -> Vec<Vec<u8>>;
    /// Whether a request may come to a correct node, for one that makes something new of each
    /// repetition. By default it may come again and again, since that changes nothing.
    fn may_come(&self, _: &Cluster<Self>, _: &State, _to: (u32, usize)) -> bool {
        true
    }
    /// The events that can happen to a correct node now.
    fn events(&self, cluster: &Cluster<Self>, state: &State, own: u32) -> Vec<Self::Event>;
    /// The most statements of liars.
    fn lies_max(&self) -> usize;
    /// How many epochs a liar's device has.
    fn epochs(&self) -> u64 {
        1
    }
    /// All that a liar may attest next in a stream of its device.
    fn alphabet(&self, cluster: &Cluster<Self>, state: &State, key: Key) -> Vec<Self::Lie>;
    /// All messages beside statements that liars may make up.
    fn shown(&self, _: &Cluster<Self>, _: &State) -> Vec<Self::Lie> {
        Vec::new()
    }
    /// Makes such a message up, for which liars attest what it needs. Nothing if it cannot be told
    /// now.
    fn show(&self, _: &Cluster<Self>, _: &mut State, _: &Self::Lie) -> Option<Vec<u8>> {
        None
    }
    /// The bytes that a lie comes to. Nothing if it cannot be told now.
    fn body(
        &self,
        cluster: &Cluster<Self>,
        state: &State,
        lie: (Key, &Self::Lie),
    ) -> Option<Vec<u8>>;
    /// The message that carries an attested statement.
    fn message(&self, attestation: [[u8; 32]; 2], body: Vec<u8>) -> Vec<u8>;
    /// Statements in the name of correct nodes, which their devices have not attested.
    fn forgeries(&self, cluster: &Cluster<Self>, state: &State) -> Vec<(Key, Self::Lie)>;
    /// The properties, and their twins.
    fn properties(&self, liars: &[u32]) -> Vec<Property<Cluster<Self>>>;
}

/// Something that a node has said.
pub enum Said {
    /// A statement of its device.
    Statement(Vec<u8>),
    /// Something else of which the model takes note, as a reply.
    Other(Vec<u8>),
}

/// A node, as far as the network must know it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The hash of all of its state. Two nodes with the same do the same on the same inputs.
    pub fingerprint: [u8; 32],
    /// How far it has come with each stream, by device and epoch.
    pub streams: BTreeMap<Key, Progress>,
}

/// How far a node has come with a stream.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The counter up to which statements are here, taken or not.
    pub held: u64,
    /// It follows the sender no further.
    pub is_faulty: bool,
}

/// A state of a node.
pub struct Seen<O> {
    /// As far as the network must know it.
    pub view: View,
    /// The parts that properties look at.
    pub observed: Option<Arc<O>>,
    /// The epoch of its device.
    pub epoch: u64,
    /// The statements of its device in each epoch, in order.
    pub said: BTreeMap<u64, Vec<MessageId>>,
    /// The messages that it has given or gives to anybody who asks, the last one now.
    pub given: Vec<MessageId>,
    /// All else that it has said, each once.
    pub others: Vec<MessageId>,
}
