// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_proto::{Config, TimerReason};

use super::support::configs::ethernet;
use super::support::{World, body, ms};

#[test]
fn a_new_endpoint_has_none() {
    let world = World::pair(Config::default(), Config::default());
    assert!(
        world
            .nodes
            .iter()
            .all(|node| node.endpoint.poll_timeout().is_none())
    );
}

#[test]
fn a_client_has_none_and_a_server_only_its_idle_close() {
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
    assert!(
        (200..=250).contains(&asked),
        "{asked} datagrams in a minute"
    );
}

/// It rests after a second, and again after whatever has made keys for nothing.
#[test]
fn a_session_rests_once_after_whatever_came() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let due = |world: &World| world.nodes[0].endpoint.poll_timeout().map(|(due, _)| due);
    assert!(
        due(&world).is_some(),
        "it is to rest, whatever became of its probes"
    );
    world.run_for(ms(3_000));
    assert_eq!(due(&world), None);
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 10));
    world.outcome(0, rpc).unwrap();
    world.run_for(ms(5_000));
    assert_eq!(due(&world), None);
    let mut forged = world
        .sent
        .iter()
        .rfind(|sent| sent.from == 1)
        .unwrap()
        .clone();
    *forged.bytes.last_mut().unwrap() ^= 1;
    world.hand_in(&forged);
    assert!(due(&world).is_some());
    world.run_for(ms(2_000));
    assert_eq!(due(&world), None);
}
