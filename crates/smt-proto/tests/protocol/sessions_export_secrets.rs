// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_proto::{CloseCode, Config, Refused};
use smt_wire::SessionIndex;

use super::support::World;

fn exported(world: &World, node: usize, session: SessionIndex) -> Result<[u8; 32], Refused> {
    let mut secret = [0; 32];
    let endpoint = &world.nodes[node].endpoint;
    endpoint.export(session, "label", b"context", &mut secret)?;
    Ok(secret)
}

#[test]
fn the_ends_of_a_session_export_the_same_and_another_session_something_else() {
    let mut world = World::pair(Config::default(), Config::default());
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let (client, server) = world.connect(0, 1).unwrap();
        let secret = exported(&world, 0, client).unwrap();
        assert_eq!(exported(&world, 1, server), Ok(secret));
        sessions.push(secret);
    }
    assert_ne!(sessions[0], sessions[1]);
}

// SMT [7.4-4]
#[test]
fn a_session_that_is_not_live_yet_or_has_ended_exports_nothing() {
    let (mut world, session, _) = World::connected();
    let next = SessionIndex(session.0 + 1);
    assert_eq!(exported(&world, 0, next), Err(Refused::NoSession));
    world.start_connect(0, 1);
    assert_eq!(exported(&world, 0, next), Err(Refused::NoSession));
    world.nodes[0].endpoint.close(session, CloseCode::Done);
    assert_eq!(exported(&world, 0, session), Err(Refused::NoSession));
}
