// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream through a tree of four nodes in memory, one of which changes what it forwards.
//!
//!     cargo run -p smt-peer-review --example tree
use std::error::Error;
use std::sync::Arc;

use smt_attestation::{GroupSecret, SigningKey};
use smt_peer_review::{Application, Effect, Evidence, Group, Node, Options, Output, Tree, Verdict};

const NODES: u32 = 4;

/// A tree's node that is not the one that all have agreed upon.
#[derive(Clone)]
struct Dishonest(Tree);

impl Application for Dishonest {
    fn start(&self, node: u32) -> Self {
        Self(self.0.start(node))
    }

    fn message(&mut self, from: u32, body: &[u8]) -> Vec<Effect> {
        let mut effects = self.0.message(from, body);
        for effect in &mut effects {
            if let Effect::Send { body, .. } = effect {
                body.push(b'!');
            }
        }
        effects
    }

    fn local(&mut self, input: &[u8]) -> Vec<Effect> {
        self.0.local(input)
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.snapshot()
    }

    fn restore(&self, snapshot: &[u8]) -> Option<Self> {
        self.0.restore(snapshot).map(Self)
    }
}

/// Messages on their way: receiver, sender, bytes.
type Sent = Vec<(u32, u32, Vec<u8>)>;

fn take(from: u32, outputs: Vec<Output>, sent: &mut Sent) {
    for output in outputs {
        if let Output::Host(part) = &output {
            println!("node {from} has a part of {} bytes", part.len());
        }
        sent.extend(output.to_nodes(from, NODES).map(|(to, bytes)| (to, from, bytes.to_vec())));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Each device draws its key itself; the group has the public halves.
    let key = |node: u32| SigningKey::new(&[node as u8 + 1; 32]);
    let keys = (0..NODES).map(|it| key(it).public_key()).collect();
    let epochs = vec![1; NODES as usize];
    let group = Arc::new(Group { stream: 1, keys, epochs, faults: 1, options: Options::default() });
    let tree = Tree::new(NODES, 2);
    let device = |node: u32| group.library(node, key(node), GroupSecret::new([7; 32]));
    let mut liar = Node::new(group.clone(), device(1), [1; 32], &Dishonest(tree.clone()))?;
    let mut correct = Vec::new();
    for node in [0, 2, 3] {
        let secret = [node as u8; 32];
        correct.push((node, Node::new(group.clone(), device(node), secret, &tree)?));
    }
    correct[0].1.local(b"a part of the stream".to_vec());
    let mut sent = Sent::new();
    for _ in 0..20 {
        liar.tick();
        take(1, liar.outputs(), &mut sent);
        for (number, node) in &mut correct {
            node.tick();
            take(*number, node.outputs(), &mut sent);
        }
        while let Some((to, from, bytes)) = sent.pop() {
            if let Some((_, node)) = correct.iter_mut().find(|it| it.0 == to) {
                node.receive(from, &bytes);
                take(to, node.outputs(), &mut sent);
            } else {
                liar.receive(from, &bytes);
                take(to, liar.outputs(), &mut sent);
            }
        }
    }
    for (number, node) in &correct {
        let Verdict::Exposed(evidence) = node.verdict(1) else {
            return Err(format!("node {number} has not exposed node 1").into());
        };
        // A third party gets these bytes, and needs the public group and the application.
        let bytes = evidence.encode();
        let read = Evidence::decode(&bytes).ok_or("the evidence cannot be read")?;
        let proof = read.verify(&group, &tree)?;
        println!("node {number} has evidence of {} bytes against node 1: {proof:?}", bytes.len());
    }
    Ok(())
}
