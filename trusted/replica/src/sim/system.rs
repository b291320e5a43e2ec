// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a simulation that a system brings.

use smt_journal::ModelDisk;

use crate::digest::Digest;
use crate::logged::{Logged, LoggedError};
use crate::node::Node;
use crate::request::Request;
use crate::sim::client::SystemClient;
use crate::sim::host::Host;
use crate::sim::keys::client_key;
use crate::sim::liar::Liar;
use crate::sim::world::World;

/// The receiver of a message on its way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum To {
    /// A node.
    Node(u32),
    /// All processes of a client.
    Client(u32),
    /// A service outside of the group, which is asked for what comes after this number.
    Service(u64),
}

/// The same bytes to all nodes but one.
#[must_use]
pub fn to_others(nodes: u32, own: Option<u32>, bytes: &[u8]) -> Vec<(To, Vec<u8>)> {
    let others = (0..nodes).filter(|it| Some(*it) != own);
    others.map(|it| (To::Node(it), bytes.to_vec())).collect()
}

/// A system in a simulation: what it knows of a run beside what all systems know.
pub trait System: Sized {
    /// A correct node.
    type Node: Node;
    /// A correct client.
    type Client: SystemClient<Output = <Self::Node as Node>::Output>;
    /// The host of a liar.
    type Liar: Liar;
    /// An event of this system alone.
    type Happening;

    /// Whether clients have sessions, and several requests in progress in each.
    const HAS_SESSIONS: bool = true;
    /// Whether a log may have a request twice, which is executed once. In other systems all that is
    /// in a log is executed.
    const EXECUTES_ONCE: bool = true;

    /// A client whose earlier requests had numbers up to `last`.
    fn client(&self, number: u32, last: u64) -> Self::Client;
    /// A request as the history has it: of this client, with this number, nonce and operation.
    fn digest(client: u32, number: u64, body: ([u8; 16], Vec<u8>)) -> Digest {
        Request::sign(&client_key(client), client, number, body).digest()
    }
    /// The message that a request is.
    fn request(request: Request) -> Vec<u8>;
    /// The messages that an output is; `own` is the node that wants them sent.
    fn messages(
        output: <Self::Node as Node>::Output,
        own: Option<u32>,
        nodes: u32,
    ) -> Vec<(To, Vec<u8>)>;

    /// A node as the run begins.
    fn host(world: &mut World<Self>, node: u32) -> Host<Self>;
    /// A node that has lost all, as it restarts.
    fn restart(world: &mut World<Self>, node: u32) -> Host<Self> {
        Self::host(world, node)
    }
    /// A node with a log: new, or as it was when its disk crashed.
    ///
    /// # Errors
    /// The log is refused.
    fn open(world: &mut World<Self>, node: u32, disk: ModelDisk) -> Opened<Self::Node>;
    /// A node without a log takes a message.
    fn receive(node: &mut Self::Node, bytes: &[u8]);
    /// The number of the last place that a node has executed.
    fn executed(node: &Self::Node) -> u64;
    /// Whether others can count on a node.
    fn counts(_node: &Self::Node) -> bool {
        true
    }

    /// Plans what happens in this system alone, as the run begins.
    fn plan(_world: &mut World<Self>) {}
    /// Something happens.
    fn happen(world: &mut World<Self>, happening: Self::Happening);
    /// Looks at what a correct node has done since it was looked at.
    fn look(world: &mut World<Self>, node: usize);
    /// Time has passed at all nodes.
    fn tick(_world: &mut World<Self>) {}
    /// Whether liars cut two nodes off from each other.
    fn cuts(_world: &mut World<Self>, _pair: (u32, u32)) -> bool {
        false
    }
    /// A liar of several that work together takes a message.
    fn tell_together(_world: &mut World<Self>, _node: u32, _from: Option<u32>, _bytes: &[u8]) {}
    /// A service outside of the group is asked for what comes after a number.
    fn ask_service(_world: &mut World<Self>, _from: u32, _number: u64) {}
    /// Liars fall silent, before the last part of the run.
    fn fall_silent(_world: &mut World<Self>) {}
    /// The run has ended: notes what it had, and what violates a property of this system alone.
    fn finish(_world: &mut World<Self>) {}
}

/// A node with a log on a disk of a model, if the log was accepted.
pub type Opened<N> = Result<Logged<N, ModelDisk>, LoggedError<<N as Node>::Error>>;
