// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A multicast tree for streaming (paper §7, appendix C.5): the source's content goes from node to
//! node, each of which forwards it to its children.

use serde::{Deserialize, Serialize};

use crate::application::{Application, Effect};
use crate::message::{decode, encode};

/// A part of the stream.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Content {
    /// Its place in the stream, from 1.
    pub number: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A part of the stream as a node delivers it to its host.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Delivery {
    /// How many bytes of the stream were delivered before it.
    pub offset: u64,
    /// The part.
    pub content: Content,
}

impl Delivery {
    /// Reads the bytes of [`Output::Host`](crate::Output::Host).
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }
}

/// A node of the tree. Node 0 is the source, whose local inputs are the stream.
///
/// The children of node k are the nodes k·d + 1 to k·d + d, where d is the degree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tree {
    own: u32,
    nodes: u32,
    degree: u32,
    /// The number of the last content.
    last: u64,
    /// The bytes of all contents.
    length: u64,
}

impl Tree {
    /// The source of a tree.
    #[must_use]
    pub fn new(nodes: u32, degree: u32) -> Self {
        Self { own: 0, nodes, degree: degree.max(1), last: 0, length: 0 }
    }

    /// How many parts of the stream have come.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last
    }

    /// How many bytes of the stream have come.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The node from which a node has the stream; nothing for the source.
    #[must_use]
    pub fn parent(&self, node: u32) -> Option<u32> {
        (node > 0).then(|| (node - 1) / self.degree)
    }

    /// The nodes to which a node forwards.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + use<> {
        let first = node.saturating_mul(self.degree).saturating_add(1);
        let nodes = self.nodes;
        (first..first.saturating_add(self.degree)).take_while(move |it| *it < nodes)
    }

    /// Delivers a content, and forwards it.
    fn forward(&mut self, content: Content) -> Vec<Effect> {
        let (offset, body) = (self.length, encode(&content));
        self.last = content.number;
        self.length = offset.saturating_add(content.bytes.len() as u64);
        let children = self.children(self.own);
        let sends = children.map(|to| Effect::Send { to, body: body.clone() });
        sends.chain([Effect::Deliver(encode(&Delivery { offset, content }))]).collect()
    }
}

impl Application for Tree {
    fn start(&self, node: u32) -> Self {
        Self { own: node, last: 0, length: 0, ..*self }
    }

    fn message(&mut self, from: u32, body: &[u8]) -> Vec<Effect> {
        let content = decode::<Content>(body);
        let is_next = |it: &Content| Some(it.number) == self.last.checked_add(1);
        match content.filter(is_next) {
            Some(content) if self.parent(self.own) == Some(from) => self.forward(content),
            _ => Vec::new(),
        }
    }

    fn local(&mut self, input: &[u8]) -> Vec<Effect> {
        let number = self.last.saturating_add(1);
        let is_source = self.own == 0;
        let content = is_source.then(|| Content { number, bytes: input.to_vec() });
        content.map_or_else(Vec::new, |it| self.forward(it))
    }

    fn snapshot(&self) -> Vec<u8> {
        encode(&(self.nodes, self.degree, self.last, self.length))
    }

    fn restore(&self, snapshot: &[u8]) -> Option<Self> {
        let (nodes, degree, last, length) = decode(snapshot)?;
        let is_same = (nodes, degree) == (self.nodes, self.degree);
        is_same.then_some(Self { last, length, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_forwards_from_parents_alone_and_each_content_once() {
        let source = Tree::new(6, 2);
        let mut parents: Vec<_> = (0..6).map(|it| source.parent(it)).collect();
        assert_eq!(parents.remove(0), None);
        assert_eq!(parents, [0, 0, 1, 1, 2].map(Some));
        assert_eq!(source.children(2).collect::<Vec<_>>(), [5]);
        let mut one = source.start(1);
        let part = |number, byte| Content { number, bytes: vec![byte] };
        let body = encode(&part(1, 7));
        assert_eq!(one.local(b"own"), []);
        assert_eq!(one.message(2, &body), []);
        let effects = one.message(0, &body);
        let deliver = |offset, content| Effect::Deliver(encode(&Delivery { offset, content }));
        let send = |to| Effect::Send { to, body: body.clone() };
        assert_eq!(effects, [send(3), send(4), deliver(0, part(1, 7))]);
        assert_eq!(one.message(0, &body), []);
        let effects = one.message(0, &encode(&part(2, 8)));
        assert_eq!(effects.last(), Some(&deliver(1, part(2, 8))));
        assert_eq!((one.count(), one.length()), (2, 2));
        assert_eq!(one.restore(&one.snapshot()), Some(one));
    }
}
