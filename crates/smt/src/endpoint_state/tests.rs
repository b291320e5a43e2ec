// SPDX-License-Identifier: Apache-2.0 OR MIT

use smt_carrier::{Path, SendError};
use smt_io::MemoryCarrier;
use smt_proto::ConnectError;
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
fn a_connect_learns_that_the_path_does_not_carry_its_flight() {
    let (mut state, server) = state();
    let mut now = Time::from_nanos(1);
    let path = Path::to(server.local_address());
    state.endpoint.connect(now, path, "server", Duration::from_secs(5)).unwrap();
    for _ in 0..2 {
        state.fire_timers(now, false);
        while let Some(batch) = state.next_batch(now) {
            assert!(state.put_back(now, batch, Err(SendError::TooLarge)));
        }
        now = state.endpoint.poll_timeout().map_or(now, |(due, _)| due);
    }
    let event = state.endpoint.poll_event();
    let Some(Event::ConnectFailed { error, .. }) = event else { panic!("{event:?}") };
    assert_eq!(error, ConnectError::PathTooSmall);
}

fn rpc() -> RpcId {
    RpcId { session: SessionIndex(1), id: smt_wire::MessageId(7) }
}

#[test]
fn parts_that_a_call_has_left_are_kept_for_a_reader_alone() {
    let (mut state, _server) = state();
    let left = || Event::PartsLeft { rpc: rpc(), parts: vec!["part".into()] };
    state.tell(left());
    assert_eq!(state.parts_left.take(rpc()), None, "its caller has gone before");
    let _slot = state.calls.expect(rpc());
    state.tell(left());
    state.forget_call(Time::from_nanos(1), rpc());
    assert_eq!(state.parts_left.take(rpc()), None, "its caller has gone since");
}

#[test]
fn nothing_is_kept_of_a_session_that_was_to_finish_and_has_ended() {
    let (mut state, _server) = state();
    let session = rpc().session;
    state.finish_session(session);
    assert!(state.is_closing(session));
    state.tell_session_cancelled(session);
    assert!(!state.is_closing(session));
}

#[test]
fn time_never_goes_back() {
    let (mut state, _server) = state();
    let at = Time::from_nanos;
    assert_eq!([7, 5, 9].map(|now| state.advance(at(now))), [7, 7, 9].map(at));
}
