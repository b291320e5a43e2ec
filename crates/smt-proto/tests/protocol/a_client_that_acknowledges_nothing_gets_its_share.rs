// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A caller decides when a reply need not be kept any more, so what it makes a server keep is
//! bounded, however the replies have left: alone, or in bundles (SPEC §5.7, §9.4, §10).

use std::collections::BTreeSet;

use smt_proto::Config;
use smt_wire::{Body, Kind, List, MemberHeader, MessageId, Packet, Resend};

use super::support::rogue::Rogue;
use super::support::{Answer, Datagram, Verdict, World, body, ms};

/// Memory of the server for messages; a session's replies may have a quarter of it.
const MEMORY: usize = 1 << 20;
/// Bytes of the reply that a member of a bundle causes.
const REPLY: usize = 1_000;
const MEMBERS: usize = 51;

/// A server that answers each request with a kilobyte, and a client of it that hears nothing and
/// does as it likes.
fn server() -> (World, Rogue) {
    let mut config = Config::default();
    config.memory_max = MEMORY;
    let (mut world, _, at_server) = World::connected_with(Config::default(), config);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, REPLY)));
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    (world, Rogue::client(at_server))
}

/// Hands in bundles of empty requests, and gives all members up after each if it is to. How many
/// requests were taken.
fn ask(world: &mut World, rogue: &mut Rogue, bundles: usize, gives_up: bool) -> usize {
    let mut next = 0;
    for _ in 0..bundles {
        let ids: Vec<_> = (next..).take(MEMBERS).map(|counter| MessageId(2 * counter)).collect();
        rogue.bundle(world, &empty_requests(&ids));
        let taken = world.nodes[1].delivered.len() as u64;
        // Messages that were not taken come again.
        next = taken;
        world.flush();
        if gives_up {
            rogue.say(world, &[Body::Cancel(List::from(&ids[..]))]);
        }
        world.run_for(ms(5));
    }
    world.nodes[1].delivered.len()
}

fn empty_requests(ids: &[MessageId]) -> Vec<u8> {
    let mut bytes = vec![0; ids.len() * MemberHeader::LEN];
    let (places, _) = bytes.as_chunks_mut();
    for (place, id) in places.iter_mut().zip(ids) {
        let header = MemberHeader {
            id: *id,
            kind: Kind::Request,
            length: 0,
            deadline_us: 0,
            reply_unscheduled: 60_000,
            failure: None,
            has_metadata: false,
            parts: smt_wire::PartMarks::default(),
        };
        header.emit(place);
    }
    bytes
}

// SMT [5.7-42]
#[test]
fn replies_in_bundles_are_kept_within_its_share() {
    for gives_up in [false, true] {
        let (mut world, mut rogue) = server();
        let taken = ask(&mut world, &mut rogue, 40, gives_up);
        assert!(taken > MEMBERS, "some were served");
        let bundles = world.nodes[1].endpoint.statistics().bundles_sent;
        assert!(bundles > 0, "replies have left in bundles");
        let most = MEMORY / 4 + 2 * MEMBERS * (REPLY + 62);
        assert!(taken * REPLY <= most, "{taken} replies were kept, given up: {gives_up}");
        let kept = world.nodes[1].endpoint.replies_memory();
        assert!((taken * REPLY..=most).contains(&kept), "{kept} of {taken}");
    }
}

// SMT [5.7-41]
#[test]
fn bundles_of_replies_are_given_up_like_replies_and_cancelled() {
    let (mut world, mut rogue) = server();
    world.is_recording = true;
    ask(&mut world, &mut rogue, 4, true);
    assert!(world.nodes[1].endpoint.replies_memory() > 0);
    let of_server = |sent: &&Datagram| sent.from == 1;
    let left = world.sent.iter().filter(of_server).filter_map(|sent| sent.data());
    let bundles: BTreeSet<MessageId> = left.map(|data| data.header.id).collect();
    world.sent.clear();
    for value in 0..60 {
        rogue.say(&mut world, &[Body::Pong(value)]);
        world.run_for(ms(500));
    }
    assert_eq!(world.nodes[1].endpoint.replies_memory(), 0);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1, "it lives");
    let mut cancelled = BTreeSet::new();
    for packet in world.sent.iter().filter(of_server).flat_map(Datagram::packets) {
        if let Packet::Control(control) = packet
            && let Body::Cancel(list) = control.body
        {
            cancelled.extend(list.iter());
        }
    }
    assert_eq!(cancelled, bundles);
}

#[test]
fn requests_that_are_worked_on_count_at_what_they_take() {
    let (mut world, mut rogue) = server();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let taken = ask(&mut world, &mut rogue, 40, false);
    assert!(taken > MEMBERS, "some were served");
    assert!(taken <= MEMORY / 4 / 512 + 2 * MEMBERS, "{taken} are worked on");
}

#[test]
fn peers_that_keep_their_replies_and_ask_for_them_keep_no_others_out() {
    let mut config = Config::default();
    config.memory_max = MEMORY;
    let mut world = World::pair(Config::default(), config);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 50_000)));
    let mut rogues: Vec<Rogue> =
        (0..30).map(|_| Rogue::client(world.connect(0, 1).unwrap().1)).collect();
    let mut kept: Vec<Vec<MessageId>> = vec![Vec::new(); rogues.len()];
    for _ in 0..12 {
        for (rogue, kept) in rogues.iter_mut().zip(&mut kept) {
            kept.push(rogue.message(&mut world, Kind::Request, b""));
        }
    }
    let most = MEMORY + MEMORY / 2 + 51_000;
    let memory = world.nodes[1].endpoint.replies_memory();
    assert!((MEMORY + MEMORY / 4..=most).contains(&memory), "{memory}");
    let (honest, _) = world.connect(0, 1).unwrap();
    for _ in 0..5 {
        let began = world.now;
        let rpc = world.call(0, honest, body(2, 100));
        // Those who keep replies ask for them meanwhile, and take as many more as they get.
        for _ in 0..80 {
            for (rogue, kept) in rogues.iter_mut().zip(&mut kept) {
                let ranges: Vec<Resend> = kept.iter().rev().take(64).map(|id| whole(*id)).collect();
                rogue.say(&mut world, &[Body::Resend(List::from(&ranges[..]))]);
                kept.push(rogue.message(&mut world, Kind::Request, b""));
            }
            world.run_for(ms(100));
        }
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 50_000)));
        let took = world.now.since(began);
        assert!(took <= ms(8_000), "a call took {took:?}");
        let memory = world.nodes[1].endpoint.replies_memory();
        assert!(memory <= most, "{memory} bytes of replies are kept");
    }
}

#[test]
fn replies_outlast_a_path_that_loses_their_ends_for_seconds_although_memory_presses() {
    let mut config = Config::default();
    config.memory_max = 100_000;
    let (mut world, session, _) = World::connected_with(Config::default(), config);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 150_000)));
    let healed = world.now + ms(5_000);
    world.rule = Box::new(move |datagram, _| {
        let is_end = datagram.data().is_some_and(|data| data.header.offset > 0);
        match is_end && datagram.at < healed {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    let rpc = world.call(0, session, body(2, 100));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 150_000)));
}

/// All of a message.
fn whole(id: MessageId) -> Resend {
    Resend { id, offset: 0, length: u32::MAX }
}
