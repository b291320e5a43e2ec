// SPDX-License-Identifier: Apache-2.0 OR MIT

use std::time::Duration;

use smt_io::MemoryCarrier;
use smt_wire::Shard;

use super::*;
use crate::pki::EphemeralCa;

const DEADLINE: Duration = Duration::from_secs(5);

/// The servers of a client that nothing is sent for.
struct Tested {
    endpoint: Endpoint,
    servers: Servers,
    now: Time,
}

impl Tested {
    fn new(address: Address) -> (Self, ServerId) {
        let trust = EphemeralCa::new().unwrap().trust().unwrap();
        let parts = crate::client(trust).endpoint_parts().unwrap();
        let opened = parts.endpoint(Shard::default(), &MemoryCarrier::pair().0, None);
        let mut tested = Self {
            endpoint: opened.endpoint,
            servers: Servers::default(),
            now: Time::default() + Duration::from_secs(1),
        };
        let server = tested.servers.add(ServerChoice {
            address,
            server_name: "server".to_owned(),
            deadline: DEADLINE,
        });
        (tested, server)
    }

    /// Servers of a pool, whose addresses are known.
    fn pool(count: u8) -> (Self, ServerId) {
        let (mut tested, _) = Self::new(addresses(1)[0].into());
        let choices = addresses(count).into_iter().map(|address| ServerChoice {
            address: address.into(),
            server_name: "server".to_owned(),
            deadline: DEADLINE,
        });
        let pool = tested.servers.add_pool(choices.collect());
        (tested, pool)
    }

    fn poll(
        &mut self,
        server: ServerId,
        attempt: &mut Option<u64>,
        is_urgent: bool,
    ) -> Poll<Result<SessionIndex, Failure>> {
        let caller = Caller { server, attempt, is_urgent, early: None, waker: Waker::noop() };
        self.servers.poll_session(self.now, &mut self.endpoint, caller)
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.servers.handle_timeout(self.now, &mut self.endpoint);
    }

    /// The number of connects that run now.
    fn running(&self) -> Vec<ConnectId> {
        let runs = |id: &ConnectId| self.servers.of.values().any(|server| server.waits_for(*id));
        (0..100).map(ConnectId).filter(runs).collect()
    }

    fn fail(&mut self, connect: ConnectId) {
        let failed = Err(ConnectError::NoServer);
        self.servers.finish(self.now, &mut self.endpoint, connect, failed);
    }
}

fn addresses(count: u8) -> Vec<SocketAddr> {
    (1..=count).map(|last| SocketAddr::from(([192, 0, 2, last], 9))).collect()
}

fn failure_of(polled: Poll<Result<SessionIndex, Failure>>) -> Failure {
    match polled {
        Poll::Ready(Err(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_is_resolved_anew_for_each_attempt() {
    let (mut tested, server) = Tested::new("db7:9".into());
    for _ in 0..3 {
        let mut attempt = None;
        assert!(tested.poll(server, &mut attempt, true).is_pending());
        let names = tested.servers.take_to_resolve();
        assert_eq!(names.len(), 1);
        // Those who come meanwhile wait for the same answer.
        assert!(tested.poll(server, &mut None, false).is_pending());
        assert!(tested.servers.take_to_resolve().is_empty());
        let (now, endpoint) = (tested.now, &mut tested.endpoint);
        let found = Ok(addresses(1));
        tested.servers.resolved(now, endpoint, &names[0], found);
        let running = tested.running();
        assert_eq!(running.len(), 1);
        tested.fail(running[0]);
        let failure = failure_of(tested.poll(server, &mut attempt, true));
        assert_eq!(failure, Failure::at(addresses(1)[0], ConnectError::NoServer));
    }
}

#[test]
fn a_name_that_is_not_resolved_fails_the_attempt_and_so_does_a_resolver_that_is_silent() {
    let (mut tested, server) = Tested::new("db7:9".into());
    let mut attempt = None;
    assert!(tested.poll(server, &mut attempt, false).is_pending());
    let names = tested.servers.take_to_resolve();
    let unknown = ErrorKind::Unresolved("unknown".to_owned());
    let (now, endpoint) = (tested.now, &mut tested.endpoint);
    tested.servers.resolved(now, endpoint, &names[0], Err(unknown.clone()));
    let failure = failure_of(tested.poll(server, &mut attempt, false));
    assert_eq!(failure, Failure::of(unknown));

    let mut attempt = None;
    assert!(tested.poll(server, &mut attempt, true).is_pending());
    tested.pass(DEADLINE);
    let failure = failure_of(tested.poll(server, &mut attempt, false));
    assert!(failure.kind.to_string().contains("did not answer in time"));
}

#[test]
fn an_answer_of_the_resolver_that_comes_too_late_changes_nothing() {
    let (mut tested, server) = Tested::new("db7:9".into());
    assert!(tested.poll(server, &mut None, false).is_pending());
    let late = tested.servers.take_to_resolve();
    tested.pass(DEADLINE);
    let (now, endpoint) = (tested.now, &mut tested.endpoint);
    tested.servers.resolved(now, endpoint, &late[0], Ok(addresses(2)));
    assert!(tested.running().is_empty());
}

#[test]
fn the_next_address_is_tried_when_one_fails_or_has_not_answered_for_some_time() {
    let (mut tested, server) = Tested::new(Address::resolved("db7", addresses(3)));
    let mut attempt = None;
    assert!(tested.poll(server, &mut attempt, false).is_pending());
    assert_eq!(tested.running().len(), 1);
    tested.pass(Duration::from_millis(99));
    assert_eq!(tested.running().len(), 1);
    tested.pass(Duration::from_millis(1));
    assert_eq!(tested.running().len(), 2);
    // One of two that run: the third waits for its turn.
    tested.fail(tested.running()[0]);
    assert_eq!(tested.running().len(), 1);
    tested.fail(tested.running()[0]);
    assert_eq!(tested.running().len(), 1, "the third at once");
    tested.fail(tested.running()[0]);
    failure_of(tested.poll(server, &mut attempt, false));
}

#[test]
fn a_session_that_is_live_gives_the_other_addresses_up() {
    let (mut tested, server) = Tested::new(Address::resolved("db7", addresses(2)));
    assert!(tested.poll(server, &mut None, false).is_pending());
    tested.pass(Duration::from_millis(100));
    let running = tested.running();
    assert_eq!(running.len(), 2);
    let session = SessionIndex(7);
    let (now, endpoint) = (tested.now, &mut tested.endpoint);
    let unwanted = tested.servers.finish(now, endpoint, running[1], Ok(session));
    assert_eq!(unwanted, None);
    assert!(tested.running().is_empty());
    // The other has come to an end at the same moment.
    let (now, endpoint) = (tested.now, &mut tested.endpoint);
    let late = tested.servers.finish(now, endpoint, running[0], Ok(SessionIndex(8)));
    assert_eq!(late, Some(SessionIndex(8)));
}

#[test]
fn callers_fail_at_once_after_a_failure_until_some_time_has_passed_or_one_is_urgent() {
    let (mut tested, server) = Tested::new(addresses(1)[0].into());
    let mut attempt = None;
    assert!(tested.poll(server, &mut attempt, false).is_pending());
    tested.fail(tested.running()[0]);
    for _ in 0..1_000 {
        failure_of(tested.poll(server, &mut None, false));
    }
    assert!(tested.running().is_empty());
    assert!(tested.poll(server, &mut None, true).is_pending());
    tested.fail(tested.running()[0]);
    tested.pass(Duration::from_secs(1));
    assert!(tested.poll(server, &mut None, false).is_pending());
    assert_eq!(tested.running().len(), 1);
}

#[test]
fn a_silent_server_fails_the_attempt_by_its_deadline() {
    let (mut tested, server) = Tested::new(addresses(1)[0].into());
    let mut attempt = None;
    assert!(tested.poll(server, &mut attempt, false).is_pending());
    tested.pass(DEADLINE);
    tested.pass(DEADLINE);
    failure_of(tested.poll(server, &mut attempt, false));
    assert_eq!(tested.servers.due(), None);
}

#[test]
fn a_server_that_nobody_uses_leaves_no_trace() {
    let (mut tested, server) = Tested::new(addresses(1)[0].into());
    assert!(tested.poll(server, &mut None, false).is_pending());
    tested.servers.remove(server, &mut tested.endpoint);
    assert!(tested.servers.of.is_empty() && tested.servers.due().is_none());
    let failure = failure_of(tested.poll(server, &mut None, false));
    assert_eq!(failure, Failure::of(ConnectError::ShutDown));
}

#[test]
fn all_servers_of_a_pool_are_tried_at_once_by_one_attempt_each() {
    let (mut tested, pool) = Tested::pool(3);
    for _ in 0..20 {
        assert!(tested.poll(pool, &mut None, false).is_pending());
        assert_eq!(tested.running().len(), 3);
    }
}

#[test]
fn a_message_waits_for_the_pools_other_servers_and_fails_when_all_have_failed() {
    let (mut tested, pool) = Tested::pool(2);
    let mut attempt = None;
    assert!(tested.poll(pool, &mut attempt, false).is_pending());
    let running = tested.running();
    tested.fail(running[0]);
    assert!(tested.poll(pool, &mut attempt, false).is_pending());
    tested.fail(running[1]);
    let failure = failure_of(tested.poll(pool, &mut attempt, false));
    assert_eq!(failure.kind, ConnectError::NoServer.into());
}

#[test]
fn a_server_of_a_pool_that_has_failed_is_tried_again_after_some_time_and_once() {
    let (mut tested, pool) = Tested::pool(2);
    assert!(tested.poll(pool, &mut None, false).is_pending());
    for connect in tested.running() {
        tested.fail(connect);
    }
    for _ in 0..1_000 {
        failure_of(tested.poll(pool, &mut None, false));
    }
    assert!(tested.running().is_empty());
    tested.pass(Duration::from_secs(1));
    for _ in 0..10 {
        assert!(tested.poll(pool, &mut None, false).is_pending());
        assert_eq!(tested.running().len(), 2);
    }
}

#[test]
fn a_message_that_waits_is_failed_though_others_begin_further_attempts_of_a_pool() {
    let (mut tested, pool) = Tested::pool(2);
    let mut attempt = None;
    let mut rounds = 0;
    while tested.poll(pool, &mut attempt, false).is_pending() {
        // One has always failed just now, and the other is always being tried.
        let first = tested.running()[0];
        tested.fail(first);
        tested.pass(Duration::from_secs(1));
        let _ = tested.poll(pool, &mut None, false);
        rounds += 1;
        assert!(rounds < 10, "it waits for ever");
    }
}

#[test]
fn a_pool_is_tried_at_once_by_a_caller_that_is_urgent() {
    let (mut tested, pool) = Tested::pool(2);
    assert!(tested.poll(pool, &mut None, false).is_pending());
    for connect in tested.running() {
        tested.fail(connect);
    }
    let mut attempt = None;
    assert!(tested.poll(pool, &mut attempt, true).is_pending());
    for connect in tested.running() {
        tested.fail(connect);
    }
    failure_of(tested.poll(pool, &mut attempt, true));
}

#[test]
fn a_pool_that_nobody_uses_leaves_no_trace() {
    let (mut tested, pool) = Tested::pool(2);
    let before = tested.servers.of.len();
    assert!(tested.poll(pool, &mut None, false).is_pending());
    tested.servers.remove(pool, &mut tested.endpoint);
    assert_eq!(tested.servers.of.len(), before - 2);
    assert!(tested.servers.pools.is_empty() && tested.servers.due().is_none());
    let failure = failure_of(tested.poll(pool, &mut None, false));
    assert_eq!(failure, Failure::of(ConnectError::ShutDown));
}

#[test]
fn a_pool_that_is_retired_calls_nobody() {
    let (mut tested, pool) = Tested::pool(2);
    tested.servers.retire_server(pool);
    let failure = failure_of(tested.poll(pool, &mut None, false));
    assert_eq!(failure, Failure::of(ConnectError::ShutDown));
    assert!(tested.running().is_empty());
}
