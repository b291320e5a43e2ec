// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A caller that sends many requests at once, and acknowledges no reply: the requests were taken in
//! a moment in which nothing was kept for it, and those that were not answered yet wait (SPEC §10).

use std::time::Duration;

use smt::polled::{Endpoint, Event, SessionIndex};
use smt::{Builder, Request, TlsServer};

use crate::support::{Credentials, on_every_runtime};

const KIB: usize = 1024;
const CALLS: u64 = 200;
const REPLY: usize = 100 * KIB;
/// A quarter of the memory, and the reply that passes it.
const KEPT: usize = 1024 * KIB / REPLY + 1;

fn server(credentials: &Credentials) -> Builder<TlsServer> {
    let small = |config: &mut smt::TransportConfig| config.memory_max = 4 * 1024 * KIB;
    credentials.server().message_limit(4 << 20).configure(small)
}

fn client(credentials: &Credentials, server: std::net::SocketAddr) -> Endpoint {
    let mut client = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let deadline = Duration::from_secs(5);
    client.connect(server, "localhost", deadline).unwrap();
    client
}

/// The session, once it is there.
fn connected(client: &mut Endpoint) -> Option<SessionIndex> {
    client.process().unwrap();
    match client.next_event()? {
        Event::Connected { session, .. } => Some(session),
        other => panic!("{other:?}"),
    }
}

fn call_many(client: &mut Endpoint, session: SessionIndex) {
    client.cork();
    for _ in 0..CALLS {
        client.call(session, "much", None).unwrap();
    }
    client.flush();
}

/// Takes what has come; how many replies are among it.
fn replies(client: &mut Endpoint) -> u64 {
    client.process().unwrap();
    let mut count = 0;
    while let Some(event) = client.next_event() {
        match event {
            Event::Reply { body, .. } => assert_eq!(body.len(), REPLY),
            other => panic!("{other:?}"),
        }
        count += 1;
    }
    count
}

#[test]
fn a_polled_server_bounds_replies_that_are_not_acknowledged() {
    let credentials = Credentials::new();
    let mut server = server(&credentials).bind_polled("127.0.0.1:0").unwrap();
    let mut client = client(&credentials, server.local_address());
    let mut answered = 0;
    let mut serve = |server: &mut Endpoint| {
        server.process().unwrap();
        while let Some(event) = server.next_event() {
            if let Event::Request { rpc, .. } = event {
                server.reply(rpc, vec![1; REPLY]).unwrap();
                answered += 1;
            }
        }
        answered
    };
    let session = loop {
        serve(&mut server);
        if let Some(session) = connected(&mut client) {
            break session;
        }
    };
    call_many(&mut client, session);
    while server.statistics().protocol.messages_delivered < CALLS {
        serve(&mut server);
    }
    assert_eq!(serve(&mut server), KEPT);
    let mut missing = CALLS;
    while missing > 0 {
        serve(&mut server);
        missing -= replies(&mut client);
    }
    assert_eq!(serve(&mut server), CALLS as usize);
}

#[test]
fn a_server_of_tasks_bounds_replies_that_are_not_acknowledged() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = server(&credentials).bind("127.0.0.1:0").await.unwrap();
        let mut client = client(&credentials, server.local_address());
        let session = loop {
            tokio::task::yield_now().await;
            if let Some(session) = connected(&mut client) {
                break session;
            }
        };
        call_many(&mut client, session);
        while server.statistics().protocol.messages_delivered < CALLS {
            tokio::task::yield_now().await;
        }
        let mut answered = 0;
        let answer = |request: Request| request.reply(vec![1; REPLY]).unwrap();
        for _ in 0..2 * CALLS {
            let request = tokio::select! {
                biased;
                request = server.accept_request() => request,
                () = std::future::ready(()) => None,
            };
            answered += request.into_iter().map(answer).count();
            // A reply that found another thread at work is counted when that one is done.
            while server.statistics().protocol.messages_sent < answered as u64 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(answered, KEPT);
        // From here on it waits, and is woken by acknowledgements.
        let serving = tokio::spawn(async move {
            while answered < CALLS as usize {
                answer(server.accept_request().await.unwrap());
                answered += 1;
            }
            server
        });
        let mut missing = CALLS;
        while missing > 0 {
            tokio::task::yield_now().await;
            missing -= replies(&mut client);
        }
        serving.await.unwrap();
    });
}
