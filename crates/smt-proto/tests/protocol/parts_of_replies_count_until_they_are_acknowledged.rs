// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A caller decides when parts of a reply need not be kept any more: they count as replies do that
//! it has not acknowledged (SPEC §10).

use smt_proto::{CloseCode, Event, Refused, RpcId};
use smt_wire::SessionIndex;

use super::calls_come_in_parts::{REPLY, REQUEST, begin, send, take};
use super::support::configs::ethernet;
use super::support::{Verdict, World, body, ms};

const KIB: usize = 1024;

/// A server with room for messages of 4 MiB, of which a session has a quarter for replies, and a
/// client that lets it send parts of 64 MiB.
fn world() -> (World, SessionIndex) {
    let (mut client, mut server) = (ethernet(), ethernet());
    client.part_window = 64 << 20;
    server.memory_max = 4 * 1024 * KIB;
    let (world, session, _) = World::connected_with(client, server);
    (world, session)
}

/// All that the server sends of messages is lost: the client acknowledges nothing.
fn lose_all(world: &mut World) {
    world.rule = Box::new(|datagram, _| match (datagram.from, datagram.data()) {
        (1, Some(_)) => Verdict::Drop,
        _ => Verdict::Deliver,
    });
}

/// Sends parts of a reply until one is refused. Returns how many were sent.
fn fill(world: &mut World, request: RpcId) -> usize {
    for sent in 0..100 {
        match send(world, 1, request, body(1, 100 * KIB), true) {
            Ok(()) => {}
            Err(refused) => {
                assert_eq!(refused, Refused::PartWindowFull);
                return sent;
            }
        }
    }
    panic!("nothing bounds the parts");
}

fn kept(world: &World) -> usize {
    world.nodes[1].endpoint.replies_memory()
}

// SMT [10-8]
#[test]
fn parts_of_a_reply_that_are_not_acknowledged_are_bounded() {
    let (mut world, session) = world();
    let (call, request) = begin(&mut world, session, REPLY);
    lose_all(&mut world);
    let sent = fill(&mut world, request);
    assert!((10..=11).contains(&sent), "{sent} parts were sent");
    assert!((1024 * KIB..1200 * KIB).contains(&kept(&world)));
    world.run_for(ms(100));
    let raised = |event: &Event| matches!(event, Event::PartWindowRaised(_)).then_some(());
    assert!(world.nodes[1].event(raised).is_none());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.wait(1, raised);
    send(&mut world, 1, request, body(1, 100 * KIB), true).unwrap();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, request, "end").unwrap();
    world.run_for(ms(2_000));
    assert_eq!(take(&mut world, 0, call).0.len(), sent + 1);
    assert_eq!(world.outcome(0, call).unwrap(), "end");
    world.run_for(ms(2_000));
    assert_eq!(kept(&world), 0);
}

/// Its caller may need that part before it takes any other.
#[test]
fn each_reply_has_a_part_on_its_way_although_the_session_keeps_too_much() {
    let (mut world, session) = world();
    let [(_, full), (other_call, other)] = [(); 2].map(|()| begin(&mut world, session, REPLY));
    lose_all(&mut world);
    fill(&mut world, full);
    for _ in 0..2 {
        send(&mut world, 1, other, "part".into(), true).unwrap();
        let refused = send(&mut world, 1, other, "part".into(), true);
        assert_eq!(refused, Err(Refused::PartWindowFull));
        // The short part alone arrives.
        world.rule = Box::new(|datagram, _| match (datagram.from, datagram.data()) {
            (1, Some(data)) if data.header.message_length > 1_000 => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        let raised = |event: &Event| {
            matches!(event, Event::PartWindowRaised(rpc) if *rpc == other).then_some(())
        };
        world.wait(1, raised);
        assert_eq!(take(&mut world, 0, other_call).0.len(), 1);
        lose_all(&mut world);
    }
}

/// Short parts that wait together leave in a bundle.
#[test]
fn parts_that_leave_in_a_bundle_count_until_it_is_acknowledged() {
    let (mut world, session) = world();
    let (_, request) = begin(&mut world, session, REPLY);
    for _ in 0..3 {
        send(&mut world, 1, request, "part".into(), true).unwrap();
    }
    let before = kept(&world);
    assert!(before > 3 * 512, "{before}");
    lose_all(&mut world);
    world.run_for(ms(1));
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 1);
    assert_eq!(kept(&world), before);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.run_for(ms(2_000));
    assert_eq!(kept(&world), 0);
}

#[test]
fn parts_of_a_call_that_is_given_up_count_until_they_are_acknowledged() {
    for is_closed in [false, true] {
        let (mut world, session) = world();
        let (call, request) = begin(&mut world, session, REPLY);
        lose_all(&mut world);
        fill(&mut world, request);
        let (now, before) = (world.now, kept(&world));
        world.nodes[0].endpoint.cancel(now, call);
        world.run_for(ms(20));
        assert_eq!(kept(&world), before);
        if is_closed {
            world.nodes[1].endpoint.close(request.session, CloseCode::Done);
        } else {
            world.rule = Box::new(|_, _| Verdict::Deliver);
            world.run_for(ms(5_000));
        }
        assert_eq!(kept(&world), 0, "{is_closed}");
    }
}

/// The application of the caller chooses what it asks for.
#[test]
fn parts_of_a_request_do_not_count_as_replies() {
    let (mut world, session) = world();
    let (call, request) = begin(&mut world, session, REQUEST);
    take(&mut world, 1, request);
    world.run_for(ms(1));
    send(&mut world, 0, call, body(1, 100 * KIB), true).unwrap();
    assert_eq!(world.nodes[0].endpoint.replies_memory(), 0);
}
