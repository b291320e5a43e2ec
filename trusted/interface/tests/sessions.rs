// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members whose frames travel over SMT, and hosts that have no device.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use smt::blocking::{Client, Server};
use smt::{KeyEnds, RegisteredKey, Suite};
use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Member as GroupMember, SigningKey, Start,
    StreamId,
};
use smt_device_client::{Device, Library, SecretNumber};
use smt_trusted_interface::{Access, Completion, Identity, Member, Node, Outcome, Peer};

type TestDevice = Library<2, 2, 8>;
type TestMember = Member<TestDevice, TestDevice>;

const LIMIT: Duration = Duration::from_secs(20);

/// A device of which nothing else is known than its number and the seed of its key.
fn device(number: u32, seed: u8) -> TestDevice {
    let own = Start { device: DeviceId(number), epoch: Epoch(1), nonce: [0; 16] };
    let mut device = Library::start(own, SigningKey::new(&[seed; 32]));
    device.add_secret(SecretNumber(0), GroupSecret::new([seed; 32])).unwrap();
    device.add_secret(SecretNumber(1), GroupSecret::new([9; 32])).unwrap();
    device
}

fn node(number: u32) -> Node<TestDevice> {
    let members = [1, 2].map(|it| GroupMember { device: DeviceId(it), epoch: Epoch(1) });
    let algorithm = Algorithm::HmacSha256;
    let group = Group { stream: StreamId(4), algorithm, quorum: 1, members: &members };
    Node::connect(device(number, number as u8), SecretNumber(1), &group).unwrap()
}

fn key(own: &str, peer: &str) -> RegisteredKey {
    let ends = KeyEnds { own, peer };
    RegisteredKey::from_secret(b"hosts", ends, Suite::Aes128Gcm, &[5; 32]).unwrap()
}

/// A server of SMT that takes every host that has SMT's own key.
fn server() -> Server {
    smt::server_by_keys([key("server", "client")]).bind_blocking("127.0.0.1:0").unwrap()
}

fn client(server: &Server) -> Client {
    let client = smt::client_by_key(key("client", "server"));
    client.connect_lazy_blocking(server.local_address()).unwrap()
}

fn peer(number: u32, seed: u8) -> Peer {
    let public_key = device(number, seed).public_key();
    Peer { device: DeviceId(number), public_key }
}

fn member(number: u32, server: &Server, other: Peer) -> TestMember {
    let identity = Identity::new(device(number, number as u8)).unwrap();
    Member::listen(node(number), identity, server.clone(), vec![other]).unwrap()
}

/// Two members, whose links are those of these clients.
fn pair() -> (TestMember, TestMember, Client) {
    let servers = [server(), server()];
    let mut one = member(1, &servers[0], peer(2, 2));
    let mut two = member(2, &servers[1], peer(1, 1));
    let to_two = client(&servers[1]);
    one.link(DeviceId(2), to_two.clone()).unwrap();
    two.link(DeviceId(1), client(&servers[0])).unwrap();
    (one, two, to_two)
}

fn message(from: u32, text: &str) -> Option<Completion> {
    let outcome = Outcome::Message(text.as_bytes().to_vec());
    Some(Completion { from: DeviceId(from), outcome })
}

/// Lets both work until the first one has a completion.
fn completion(one: &mut TestMember, other: &mut TestMember) -> Completion {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        assert_eq!(other.poll(Duration::ZERO).unwrap(), None);
        if let Some(completion) = one.poll(Duration::from_millis(1)).unwrap() {
            return completion;
        }
        assert!(std::time::Instant::now() < end, "{:?} {:?}", one.troubles(), other.troubles());
    }
}

#[test]
fn messages_reads_and_writes_travel_both_ways() {
    let (mut one, mut two, _) = pair();
    for text in ["a", "b", "c"] {
        one.node().multicast(text.as_bytes()).unwrap();
    }
    assert_eq!(one.poll(Duration::ZERO).unwrap(), None);
    for text in ["a", "b", "c"] {
        assert_eq!(two.poll(LIMIT).unwrap(), message(1, text));
    }
    two.node().send(DeviceId(1), b"back").unwrap();
    assert_eq!(two.poll(Duration::ZERO).unwrap(), None);
    assert_eq!(one.poll(LIMIT).unwrap(), message(2, "back"));
    let access = Access { readers: vec![DeviceId(1)], writers: Vec::new() };
    let memory = two.node().register(b"remote".to_vec(), access);
    let ticket = one.node().read(DeviceId(2), (memory, 2), 3).unwrap();
    let read = Outcome::Read(ticket, Ok(b"mot".to_vec()));
    let done = completion(&mut one, &mut two);
    assert_eq!(done, Completion { from: DeviceId(2), outcome: read });
}

#[test]
fn frames_go_on_over_a_new_session_when_one_has_ended() {
    let (mut one, mut two, to_two) = pair();
    for number in 0..5 {
        let text = format!("message {number}");
        one.node().multicast(text.as_bytes()).unwrap();
        assert_eq!(one.poll(Duration::ZERO).unwrap(), None);
        assert_eq!(two.poll(LIMIT).unwrap(), message(1, &text));
        to_two.connect().unwrap().close();
    }
}

/// Polls until a peer is in trouble, with these words.
fn is_in_trouble(member: &mut TestMember, words: &str) -> bool {
    let end = std::time::Instant::now() + LIMIT;
    while std::time::Instant::now() < end {
        assert_eq!(member.poll(Duration::from_millis(1)).unwrap(), None);
        if member.troubles().iter().any(|(_, text)| text.contains(words)) {
            return true;
        }
    }
    false
}

/// The other host has SMT's key, the number, and the group's secret, and no device of that key.
#[test]
fn a_host_whose_device_has_another_key_gets_no_frame() {
    let servers = [server(), server()];
    let mut one = member(1, &servers[0], peer(2, 7));
    let mut two = member(2, &servers[1], peer(1, 1));
    one.link(DeviceId(2), client(&servers[1])).unwrap();
    two.link(DeviceId(1), client(&servers[0])).unwrap();
    one.node().multicast(b"for device 2 alone").unwrap();
    two.node().multicast(b"from nobody").unwrap();
    assert_eq!(two.poll(Duration::ZERO).unwrap(), None);
    assert!(is_in_trouble(&mut one, "has not proved that it has device 2"));
    assert!(is_in_trouble(&mut two, "does not take this device"));
}

/// Nothing is taken from a session that nobody has bound, not even a genuine frame.
#[test]
fn a_session_without_a_device_brings_no_frame() {
    let server = server();
    let mut two = member(2, &server, peer(1, 1));
    let stranger = client(&server);
    let mut node = node(1);
    node.multicast(b"genuine").unwrap();
    let frame = [&[2][..], &node.next_frame().unwrap()].concat();
    let not_bound = [3];
    assert_eq!(stranger.call(frame).deadline(LIMIT).wait().unwrap(), not_bound[..]);
    assert_eq!(stranger.call(vec![1; 97]).deadline(LIMIT).wait().unwrap(), not_bound[..]);
    for malformed in [vec![], vec![1; 5], vec![9; 97]] {
        assert_eq!(stranger.call(malformed).deadline(LIMIT).wait().unwrap(), [2][..]);
    }
    assert_eq!(two.poll(Duration::ZERO).unwrap(), None);
}

/// A host with all of SMT's credentials stands between both and repeats every byte: each end signs
/// its own session, and the two are not the same.
#[test]
fn a_host_between_two_devices_binds_no_session() {
    let servers = [server(), server()];
    let mut one = member(1, &servers[0], peer(2, 2));
    let mut two = member(2, &servers[1], peer(1, 1));
    let between = server();
    let (relayed, onward) = (between.clone(), client(&servers[1]));
    std::thread::spawn(move || {
        while let Some(request) = relayed.accept_request() {
            let body = request.body().clone();
            if let Ok(reply) = onward.call(body).deadline(LIMIT).wait() {
                let _ = request.reply(reply);
            }
        }
    });
    one.link(DeviceId(2), client(&between)).unwrap();
    one.node().multicast(b"for device 2 alone").unwrap();
    assert!(is_in_trouble(&mut one, "does not take this device"));
    assert_eq!(two.poll(Duration::ZERO).unwrap(), None);
    between.close(Duration::ZERO);
}

#[test]
fn only_peers_are_listened_and_linked_to() {
    let server = server();
    for wrong in [peer(1, 1), peer(3, 3)] {
        let identity = Identity::new(device(1, 1)).unwrap();
        assert!(Member::listen(node(1), identity, server.clone(), vec![wrong]).is_err());
    }
    let other = Identity::new(device(2, 2)).unwrap();
    assert!(Member::listen(node(1), other, server.clone(), vec![peer(2, 2)]).is_err());
    let mut one = member(1, &server, peer(2, 2));
    assert!(one.link(DeviceId(3), client(&server)).is_err());
    one.link(DeviceId(2), client(&server)).unwrap();
    assert!(one.link(DeviceId(2), client(&server)).is_err());
}
