// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trust that is replaced ends the live sessions of peers that it does not accept.

use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smt::polled::Event;
use smt::{ClientAuth, Distrusted, Request, blocking};
use smt_io::{Epoll, Token};

use crate::certificates_are_revoked::{Fleet, identity};
use crate::support::{assert_echo, echo, eventually};

/// A server of a fleet whose requests come to the test.
struct Held {
    fleet: Fleet,
    server: blocking::Server,
    requests: mpsc::Receiver<Request>,
}

impl Held {
    fn new(choice: Distrusted) -> Self {
        let fleet = Fleet::new();
        let server = smt::server(identity(&fleet.server)).distrusted(choice);
        let server = server.client_auth(fleet.clients_by(fleet.list(&[])));
        let server = server.bind_blocking("127.0.0.1:0").unwrap();
        let (held, requests) = mpsc::channel();
        let accepting = server.clone();
        std::thread::spawn(move || {
            while let Some(request) = accepting.accept_request() {
                match request.body() == "hold" {
                    true => held.send(request).unwrap(),
                    false => echo(request),
                }
            }
        });
        Self { fleet, server, requests }
    }

    fn revoke(&self, client: usize) {
        let list = self.fleet.list(&[&self.fleet.clients[client]]);
        self.server.set_client_auth(self.fleet.clients_by(list)).unwrap();
    }
}

// SMT [10-22]
#[test]
fn a_client_that_is_revoked_is_out_at_once_and_others_stay() {
    let held = Held::new(Distrusted::default());
    let alice = held.fleet.connect(&held.server, 0).unwrap();
    let bob = held.fleet.connect(&held.server, 1).unwrap();
    let session_of_bob = bob.connect().unwrap();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| alice.call("hold").wait());
        let request = held.requests.recv().unwrap();
        held.revoke(0);
        let error = calling.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("is accepted no more"), "{error}");
        assert!(request.reply("nobody hears it").is_err());
    });
    let error = alice.call("hi").wait().unwrap_err().to_string();
    assert!(error.contains("refused this client's certificate: revoked"), "{error}");
    assert_echo(&bob, "hi");
    assert_eq!(bob.connect().unwrap(), session_of_bob);
    let statistics = held.server.statistics();
    assert_eq!((statistics.sessions, statistics.sessions_distrusted), (1, 1));
}

/// The server has answered by its trust of then, and the client, which is polled here, takes the
/// answer up only after it was revoked.
// SMT [10-22]
#[test]
fn a_client_that_is_revoked_while_its_handshake_goes_on_is_out_too() {
    let held = Held::new(Distrusted::default());
    let alice = smt::client(held.fleet.trust()).identity(identity(&held.fleet.clients[0]));
    let mut alice = alice.open_polled("127.0.0.1:0").unwrap();
    let epoll = Epoll::new().unwrap();
    epoll.add(alice.as_fd(), Token(0)).unwrap();
    let wait = || {
        let ready = epoll.wait(&mut [Token(9)], Some(Duration::from_secs(5)));
        assert_eq!(ready.unwrap(), 1, "nothing is ready, and something must be");
    };
    let limit = Duration::from_secs(5);
    let sent = || held.server.statistics().socket.unwrap().send_calls;
    let before = sent();
    alice.connect(held.server.local_address(), "127.0.0.1", limit).unwrap();
    alice.flush();
    eventually("the server answers", || sent() > before);
    held.revoke(0);
    let mut connected = false;
    loop {
        match alice.next_event() {
            Some(Event::Connected { session, .. }) => {
                connected = true;
                // It may be out already.
                if alice.call(session, "hi", None).is_err() {
                    break;
                }
            }
            Some(Event::CallFailed { .. } | Event::SessionEnded { .. }) => break,
            Some(other) => panic!("{other:?}"),
            None => {
                wait();
                alice.process().unwrap();
            }
        }
    }
    assert!(connected, "the handshake ended by the trust of then");
    assert_eq!(held.server.statistics().sessions_distrusted, 1);
}

// SMT [10-22], [10-20]
#[test]
fn calls_of_a_revoked_client_may_finish_and_nothing_more_begins() {
    let held = Held::new(Distrusted::Finish);
    let alice = held.fleet.connect(&held.server, 0).unwrap();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| alice.call("hold").wait());
        let request = held.requests.recv().unwrap();
        held.revoke(0);
        assert!(alice.call("more").wait().is_err(), "nothing more begins");
        request.reply("in time").unwrap();
        assert_eq!(calling.join().unwrap().unwrap(), "in time");
    });
    eventually("the session closes", || held.server.statistics().sessions == 0);
}

#[test]
fn a_handler_learns_that_the_session_of_its_revoked_client_ends() {
    let held = Held::new(Distrusted::Finish);
    let alice = held.fleet.connect(&held.server, 0).unwrap();
    let bob = held.fleet.connect(&held.server, 1).unwrap();
    std::thread::scope(|scope| {
        let calls = [&alice, &bob].map(|client| {
            let call = scope.spawn(|| client.call("hold").wait());
            (call, held.requests.recv().unwrap())
        });
        let [(alices, watch), (bobs, other)] = calls;
        let (closing, others) = (watch.closing(), other.closing());
        assert!(!watch.is_closing() && !other.is_closing());
        let waiting = scope.spawn(|| tokio_runtime().block_on(closing));
        held.revoke(0);
        waiting.join().unwrap();
        assert!(watch.is_closing() && !other.is_closing());
        watch.reply("that is all").unwrap();
        assert_eq!(alices.join().unwrap().unwrap(), "that is all");
        assert_eq!(pin!(others).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        other.reply("goes on").unwrap();
        assert_eq!(bobs.join().unwrap().unwrap(), "goes on");
    });
    eventually("the session closes", || held.server.statistics().sessions == 1);
    assert_echo(&bob, "hi");
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

#[test]
fn sessions_are_kept_where_that_is_chosen() {
    let held = Held::new(Distrusted::Keep);
    let alice = held.fleet.connect(&held.server, 0).unwrap();
    held.revoke(0);
    assert_echo(&alice, "its session lives");
    assert!(held.fleet.connect(&held.server, 0).is_err());
    assert_eq!(held.server.statistics().sessions_distrusted, 1, "it is counted");
}

#[test]
fn clients_without_a_certificate_are_out_when_one_is_required() {
    let fleet = Fleet::new();
    let shards = smt::server(identity(&fleet.server)).bind_shards_blocking("127.0.0.1:0", 2);
    let shards = shards.unwrap();
    shards.iter().for_each(|shard| crate::support::serve(shard, 1, echo));
    let address = shards[0].local_address();
    let anonymous = smt::client(fleet.trust()).connect_shards_blocking(address, 2).unwrap();
    anonymous.iter().for_each(|client| assert_echo(client, "hi"));
    let alice = smt::client(fleet.trust()).identity(identity(&fleet.clients[0]));
    shards[1].set_client_auth(ClientAuth::Optional(fleet.trust())).unwrap();
    anonymous.iter().for_each(|client| assert_echo(client, "not asked"));
    let alice = alice.connect_blocking(address).unwrap();
    assert_echo(&alice, "hi");
    shards[0].set_client_auth(ClientAuth::Required(fleet.trust())).unwrap();
    for client in anonymous.iter() {
        // A call may leave before CLOSE has come.
        let errors = std::iter::repeat_with(|| client.call("hi").wait().unwrap_err().to_string());
        let error = errors.take(2).last().unwrap();
        assert!(error.contains("requires a certificate"), "{error}");
    }
    assert_echo(&alice, "hi");
}

/// One endpoint has sessions with a server that is trusted on and with one that is not.
#[test]
fn a_client_ends_its_session_with_a_server_that_is_revoked_and_with_no_other() {
    let fleet = Fleet::new();
    let [revoked, other] = [&fleet.server, &fleet.server_of_localhost].map(|of| {
        let server = smt::server(identity(of)).bind_blocking("127.0.0.1:0").unwrap();
        crate::support::serve(&server, 1, echo);
        server
    });
    let endpoint = smt::client(fleet.trust()).open_blocking("127.0.0.1:0").unwrap();
    let to_revoked = endpoint.client(revoked.local_address()).unwrap();
    let port = other.local_address().port();
    let to_other = endpoint.client(format!("localhost:{port}")).unwrap();
    assert_echo(&to_revoked, "hi");
    let session = to_other.connect().unwrap();
    let list = fleet.list(&[&fleet.server]);
    endpoint.set_trust(fleet.trust().with_revocation_lists(list)).unwrap();
    let error = to_revoked.call("hi").wait().unwrap_err().to_string();
    assert!(error.contains("the server's certificate is revoked"), "{error}");
    assert_echo(&to_other, "hi");
    assert_eq!(to_other.connect().unwrap(), session);
    assert_eq!(endpoint.statistics().sessions_distrusted, 1);
}

#[test]
fn the_owner_of_a_polled_endpoint_judges_its_peers_itself() {
    let fleet = Fleet::new();
    let server = smt::server(identity(&fleet.server_of_localhost));
    let server = server.client_auth(fleet.clients_by(fleet.list(&[])));
    let choosing = server.clone().distrusted(Distrusted::End).bind_polled("127.0.0.1:0");
    let error = choosing.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("`distrusted` is not for polled endpoints"), "{error:?}");
    let mut server = server.bind_polled("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let alice = smt::client(fleet.trust()).identity(identity(&fleet.clients[0]));
    let connecting = std::thread::spawn(move || {
        let alice = alice.server_name("localhost").connect_blocking(address).unwrap();
        alice.call("hi").wait().unwrap_err().to_string()
    });
    let (session, peer) = loop {
        match server.next_event() {
            Some(Event::Accepted { session, peer, .. }) => break (session, peer),
            _ => server.process().unwrap(),
        }
    };
    server.check_peer(&peer).unwrap();
    let list = fleet.list(&[&fleet.clients[0]]);
    server.set_client_auth(fleet.clients_by(list)).unwrap();
    let why = server.check_peer(&peer).unwrap_err();
    assert!(why.text.contains("the client's certificate is revoked"), "{}", why.text);
    server.expire(session);
    while !connecting.is_finished() {
        while server.next_event().is_some() {}
        server.process().unwrap();
    }
    let error = connecting.join().unwrap();
    let told = ["is accepted no more", "revoked", "shutting down"];
    assert!(told.iter().any(|words| error.contains(words)), "{error}");
}
