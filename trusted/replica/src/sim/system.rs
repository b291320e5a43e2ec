// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a simulation that a system brings.

use std::fmt::Debug;

use smt_attestor::Attested;
use smt_journal::ModelDisk;
use smt_simulation::Random;

use crate::digest::Digest;
use crate::logged::{Logged, LoggedError};
use crate::node::Node;
use crate::output::Output;
use crate::request::Request;
use crate::sim::client::SystemClient;
use crate::sim::coalition::{Coalition, Correct};
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

/// The messages that an output is, in a group of `nodes`; `own` is the node that wants them sent.
pub(super) fn messages<S: System>(
    output: Output<S::Asks>,
    own: Option<u32>,
    nodes: u32,
) -> Vec<(To, Vec<u8>)> {
    match output {
        Output::Node(to, bytes) => vec![(To::Node(to), bytes)],
        Output::Client(to, bytes) => vec![(To::Client(to), bytes)],
        Output::Host(asks) => vec![(To::Service(S::asked(asks)), Vec::new())],
        Output::Nodes(bytes) => {
            let others = (0..nodes).filter(|it| Some(*it) != own);
            others.map(|it| (To::Node(it), bytes.clone())).collect()
        }
    }
}

/// A system in a simulation: what it knows of a run beside what all systems know.
pub trait System: Sized {
    /// A correct node.
    type Node: Node<Output = Output<Self::Asks>>;
    /// A correct client.
    type Client: SystemClient<Output = Output<Self::Asks>>;
    /// A question of a node to a service outside of the group.
    type Asks;
    /// The host of a liar.
    type Liar: Liar;
    /// An event of this system alone.
    type Happening;

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
    /// The number that a service outside of the group is asked about.
    fn asked(asks: Self::Asks) -> u64;

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
    /// Something of this system alone happens.
    fn happen(_world: &mut World<Self>, _happening: Self::Happening) {}
    /// Looks at what a correct node has done since it was looked at.
    fn look(world: &mut World<Self>, node: usize);
    /// A service outside of the group is asked for what comes after a number.
    fn ask_service(_world: &mut World<Self>, _from: u32, _number: u64) {}
    /// A step of liars that work together, of this system alone.
    type Step: Clone;
    /// The name of such a step, or of what liars do in it.
    type Name: Copy + Debug + Ord;
    /// Notes on the statements of a liar of several, for choices that depend on it.
    type Notes: Default;
    /// All else that such liars remember.
    type Memory: Default;

    /// The own statements of a node after a counter, in order.
    fn said(node: &Self::Node, after: u64) -> Vec<Attested>;
    /// The message that a statement is.
    fn statement(said: Attested) -> Vec<u8>;
    /// Has a statement attested by a node's device, and keeps it in its own stream. Nothing leaves.
    fn attest(node: &mut Self::Node, body: &[u8]) -> Option<Attested>;
    /// Notes what a liar has said in a statement.
    fn note(_notes: &mut Self::Notes, _body: &[u8]) {}
    /// Numbers of a node that change when it does something because of a message.
    fn numbers(node: &Self::Node) -> Vec<u64>;
    /// The view below which a node says nothing more.
    fn wanted(node: &Self::Node) -> u64;
    /// Whether a node knows how a view begins.
    fn knows(node: &Self::Node, view: u64) -> bool;
    /// Number, digest and answer of the request of a client that a node has executed last.
    fn last_answer(node: &Self::Node, client: u32) -> Option<(u64, Digest, Vec<u8>)>;
    /// Number and digest of a request of a client that waits at a node.
    fn waiting(node: &Self::Node, client: u32) -> Option<(u64, Digest)>;
    /// An answer to a client, signed by the host of a node.
    fn reply(node: &Self::Node, client: u32, answer: &(u64, Digest, Vec<u8>)) -> Vec<u8>;
    /// An operation of the client that lies.
    fn operation_of_liar(random: &mut Random) -> Vec<u8> {
        random.below(100).to_be_bytes().to_vec()
    }
    /// Liars remember what correct nodes know now.
    fn remember(_liars: &mut Coalition<Self>, _correct: &Correct<'_, Self>) {}
    /// Liars take a step.
    fn take(liars: &mut Coalition<Self>, step: Self::Step, correct: &Correct<'_, Self>);

    /// The run has ended: notes what it had, and what violates a property of this system alone.
    fn finish(_world: &mut World<Self>) {}
}

/// A node with a log on a disk of a model, if the log was accepted.
pub type Opened<N> = Result<Logged<N, ModelDisk>, LoggedError<<N as Node>::Error>>;
