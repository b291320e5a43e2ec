// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Things that nodes and clients want done.

use std::convert::Infallible;

/// Something that a node or a client wants done. Nothing need arrive: all is asked for again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output<H = Infallible> {
    /// Bytes for one node.
    Node(u32, Vec<u8>),
    /// Bytes for all other nodes.
    Nodes(Vec<u8>),
    /// Bytes for a client.
    Client(u32, Vec<u8>),
    /// Something that the host does itself, if the system has such things.
    Host(H),
}

impl<H> Output<H> {
    /// The bytes for each node, with its number, of an output of node `own` in a group of `nodes`.
    pub fn to_nodes(&self, own: u32, nodes: u32) -> impl Iterator<Item = (u32, &[u8])> {
        let (one, bytes) = match self {
            Self::Node(to, bytes) => (Some(*to), Some(bytes)),
            Self::Nodes(bytes) => (None, Some(bytes)),
            Self::Client(..) | Self::Host(_) => (None, None),
        };
        let others = (0..nodes).filter(move |it| *it != own && one.is_none());
        let receivers = one.into_iter().chain(others);
        bytes.into_iter().flat_map(move |it| receivers.clone().map(move |to| (to, &it[..])))
    }
}
