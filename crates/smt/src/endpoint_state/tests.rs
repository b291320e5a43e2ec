// SPDX-License-Identifier: Apache-2.0 OR MIT

use smt_carrier::Path;
use smt_io::MemoryCarrier;
use smt_wire::Shard;

use super::timing::PUT_OFF;
use super::*;
use crate::pki::EphemeralCa;

/// The state of a client, and the other end of its network.
fn state() -> (EndpointState, MemoryCarrier) {
    let authority = EphemeralCa::new().unwrap();
    let builder = crate::client(authority.trust().unwrap());
    let (carrier, other) = MemoryCarrier::pair();
    let parts = builder.endpoint_parts().unwrap();
    let opened = parts.endpoint(Shard::default(), &carrier, None);
    (EndpointState::new(opened, Arc::new(carrier), None), other)
}

#[test]
fn questions_wait_while_the_socket_may_have_their_answers() {
    let (mut state, server) = state();
    let now = Time::from_nanos(1);
    let path = Path::to(server.local_address());
    let deadline = Duration::from_secs(5);
    state.endpoint.connect(now, path, "server", deadline).unwrap();
    while let Some(batch) = state.next_batch(now) {
        assert!(state.put_back(now, batch, Ok(())));
    }
    let (due, _) = state.endpoint.poll_timeout().unwrap();
    let is_still_due = |state: &EndpointState| state.endpoint.poll_timeout().unwrap().0 == due;
    state.fire_timers(due + PUT_OFF / 2, true);
    assert!(is_still_due(&state), "something has come just now");
    state.fire_timers(due + PUT_OFF, true);
    assert!(!is_still_due(&state), "it comes all the time");
    let (due, _) = state.endpoint.poll_timeout().unwrap();
    state.fire_timers(due, false);
    assert_ne!(state.endpoint.poll_timeout().unwrap().0, due);
}

#[test]
fn time_never_goes_back() {
    let (mut state, _server) = state();
    let at = Time::from_nanos;
    assert_eq!([7, 5, 9].map(|now| state.advance(at(now))), [7, 7, 9].map(at));
}
