// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint that is one shard of several issues indices of its own, and sends RESET for no other
//! shard's.

use smt_proto::{CloseCode, Config};
use smt_wire::{PacketType, SessionIndex, Shard};

use super::support::forge::SESSION;
use super::support::{Datagram, World, body, ms};

const BOOT: u32 = 7;
const SHARD: Shard = Shard::new(1, 4);

/// A shard with a client that has connected twice, and the sessions' indices.
fn world() -> (World, [(SessionIndex, SessionIndex); 2]) {
    let mut server = Config::default();
    (server.boot, server.shard) = (BOOT, SHARD);
    let mut world = World::pair(Config::default(), server);
    let sessions = [0; 2].map(|_| world.connect(0, 1).unwrap());
    (world, sessions)
}

// SMT [6.6-2]
#[test]
fn every_index_is_of_the_shard() {
    let (_, sessions) = world();
    let serials = sessions.map(|(_, server)| server.serial());
    // 7 + 2 and 7 + 6 leave 1 when divided by 4.
    assert_eq!(serials, [2, 6]);
    assert!(sessions.iter().all(|(_, server)| SHARD.issues(*server)));
}

// SMT [6.6-8]
#[test]
fn resets_are_sent_only_for_indices_that_this_shard_has_closed() {
    let (mut world, [(client, first), (_, second)]) = world();
    world.is_recording = true;
    world.call(0, client, body(1, 100));
    world.run_for(ms(100));
    let template = world.sent.iter().find(|sent| sent.data().is_some());
    let template = template.cloned().unwrap();
    for session in [first, second] {
        world.nodes[1].endpoint.close(session, CloseCode::Done);
    }
    world.run_for(ms(1));
    let answered: Vec<_> = (0..=second.serial() + 8)
        .filter(|serial| {
            world.sent.clear();
            let mut bytes = template.bytes.clone();
            let index = SessionIndex::new(BOOT, *serial);
            bytes[SESSION].copy_from_slice(&index.0.to_be_bytes());
            world.hand_in(&Datagram { bytes, ..template.clone() });
            world.sent.iter().any(|sent| sent.has(PacketType::Reset))
        })
        .collect();
    assert_eq!(answered, [first.serial(), second.serial()]);
}
