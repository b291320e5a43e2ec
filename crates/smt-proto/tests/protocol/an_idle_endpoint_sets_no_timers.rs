// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_proto::{Config, TimerReason};

use super::support::configs::ethernet;
use super::support::{World, body, ms};

#[test]
fn a_new_endpoint_has_no_timer() {
    let world = World::pair(Config::default(), Config::default());
    assert!(world.nodes.iter().all(|node| node.endpoint.poll_timeout().is_none()));
}

#[test]
fn an_idle_client_has_no_timer_and_an_idle_server_only_its_idle_close() {
    let (mut world, session, _) = World::connected();
    let rpc = world.call(0, session, body(1, 100_000));
    world.outcome(0, rpc).unwrap();
    let last = world.now;
    world.run_for(ms(10_000));
    assert_eq!(world.nodes[0].endpoint.poll_timeout(), None);
    let (due, reason) = world.nodes[1].endpoint.poll_timeout().unwrap();
    assert_eq!(reason, TimerReason::Session);
    assert!(due >= last + ms(599_000), "{due:?}");
}

#[test]
fn a_call_that_is_worked_on_is_asked_about_ever_more_rarely() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| super::support::Answer::Hold);
    world.call(0, session, body(1, 100));
    world.run_for(ms(10_000));
    let before = world.count;
    world.run_for(ms(60_000));
    let asked = world.count - before;
    assert!((200..=250).contains(&asked), "{asked} datagrams in a minute");
}

/// A pass looks at every live message: the more there are, the rarer it is, whatever is called
/// meanwhile.
#[test]
fn timers_of_many_messages_fire_rarely() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|request| match request.len() {
        100 => super::support::Answer::Hold,
        _ => super::support::Answer::Reply(request.clone()),
    });
    for _ in 0..30 {
        world.start_calls(0, session, (0..100).map(|number| body(number, 100)));
        world.run_for(ms(1));
    }
    world.run_for(ms(5_000));
    let (mut passes, began) = (0, world.now);
    while world.now.since(began) < ms(100) {
        let rpc = world.call(0, session, body(1, 64));
        loop {
            let due = world.nodes[0].endpoint.poll_timeout();
            world.step(began + ms(200));
            passes += u32::from(due.is_some_and(|(due, _)| due <= world.now));
            if world.nodes[0].events.iter().any(|event| {
                matches!(event, smt_proto::Event::Reply { rpc: replied, .. } if *replied == rpc)
            }) {
                break;
            }
        }
        world.outcome(0, rpc).unwrap();
    }
    assert!(passes <= 101, "{passes} in 100 ms");
}

/// It rests after a second, and again after whatever has made keys for nothing.
#[test]
fn a_session_hibernates_once_after_any_packet() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let due = |world: &World| world.nodes[0].endpoint.poll_timeout().map(|(due, _)| due);
    assert!(due(&world).is_some(), "it is to rest, whatever became of its probes");
    world.run_for(ms(3_000));
    assert_eq!(due(&world), None);
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 10));
    world.outcome(0, rpc).unwrap();
    world.run_for(ms(5_000));
    assert_eq!(due(&world), None);
    let mut forged = world.sent.iter().rfind(|sent| sent.from == 1).unwrap().clone();
    *forged.bytes.last_mut().unwrap() ^= 1;
    world.hand_in(&forged);
    assert!(due(&world).is_some());
    world.run_for(ms(2_000));
    assert_eq!(due(&world), None);
}
