// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Polled endpoints: client and server in one thread, in one foreign event loop.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use smt::polled::{Endpoint, Event, RpcId};
use smt::{CallFailure, CloseCode, ConnectError, Execution, Failure, Refused, SessionEnd};
use smt_io::{Epoll, Token};

use crate::support::payload::payload;
use crate::support::{Credentials, within};

/// Both ends and the loop that they share.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    epoll: Epoll,
}

impl Pair {
    fn new() -> Self {
        let credentials = Credentials::new();
        let server = credentials.server().bind_polled("127.0.0.1:0").unwrap();
        let client = credentials.client().open_polled("127.0.0.1:0").unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(client.as_fd(), Token(0)).unwrap();
        epoll.add(server.as_fd(), Token(1)).unwrap();
        Self { client, server, epoll }
    }

    fn connect(&mut self) -> smt::polled::SessionIndex {
        let remote = self.server.local_address();
        let deadline = Duration::from_secs(5);
        self.client.connect(remote, "localhost", deadline).unwrap();
        loop {
            let (ours, theirs) = self.turn();
            let accepted = |event: &Event| matches!(event, Event::Accepted { .. });
            assert!(theirs.iter().all(accepted));
            match ours.as_slice() {
                [] => {}
                [Event::Connected { session, .. }] => return *session,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits, processes what is ready, and tells the events of client and server.
    fn turn(&mut self) -> (Vec<Event>, Vec<Event>) {
        let mut ready = [Token(9); 2];
        let count = self.epoll.wait(&mut ready, Some(Duration::from_secs(5))).unwrap();
        assert!(count > 0, "nothing is ready, and something must be");
        for token in &ready[..count] {
            let endpoint = if token.0 == 0 { &mut self.client } else { &mut self.server };
            endpoint.process().unwrap();
        }
        let ours = std::iter::from_fn(|| self.client.next_event()).collect();
        let theirs = std::iter::from_fn(|| self.server.next_event()).collect();
        (ours, theirs)
    }

    /// Turns until the server has something to tell.
    fn server_event(&mut self) -> Event {
        loop {
            if let Some(event) = self.turn().1.pop() {
                return event;
            }
        }
    }

    /// Turns until the client has something to tell.
    fn client_event(&mut self) -> Event {
        loop {
            if let Some(event) = self.turn().0.pop() {
                return event;
            }
        }
    }
}

/// Commands gather while events are drained. If they never are, the descriptor soon says that there
/// is something to do.
#[test]
fn gathered_commands_make_the_descriptor_readable() {
    let mut pair = Pair::new();
    let session = pair.connect();
    pair.client.call(session, "request", None).unwrap();
    let request = loop {
        let mut ready = [Token(9); 2];
        let count = pair.epoll.wait(&mut ready, Some(Duration::from_secs(5)));
        assert!(count.unwrap() > 0, "the request does not come");
        pair.server.process().unwrap();
        match pair.server.next_event() {
            Some(Event::Request { rpc, .. }) => break rpc,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    };
    // It is not asked for more.
    let sent = |pair: &Pair| pair.server.statistics().socket.unwrap().send_calls;
    let before = sent(&pair);
    pair.server.cork();
    pair.server.reply(request, "reply").unwrap();
    let only = Epoll::new().unwrap();
    only.add(pair.server.as_fd(), Token(1)).unwrap();
    let mut ready = [Token(9); 1];
    // After a millisecond, not when the next timer comes: of a session that waits for nothing
    // after 100.
    let count = only.wait(&mut ready, Some(Duration::from_millis(20)));
    // On a busy machine the 50 us of gathering may have passed.
    assert!(count.unwrap() == 1 || sent(&pair) > before);
    pair.server.process().unwrap();
    assert!(matches!(pair.client_event(), Event::Reply { .. }));
}

#[test]
fn calls_gather_and_leave_in_one_bundle() {
    let mut pair = Pair::new();
    let session = pair.connect();
    let sent = |pair: &Pair| pair.client.statistics().socket.unwrap().send_calls;
    let before = sent(&pair);
    pair.client.cork();
    for _ in 0..5 {
        pair.client.call(session, "request", None).unwrap();
    }
    pair.client.flush();
    let statistics = pair.client.statistics();
    // On a busy machine something leaves on the way, as after 50 us.
    assert!(sent(&pair) - before < 5);
    assert!(statistics.protocol.bundles_sent > 0);
    let mut replies = 0;
    while replies < 5 {
        let (ours, theirs) = pair.turn();
        replies += ours.len();
        for event in theirs {
            let Event::Request { rpc, body, .. } = event else {
                panic!("{event:?}");
            };
            pair.server.reply(rpc, body).unwrap();
        }
    }
}

fn refusal() -> Failure {
    Failure::refusal(403, "not for you")
}

fn refuse(server: &mut Endpoint, rpc: RpcId) -> Result<(), Refused> {
    server.fail(rpc, refusal())
}

#[test]
fn requests_are_answered_refused_dropped_and_cancelled() {
    let mut pair = Pair::new();
    let session = pair.connect();
    let body = payload(1, 3_000_000);
    let called = pair.client.call(session, body.clone(), None).unwrap();
    let Event::Request { rpc, body: got, .. } = pair.server_event() else { panic!("no request") };
    assert!(got == body);
    pair.server.reply(rpc, got).unwrap();
    let Event::Reply { rpc, body: got, .. } = pair.client_event() else { panic!("no reply") };
    assert!(rpc == called && got == body);

    let ends = [
        (
            refuse as fn(&mut Endpoint, _) -> _,
            CallFailure::Refused(Box::new(refusal())),
            Execution::DidNotRun,
        ),
        (Endpoint::drop_request, CallFailure::Dropped, Execution::MayHaveRun),
    ];
    for (end, failure, execution) in ends {
        pair.client.call(session, "x", None).unwrap();
        let Event::Request { rpc, .. } = pair.server_event() else { panic!("no request") };
        end(&mut pair.server, rpc).unwrap();
        let Event::CallFailed { error, .. } = pair.client_event() else { panic!("no failure") };
        assert_eq!((error.reason, error.execution), (failure, execution));
    }

    let called = pair.client.call(session, "x", None).unwrap();
    let Event::Request { rpc, .. } = pair.server_event() else { panic!("no request") };
    assert!(pair.client.cancel(called));
    assert!(!pair.client.cancel(called));
    let Event::Cancelled(cancelled) = pair.server_event() else { panic!("not cancelled") };
    assert_eq!(cancelled, rpc);
    assert!(pair.server.reply(rpc, "late").is_err());
}

#[test]
fn one_way_messages_and_calls_back_arrive() {
    let mut pair = Pair::new();
    let session = pair.connect();
    pair.client.send(session, "news").unwrap();
    let Event::OneWay { rpc, body, .. } = pair.server_event() else { panic!("no message") };
    assert_eq!(body, "news");
    let (mut is_done, mut request) = (false, None);
    pair.server.call(rpc.session, "and you?", None).unwrap();
    while !is_done || request.is_none() {
        for event in pair.turn().0 {
            match event {
                Event::OneWayDone { outcome, .. } => {
                    assert_eq!(outcome, smt::OneWayOutcome::Delivered);
                    is_done = true;
                }
                Event::Request { rpc, .. } => request = Some(rpc),
                other => panic!("{other:?}"),
            }
        }
    }
    pair.client.reply(request.unwrap(), "fine").unwrap();
    let Event::Reply { body, .. } = pair.server_event() else { panic!("no reply") };
    assert_eq!(body, "fine");
}

#[test]
fn timers_fire_without_traffic() {
    let mut pair = Pair::new();
    let session = pair.connect();
    // The server is not turned any more: only the client's timer can end this.
    let began = Instant::now();
    let deadline = Duration::from_millis(80);
    pair.client.call(session, "x", Some(deadline)).unwrap();
    let epoll = Epoll::new().unwrap();
    epoll.add(pair.client.as_fd(), Token(0)).unwrap();
    loop {
        let count = epoll.wait(&mut [Token(0)], Some(Duration::from_secs(5))).unwrap();
        assert_eq!(count, 1);
        pair.client.process().unwrap();
        if let Some(event) = pair.client.next_event() {
            let Event::CallFailed { error, .. } = event else { panic!("{event:?}") };
            assert_eq!(error.reason, CallFailure::DeadlineExceeded);
            break;
        }
    }
    let took = began.elapsed();
    assert!(took >= deadline && took < within(deadline * 4), "{took:?}");
}

#[test]
fn dropping_an_endpoint_closes_its_sessions_at_once() {
    let mut pair = Pair::new();
    let session = pair.connect();
    pair.client.call(session, "x", None).unwrap();
    let Event::Request { .. } = pair.server_event() else { panic!("no request") };
    let began = Instant::now();
    let credentials = Credentials::new();
    pair.client = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let mut ends = Vec::new();
    while ends.len() < 2 {
        pair.epoll.wait(&mut [Token(0)], Some(Duration::from_secs(5))).unwrap();
        pair.server.process().unwrap();
        ends.extend(std::iter::from_fn(|| pair.server.next_event()));
    }
    assert!(began.elapsed() < within(Duration::from_secs(1)));
    assert!(matches!(ends[0], Event::Cancelled(_)), "{ends:?}");
    let Event::SessionEnded { end, .. } = &ends[1] else { panic!("{ends:?}") };
    assert_eq!(*end, SessionEnd::ClosedByPeer(CloseCode::Done));
}

#[test]
fn a_connect_that_fails_is_an_event() {
    let credentials = Credentials::new();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = credentials.client().open_polled("127.0.0.1:0").unwrap();
    client.connect(free, "localhost", Duration::from_secs(5)).unwrap();
    let epoll = crate::support::polled_pair::watch(&client);
    loop {
        crate::support::polled_pair::turn(&mut client, &epoll);
        match client.next_event() {
            None => {}
            Some(Event::ConnectFailed { error, .. }) => {
                assert_eq!(error, ConnectError::NoServer);
                return;
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_idle_descriptor_is_quiet() {
    let mut pair = Pair::new();
    let session = pair.connect();
    pair.client.call(session, "x", None).unwrap();
    let Event::Request { rpc, body, .. } = pair.server_event() else { panic!("no request") };
    pair.server.reply(rpc, body).unwrap();
    pair.client_event();
    // Probes of the datagram size and the acknowledgement go on for a while; then there is nothing
    // to do.
    let mut turns = 0;
    let mut ready = [Token(9); 2];
    loop {
        let count = pair.epoll.wait(&mut ready, Some(Duration::from_millis(1_500))).unwrap();
        if count == 0 {
            break;
        }
        turns += 1;
        assert!(turns < 200, "it never rests");
        pair.client.process().unwrap();
        pair.server.process().unwrap();
    }
}

#[test]
fn an_event_of_a_command_makes_the_descriptor_readable() {
    let mut pair = Pair::new();
    let session = pair.connect();
    let rpc = pair.client.call(session, "never answered", None).unwrap();
    loop {
        let (_, theirs) = pair.turn();
        if theirs.iter().any(|event| matches!(event, Event::Request { .. })) {
            break;
        }
    }
    // Both ends are drained: nothing but the command makes it readable.
    assert!(pair.client.cancel(rpc));
    let alone = Epoll::new().unwrap();
    alone.add(pair.client.as_fd(), Token(0)).unwrap();
    let count = alone.wait(&mut [Token(9)], Some(Duration::from_secs(5)));
    assert_eq!(count.unwrap(), 1);
    pair.client.process().unwrap();
    let told = pair.client.next_event();
    assert!(matches!(told, Some(Event::CallFailed { .. })), "{told:?}");
}
