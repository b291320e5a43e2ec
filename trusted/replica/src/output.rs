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
