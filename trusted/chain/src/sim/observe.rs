// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For models of small sizes: all of a node's state as a digest, and the parts that
//! properties are about.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use smt_attestation::GroupSecret;
use smt_attestor::{Attested, AttestorError};
use smt_replica::sim::{client_key, node_key};
use smt_replica::{Counter, Digest, Group, Request, SigningKey};

use crate::client::Client;
use crate::log::Log;
use crate::node::Node;
use crate::sim::group::identity;

/// The parts of a node that a model looks at.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The hash of all of its state. Two nodes with the same do the same on the same inputs.
    pub fingerprint: Digest,
    /// How far it has come with the stream of each node.
    pub streams: Vec<Progress>,
    /// The requests that it has answered, by place, with their answers.
    pub committed: Vec<(Request, Vec<u8>)>,
    /// The configuration in whose log it has found its last request committed.
    pub committed_in: u64,
    /// The beginning of the log of each configuration that it knows to be opened.
    pub beginnings: BTreeMap<u64, Vec<(Request, Vec<u8>)>>,
    /// The configuration below which it says nothing more.
    pub promised: u64,
    /// The configuration that it has entered.
    pub entered: u64,
}

/// How far a node has come with a stream.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The counter up to which it has taken statements.
    pub taken: u64,
    /// The counter up to which statements are here. Some may wait for what they refer to.
    pub held: u64,
    /// The configuration that the sender has entered.
    pub entered: u64,
    /// It follows the sender no further.
    pub is_faulty: bool,
}

/// The group of a model: all that waits is late in the first tick, and no entry is left out.
#[must_use]
pub fn group(nodes: u32) -> Group {
    let mut group = crate::sim::group::group(nodes);
    group.options.timeout = 0;
    group.options.interval = 64;
    group
}

/// The secret of that group, which all its devices have.
#[must_use]
pub fn secret() -> GroupSecret {
    smt_replica::sim::secret()
}

/// The key with which a node's host signs replies, a liar's too.
#[must_use]
pub fn host_key(node: u32) -> SigningKey {
    node_key(node)
}

/// A correct node.
///
/// # Errors
/// Those of [`Node::new`].
pub fn node(group: &Arc<Group>, own: u32) -> Result<Node<Counter>, AttestorError> {
    Node::new(group.clone(), identity(own), Counter::default())
}

/// A client that has made no request yet.
#[must_use]
pub fn client(group: &Arc<Group>, number: u32) -> Client {
    Client::new(group.clone(), number, client_key(number), 0)
}

/// The hash of an answer, as proofs state it.
#[must_use]
pub fn output(answer: &[u8]) -> Digest {
    crate::log::output(answer)
}

/// The statements of a node's own device, of which the last node of a chain sends some to those who
/// ask alone.
#[must_use]
pub fn said(node: &Node<Counter>) -> Vec<Attested> {
    node.streams[node.own as usize].after(0, usize::MAX).cloned().collect()
}

/// Looks at a node.
#[must_use]
pub fn observe(node: &Node<Counter>) -> Observed {
    let track = node.own_track();
    let progress = |stream: &crate::track::Stream| {
        let taken = stream.track.counter;
        let held = taken + stream.waits_in_a_row();
        let entered = stream.track.at.0;
        Progress { taken, held, entered, is_faulty: stream.track.is_faulty }
    };
    let committed = node.logs.get(&node.committed.0);
    Observed {
        fingerprint: fingerprint(node),
        streams: node.streams.iter().map(progress).collect(),
        committed: committed.map(|it| entries(it, node.replied)).unwrap_or_default(),
        committed_in: node.committed.0,
        beginnings: node.logs.iter().map(|it| (*it.0, entries(it.1, it.1.start))).collect(),
        promised: track.promised,
        entered: track.at.0,
    }
}

/// The entries of a log up to a place.
fn entries(log: &Log<Counter>, end: u64) -> Vec<(Request, Vec<u8>)> {
    let entries = (1..=end).filter_map(|place| log.entry(place));
    entries.map(|it| (it.request.clone(), it.answer.clone())).collect()
}

fn fingerprint(it: &Node<Counter>) -> Digest {
    let mut all = Written(Sha256::new());
    let own = (it.own, it.committed, it.replied, it.waited);
    // Writing to a hash does not fail. Numbers for logs are left out, and so is how old an
    // accusation is: no statement depends on them.
    let _ = write!(all, "{own:?}{:?}{:?}{:?}", it.streams, it.logs, it.pending.state());
    let _ = write!(all, "{:?}{:?}", it.configurations, it.made);
    all.0.finalize().into()
}

struct Written(Sha256);

impl Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
