// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_wire::PacketType;

use super::support::{World, body, ms};

#[test]
fn a_hundred_calls_one_after_the_other_take_two_hundred_datagrams() {
    let (mut world, session, _) = World::connected();
    world.is_recording = true;
    let before = world.count;
    for number in 0..100 {
        let rpc = world.call(0, session, body(number, 100));
        world.outcome(0, rpc).unwrap();
    }
    assert_eq!(world.count - before, 200, "{}", world.trace());
    assert!(world.sent.iter().all(|datagram| datagram.data().is_some()));
}

// SMT [9.4-3]
#[test]
fn only_the_last_reply_is_asked_about() {
    let (mut world, session, _) = World::connected();
    for number in 0..100 {
        let rpc = world.call(0, session, body(number, 100));
        world.outcome(0, rpc).unwrap();
    }
    world.is_recording = true;
    world.run_for(ms(60_000));
    let types = [PacketType::NeedAck, PacketType::Ack];
    assert_eq!(world.sent.len(), 2, "{}", world.trace());
    assert!(types.iter().zip(&world.sent).all(|(of, sent)| sent.has(*of)));
}

#[test]
fn a_call_of_a_megabyte_takes_few_packets_beside_its_data() {
    let (mut world, session, _) = World::connected();
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 1_000_000));
    world.outcome(0, rpc).unwrap();
    let data = world.sent.iter().filter(|sent| sent.data().is_some()).count();
    let others = world.sent.len() - data;
    // Each grant is some 64 KB, which is one datagram and a little.
    assert!(data <= 48, "{data}");
    assert!(others * 2 <= data, "{others} of {}", world.sent.len());
}

/// The next request acknowledges the reply before, if it comes within half a second; else the
/// server asks, once.
#[test]
fn rare_calls_take_no_further_datagrams() {
    for (pause, datagrams) in [(ms(1), 2), (ms(400), 2), (ms(1_600), 4)] {
        let (mut world, session, _) = World::connected();
        world.run_for(ms(2_000));
        let before = world.count;
        for number in 0..10 {
            let rpc = world.call(0, session, body(number, 64));
            world.outcome(0, rpc).unwrap();
            world.run_for(pause);
        }
        let counted = world.count - before;
        assert!(counted <= 10 * datagrams + 2, "{counted} at pauses of {pause:?}");
    }
}

/// Homa's cutoffs: the shorter a message, the more urgent its packets.
#[test]
fn packets_leave_with_the_priority_of_their_messages_length() {
    for (length, priority) in [(0, 7), (200, 7), (2_000, 6), (10_000, 5), (50_000, 4)] {
        let (mut world, session, _) = World::connected();
        let now = world.now;
        let node = &mut world.nodes[0];
        let call = node.endpoint.call(now, session, body(1, length), None);
        assert!(call.is_ok());
        let transmit = node.endpoint.poll_transmit(now, &mut node.buffer).unwrap();
        assert_eq!(transmit.priority, priority, "{length} bytes");
    }
}
