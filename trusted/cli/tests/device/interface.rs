// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two device processes whose hosts talk over SMT, from their provisioning on.

use std::time::Duration;

use data_encoding::HEXLOWER;
use smt::blocking::{Client as SmtClient, Server};
use smt::{KeyEnds, RegisteredKey, Suite};
use smt_attestation::{Algorithm, DeviceId, Epoch, Group, Member as GroupMember};
use smt_device_client::{Client, SecretNumber};
use smt_trusted_interface::{Access, Completion, Identity, Member, Node, Outcome, Peer, Region};

use crate::bootstrap::{Roles, key_of};
use crate::process::{STREAM, connect, start};

const LIMIT: Duration = Duration::from_secs(20);

fn key(own: u32, peer: u32) -> RegisteredKey {
    let (own, peer) = (format!("host {own}"), format!("host {peer}"));
    let ends = KeyEnds { own: &own, peer: &peer };
    RegisteredKey::from_secret(b"hosts", ends, Suite::Aes128Gcm, &[5; 32]).unwrap()
}

fn server(own: u32, peer: u32) -> Server {
    smt::server_by_keys([key(own, peer)]).bind_blocking("127.0.0.1:0").unwrap()
}

fn client(own: u32, peer: u32, server: &Server) -> SmtClient {
    let client = smt::client_by_key(key(own, peer));
    client.connect_lazy_blocking(server.local_address()).unwrap()
}

/// The host of a running device, whose other member has the key that its vendor was told.
fn member(path: &str, server: &Server, other: (u32, &str)) -> Member<Client, Client> {
    let members = [1, 2].map(|it| GroupMember { device: DeviceId(it), epoch: Epoch(1) });
    let algorithm = Algorithm::HmacSha256;
    let group = Group { stream: STREAM, algorithm, quorum: 1, members: &members };
    let node = Node::connect(connect(path), SecretNumber(5), &group).unwrap();
    let public_key = HEXLOWER.decode(other.1.as_bytes()).unwrap().try_into().unwrap();
    let peer = Peer { device: DeviceId(other.0), public_key };
    let identity = Identity::new(connect(path)).unwrap();
    Member::listen(node, identity, server.clone(), vec![peer]).unwrap()
}

fn next(
    member: &mut Member<Client, Client>,
    other: &mut Member<Client, Client>,
) -> Option<Outcome> {
    let end = std::time::Instant::now() + LIMIT;
    while std::time::Instant::now() < end {
        assert_eq!(other.poll(Duration::ZERO).unwrap(), None);
        if let Some(Completion { outcome, .. }) = member.poll(Duration::from_millis(1)).unwrap() {
            return Some(outcome);
        }
    }
    panic!("nothing came: {:?} {:?}", member.troubles(), other.troubles());
}

#[test]
fn two_provisioned_devices_exchange_messages_and_memory_over_smt() {
    let roles = Roles::new();
    let paths = [roles.make("1", &[]), roles.make("2", &[])];
    let keys = [("1", &paths[0]), ("2", &paths[1])].map(|(number, path)| {
        let (mut process, address) = roles.wait(path, &[]);
        let options = ["--program", &roles.program, "--device", number];
        let key = key_of(&roles.provision(&address, &options));
        assert!(process.0.wait().unwrap().success());
        key
    });
    let _processes = paths.each_ref().map(|path| start(path, &[]));
    let servers = [server(1, 2), server(2, 1)];
    let mut one = member(&paths[0], &servers[0], (2, &keys[1]));
    let mut two = member(&paths[1], &servers[1], (1, &keys[0]));
    one.link(DeviceId(2), client(1, 2, &servers[1])).unwrap();
    two.link(DeviceId(1), client(2, 1, &servers[0])).unwrap();

    for number in 0..100_u32 {
        one.node().multicast(&number.to_be_bytes()).unwrap();
    }
    for number in 0..100_u32 {
        let outcome = next(&mut two, &mut one);
        assert_eq!(outcome, Some(Outcome::Message(number.to_be_bytes().to_vec())));
    }
    two.node().send(DeviceId(1), b"an answer").unwrap();
    assert_eq!(next(&mut one, &mut two), Some(Outcome::Message(b"an answer".to_vec())));

    let access = Access { readers: vec![DeviceId(1)], writers: vec![DeviceId(1)] };
    let memory = two.node().register(vec![0; 64 * 1024], access);
    two.node().announce().unwrap();
    let region = Region { key: memory, length: 64 * 1024 };
    assert_eq!(next(&mut one, &mut two), Some(Outcome::Announced(vec![region])));
    let bytes: Vec<u8> = (0..50_000_u32).map(|it| it as u8).collect();
    let write = one.node().write(DeviceId(2), (memory, 1000), &bytes).unwrap();
    let written = Outcome::Written { key: memory, offset: 1000, length: 50_000 };
    assert_eq!(next(&mut two, &mut one), Some(written));
    assert_eq!(next(&mut one, &mut two), Some(Outcome::Wrote(write, Ok(()))));
    let read = one.node().read(DeviceId(2), (memory, 1000), 50_000).unwrap();
    assert_eq!(next(&mut one, &mut two), Some(Outcome::Read(read, Ok(bytes))));

    // A fact that device 1 has attested convinces device 2 by whatever way it comes.
    let fact = one.node().attest(b"fact").unwrap();
    assert_eq!(two.node().verify(&fact).unwrap().device, DeviceId(1));
}

/// The device of the other host is genuine, and another one than the vendor has certified.
#[test]
fn a_device_that_the_vendor_did_not_provision_gets_no_session() {
    let roles = Roles::new();
    let paths = [roles.make("1", &[]), roles.make("2", &[])];
    for path in &paths {
        crate::process::succeeds(&["add-secret", path, "5"], &format!("{}\n", "07".repeat(32)));
    }
    let _processes = paths.each_ref().map(|path| start(path, &[]));
    let servers = [server(1, 2), server(2, 1)];
    let mut one = member(&paths[0], &servers[0], (2, &"11".repeat(32)));
    let own = HEXLOWER.encode(&smt_device_client::Device::public_key(&connect(&paths[0])));
    let mut two = member(&paths[1], &servers[1], (1, &own));
    one.link(DeviceId(2), client(1, 2, &servers[1])).unwrap();
    one.node().multicast(b"for device 2 alone").unwrap();
    let end = std::time::Instant::now() + LIMIT;
    loop {
        assert_eq!(one.poll(Duration::from_millis(1)).unwrap(), None);
        let troubles = one.troubles();
        if let [(DeviceId(2), text)] = &troubles[..] {
            assert!(text.contains("has not proved that it has device 2"), "{text}");
            break;
        }
        assert!(std::time::Instant::now() < end, "no trouble");
    }
    assert_eq!(two.poll(Duration::ZERO).unwrap(), None);
}
