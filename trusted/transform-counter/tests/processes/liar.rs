// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A leader that gives wrong answers, in this process, among nodes that run the protocol.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ed25519_dalek::SigningKey;
use smt_attestation::GroupSecret;
use smt_mesh::{Arrival, Certificates, Member, Mesh, Place, messages};
use smt_transform::counter::Counter;
use smt_transform::{Caller, Effect, Group, Identity, Node, Options, Output, Protocol};

use crate::cluster::Cluster;

/// The counter, but for its answers.
struct Wrong(Counter);

impl Wrong {
    fn alter(mut effects: Vec<Effect>) -> Vec<Effect> {
        for effect in &mut effects {
            if let Effect::Reply { answer, .. } = effect {
                *answer = 999_u64.to_be_bytes().to_vec();
            }
        }
        effects
    }
}

impl Protocol for Wrong {
    fn message(&mut self, from: u32, message: &[u8]) -> Vec<Effect> {
        Self::alter(self.0.message(from, message))
    }

    fn timeout(&mut self, timer: u32) -> Vec<Effect> {
        self.0.timeout(timer)
    }

    fn request(&mut self, caller: Caller, number: u64, operation: &[u8]) -> Vec<Effect> {
        Self::alter(self.0.request(caller, number, operation))
    }
}

fn hex(text: &str) -> [u8; 32] {
    let bytes = data_encoding::HEXLOWER.decode(text.trim().as_bytes()).unwrap();
    bytes.try_into().unwrap()
}

/// The group as its file has it.
fn group(cluster: &Cluster) -> Arc<Group> {
    let text = fs::read_to_string(cluster.path("group.toml")).unwrap();
    let file: toml::Value = toml::from_str(&text).unwrap();
    let keys = |name: &str| -> Vec<[u8; 32]> {
        let entries = file[name].as_array().unwrap().iter();
        entries.map(|it| hex(it["key"].as_str().unwrap())).collect()
    };
    let clients = (1..).zip(keys("clients")).collect();
    let options = Options::default();
    Arc::new(Group { stream: 1, nodes: keys("nodes"), clients, options })
}

/// Node 0 until `end` is set.
fn lie(cluster: &Cluster, end: &AtomicBool) {
    let file = |name: &str| cluster.path(name).into();
    let secret = |name: &str| hex(&fs::read_to_string(cluster.path(name)).unwrap());
    let mut mesh = Mesh::open(&Place {
        own: Member::Replica(0),
        certificates: Certificates {
            authority: file("authority.pem"),
            certificate: file("node-0.pem"),
            key: file("node-0.key"),
        },
        addresses: cluster.addresses.clone(),
        clients: [1, 2].into(),
        boot: None,
        packet_max: None,
        client_bytes: 1 << 20,
    })
    .unwrap();
    let key = SigningKey::from_bytes(&secret("node-0.signing"));
    let identity = Identity { secret: GroupSecret::new(secret("group.secret")), device: 0, key };
    let mut node = Node::new(group(cluster), identity, |own| Wrong(Counter::new(own, 3))).unwrap();
    let mut next_tick = Instant::now();
    while !end.load(Ordering::Relaxed) {
        match mesh.next(Duration::from_millis(5)) {
            Arrival::Packet(_, packet) => {
                messages(&packet).for_each(|it| node.receive(it).unwrap());
            }
            Arrival::Nothing => {}
            Arrival::End => return,
        }
        if Instant::now() >= next_tick {
            node.tick().unwrap();
            next_tick = Instant::now() + Duration::from_millis(20);
        }
        for output in node.outputs() {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(to, bytes) => mesh.to_client(to, bytes),
            }
        }
    }
}

#[test]
fn a_leader_that_gives_wrong_answers_is_found_and_the_counter_goes_on_without_it() {
    let mut cluster = Cluster::of_files();
    [1, 2].into_iter().for_each(|it| cluster.start(it));
    let end = AtomicBool::new(false);
    let sums = std::thread::scope(|scope| {
        scope.spawn(|| lie(&cluster, &end));
        let sums = std::panic::catch_unwind(|| [cluster.add(5), cluster.add(6)]);
        end.store(true, Ordering::Relaxed);
        sums
    });
    assert_eq!(sums.unwrap(), [5, 11]);
    for number in [1, 2] {
        let last = cluster.end(number);
        assert_eq!(last["faulty"], serde_json::json!([0]), "{last}");
    }
}
