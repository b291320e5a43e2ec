// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 5: what waits for the application is counted by its length, so it holds no more than that.
//! A short body is a part of a bundle or of a block that others share: the peer decides what they
//! are, and whether they are taken at all.

use bytes::Bytes;
use smt_proto::Config;
use smt_record::Side;
use smt_wire::{Kind, MemberHeader, MessageId};

use super::support::rogue::{Rogue, layout};
use super::support::{World, ms};

/// A one-way message as a member of a bundle.
fn member(id: MessageId, text: &[u8]) -> Vec<u8> {
    let header = MemberHeader {
        id,
        kind: Kind::OneWay,
        length: text.len() as u16,
        deadline_us: 0,
        reply_unscheduled: 0,
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
    };
    let mut bytes = vec![0; MemberHeader::LEN];
    header.emit(bytes.first_chunk_mut().unwrap());
    bytes.extend_from_slice(text);
    bytes
}

/// Whether the bodies of two messages, and of a bundle of two, stand where they came in, one behind
/// the other, when so many bytes wait.
fn share_memory(untaken: usize) -> [bool; 2] {
    let mut server = Config::default();
    server.memory_max = 1 << 20;
    let (mut world, _, at_server) = World::connected_with(Config::default(), server);
    let mut rogue = Rogue::client(at_server);
    world.nodes[1].endpoint.set_untaken(untaken);
    rogue.message(&mut world, Kind::OneWay, b"first");
    rogue.message(&mut world, Kind::OneWay, b"second");
    let id = |counter| layout().id(counter, Side::Client, 0).unwrap();
    let members = [member(id(100), b"third"), member(id(101), b"fourth")];
    rogue.bundle(&mut world, &members.concat());
    world.run_for(ms(10));
    let delivered = &world.nodes[1].delivered;
    let bodies: Vec<&Bytes> = delivered.iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, ["first", "second", "third", "fourth"]);
    let gap = |one: usize| {
        (bodies[one + 1].as_ptr() as usize).wrapping_sub(bodies[one].as_ptr_range().end as usize)
    };
    [gap(0) == 0, gap(2) == MemberHeader::LEN]
}

#[test]
fn each_short_body_behind_a_backlog_has_memory_of_its_own() {
    // A thousandth of the memory waits.
    assert_eq!(share_memory(1_024), [false; 2]);
}

#[test]
fn short_bodies_without_a_backlog_share_the_memory_they_came_in() {
    assert_eq!(share_memory(1_023), [true; 2]);
}
