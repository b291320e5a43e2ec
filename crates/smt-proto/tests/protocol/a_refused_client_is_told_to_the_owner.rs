// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's owner learns which clients are refused, and why: the log of an operator.

use smt_proto::{Config, Event};

use super::support::{Node, World, exchanges};

/// The reasons of the server's events about refused clients, which all name the only client.
fn reasons(world: &World) -> Vec<String> {
    let client = world.nodes[0].address;
    let events = world.nodes[1].events.iter();
    let refused = events.filter_map(|event| match event {
        Event::ClientRefused { path, reason } => Some((path.remote, reason.to_string())),
        _ => None,
    });
    let refused = refused.inspect(|(remote, _)| assert_eq!(*remote, client));
    refused.map(|(_, reason)| reason).collect()
}

#[test]
fn each_attempt_that_fails_is_an_event_with_the_reason() {
    let mut config = Config::default();
    config.accept = true;
    let mut world = World::pair(Config::default(), config.clone());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.refuses = true;
    world.nodes[1] = Node::with_exchanges(1, config, exchanges);
    world.connect(0, 1).unwrap_err();
    let reasons = reasons(&world);
    assert_eq!(
        reasons.len() as u64,
        world.nodes[1].endpoint.statistics().handshakes_failed
    );
    assert!(!reasons.is_empty());
    for reason in reasons {
        assert!(reason.contains("told to refuse"), "{reason}");
    }
}

#[test]
fn a_client_that_finds_no_room_is_told_as_well() {
    let mut world = World::pair(Config::default(), Config::default());
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    world.connect(0, 1).unwrap_err();
    let reasons = reasons(&world);
    assert!(!reasons.is_empty());
    for reason in reasons {
        assert!(reason.contains("the server is shutting down"), "{reason}");
    }
}

#[test]
fn a_client_that_is_taken_is_not_told_as_refused() {
    let (world, _, _) = World::connected();
    assert_eq!(reasons(&world), [""; 0]);
}
