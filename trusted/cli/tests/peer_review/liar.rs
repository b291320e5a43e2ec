// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node that changes what it forwards, in this process, among correct ones.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use smt_attestation::{GroupSecret, SigningKey};
use smt_mesh::{Arrival, Certificates, Member, Mesh, Place, messages};
use smt_peer_review::{Application, Effect, Evidence, Group, Node, Options, Output};

use crate::processes::{NODES, Tree, command, said};

/// Forwards other bytes than it gets.
#[derive(Clone)]
struct Dishonest(smt_peer_review::Tree);

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

fn hex(text: &str) -> [u8; 32] {
    let bytes = data_encoding::HEXLOWER.decode(text.trim().as_bytes()).unwrap();
    bytes.try_into().unwrap()
}

/// The group as its file has it, with the options of `init`.
fn group(tree: &Tree) -> Arc<Group> {
    let text = fs::read_to_string(tree.path("group.toml")).unwrap();
    let file: toml::Value = toml::from_str(&text).unwrap();
    let nodes = file["nodes"].as_array().unwrap();
    let keys = nodes.iter().map(|it| hex(it["key"].as_str().unwrap())).collect();
    let options = Options { state: 4096, sends: 9, ..Options::default() };
    Arc::new(Group { stream: 1, keys, epochs: vec![1; NODES], faults: 1, options })
}

/// Node 1 until `end` is set.
fn lie(tree: &Tree, end: &AtomicBool) {
    let file = |name: &str| tree.path(name).into();
    let mut mesh = Mesh::open(&Place {
        own: Member::Replica(1),
        certificates: Certificates {
            authority: file("authority.pem"),
            certificate: file("node-1.pem"),
            key: file("node-1.key"),
        },
        addresses: tree.addresses.clone(),
        clients: BTreeSet::new(),
        boot: None,
        packet_max: None,
        client_bytes: 1 << 20,
    })
    .unwrap();
    let (group, key) = (group(tree), fs::read_to_string(tree.path("node-1.signing")).unwrap());
    let (key, secret) = (SigningKey::new(&hex(&key)), GroupSecret::new([7; 32]));
    let device = group.library(1, key, secret);
    let dishonest = Dishonest(smt_peer_review::Tree::new(NODES as u32, 2));
    let mut node = Node::new(group, device, [9; 32], &dishonest).unwrap();
    let mut next_tick = Instant::now();
    while !end.load(Ordering::Relaxed) {
        match mesh.next(Duration::from_millis(5)) {
            Arrival::Packet(Member::Replica(from), packet) => {
                messages(&packet).for_each(|it| node.receive(from, it));
            }
            Arrival::Packet(..) | Arrival::Nothing => {}
            Arrival::End => return,
        }
        if Instant::now() >= next_tick {
            node.tick();
            next_tick = Instant::now() + Duration::from_millis(20);
        }
        for output in node.outputs() {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(..) | Output::Host(_) => {}
            }
        }
    }
}

#[test]
fn a_node_that_changes_the_stream_is_exposed_and_the_evidence_convinces_a_third_party() {
    let mut tree = Tree::of_files(5_000);
    [0, 2, 3].into_iter().for_each(|it| tree.start(it));
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| lie(&tree, &end));
        for number in [0, 2, 3] {
            tree.wait_for_words(number, &["exposed", "node=1"]);
        }
        end.store(true, Ordering::Relaxed);
    });
    // Node 3 is below the liar, and node 2 is not.
    tree.wait_for_stream(&[0, 2]);
    let path = tree.path("node-3.state/evidence-1");
    let group = tree.path("group.toml");
    let verify = |path: &str| command(&["peer-review", "verify", "--group", &group, path]);
    let told = said(&verify(&path).output().unwrap());
    assert!(told.starts_with("node 1 is proved faulty by entry"), "{told}");
    assert!(told.ends_with("it did not send what the application sends"), "{told}");
    let bytes = fs::read(&path).unwrap();
    assert_eq!(Evidence::decode(&bytes).unwrap().accused(), 1);
    let other = tree.path("other");
    let mut refused = 0;
    for place in (0..bytes.len()).step_by(bytes.len() / 32 + 1) {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        fs::write(&other, changed).unwrap();
        let output = verify(&other).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        // The signature of an entry before the last one is not needed, and may be any.
        let proves = output.status.success() && text.starts_with("node 1 is proved faulty");
        let is_refused = text.contains("proves nothing") || text.contains("is no evidence");
        assert!(proves || is_refused, "{place}: {text}");
        refused += u32::from(is_refused);
    }
    assert!(refused > 8, "{refused}");
    fs::write(&other, &bytes[..bytes.len() - 1]).unwrap();
    assert!(Tree::fails(verify(&other)).contains("is no evidence, or was cut off"));
    assert!(Tree::fails(verify("/nonexistent")).contains("your files: /nonexistent"));
    // A node that starts again knows it still.
    tree.kill(2);
    fs::remove_file(tree.path("node-2.state/evidence-1")).unwrap();
    tree.start(2);
    let metrics = tree.end(2);
    assert_eq!(metrics["exposed"], serde_json::json!([1]));
    let again = tree.path("node-2.state/evidence-1");
    assert!(said(&verify(&again).output().unwrap()).starts_with("node 1 is proved faulty"));
}
