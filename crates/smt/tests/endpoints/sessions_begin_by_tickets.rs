// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that have a server's ticket begin sessions by it, and all others by TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use smt::{
    ClientAuth, IssuedTicket, TicketIssuer, TicketKeys, TicketPlan, TicketStore, TicketVerifier,
    WallTime, blocking,
};

use crate::support::{Credentials, echo, serve};

const NAME: &str = "localhost";

fn now() -> WallTime {
    WallTime::from_secs(UNIX_EPOCH.elapsed().unwrap().as_secs())
}

/// A ticket of the server: its key, and a store that has it.
fn ticket(credentials: &Credentials, plan: TicketPlan) -> (TicketKeys, TicketStore) {
    let identity = credentials.authority().server(&[NAME]).unwrap();
    let issuer = TicketIssuer::new(&identity, plan).unwrap();
    let IssuedTicket { ticket, chain, key } = issuer.issue(now()).unwrap();
    let (keys, store) = (TicketKeys::new(), TicketStore::new());
    keys.add(key, now());
    let verifier = TicketVerifier::new(credentials.authority().trust().unwrap()).unwrap();
    let verified = verifier.verify(ticket.as_bytes(), &chain, NAME, now());
    store.insert(verified.unwrap());
    (keys, store)
}

/// A call to the server: the reply proves the session.
fn call(client: &blocking::Client) {
    let reply = client.call("by ticket").wait().unwrap();
    assert_eq!(reply.as_ref(), b"by ticket");
}

fn server(credentials: &Credentials, keys: TicketKeys) -> (blocking::Server, SocketAddr) {
    let builder = credentials.server().tickets(keys);
    let server = builder.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let address = server.local_address();
    (server, address)
}

#[test]
fn a_client_with_a_ticket_is_connected_by_it() {
    let credentials = Credentials::new();
    let (keys, store) = ticket(&credentials, TicketPlan::new([NAME]));
    let (_server, address) = server(&credentials, keys);
    for (before, has_forward_secrecy) in [(0, true), (1, false)] {
        assert_eq!(store.handshakes(), before);
        let client = credentials.client().tickets(store.clone());
        let client = client.forward_secrecy(has_forward_secrecy);
        let client = client.connect_blocking(address).unwrap();
        call(&client);
        assert_eq!(store.len(), 1, "the ticket was taken");
        assert_eq!(store.handshakes(), before + 1);
    }
}

#[test]
fn a_trust_that_tickets_refuse_changes_nothing_for_tls_either() {
    let credentials = Credentials::new();
    let (keys, _) = ticket(&credentials, TicketPlan::new([NAME]));
    let (server, address) = server(&credentials, keys);
    let key = smt::pki::RawKey::new(smt::pki::KeyKind::default()).unwrap();
    let keys_alone = smt::Trust::pinned_from_pem(key.public_key_pem.as_bytes()).unwrap();
    let error = server.set_client_auth(ClientAuth::Required(keys_alone)).unwrap_err();
    assert!(error.to_string().contains("tickets go by certificates"), "{error}");
    call(&credentials.client().connect_blocking(address).unwrap());
}

#[test]
fn another_trust_forgets_the_tickets_of_the_one_before() {
    let credentials = Credentials::new();
    let (keys, store) = ticket(&credentials, TicketPlan::new([NAME]));
    let (_server, address) = server(&credentials, keys);
    let client = credentials.client().tickets(store.clone()).connect_blocking(address).unwrap();
    call(&client);
    let old = store.get(NAME, now()).unwrap();
    client.set_trust(Credentials::new().authority().trust().unwrap()).unwrap();
    assert_eq!(store.len(), 0);
    let error = client.call("by ticket").wait().unwrap_err();
    assert!(error.to_string().contains("unknown issuer"), "{error}");
    // A verifier that was told of no other trust puts it back.
    store.insert((*old).clone());
    let error = client.connect().unwrap_err();
    assert!(error.to_string().contains("unknown issuer"), "{error}");
    assert_eq!((store.len(), store.handshakes()), (0, 1));
}

/// A client of a ticket that permits early data, which connects with its first call, and the
/// server's count of requests.
fn early_client(
    credentials: &Credentials,
) -> (blocking::Client, blocking::Server, Arc<AtomicUsize>) {
    let plan = TicketPlan { takes_early_data: true, ..TicketPlan::new([NAME]) };
    let (keys, store) = ticket(credentials, plan);
    let server = credentials.server().tickets(keys);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    serve(&server, 1, move |request| {
        counted.fetch_add(1, Ordering::SeqCst);
        match request.body().as_ref() {
            b"were you early?" => {
                let answer = request.is_early().to_string();
                request.reply(answer).unwrap();
            }
            _ => echo(request),
        }
    });
    let client = credentials.client().tickets(store);
    let endpoint = client.open_blocking("127.0.0.1:0").unwrap();
    let client = endpoint.client(server.local_address()).unwrap();
    (client, server, count)
}

#[test]
fn the_call_that_connects_may_be_early() {
    let credentials = Credentials::new();
    let (client, server, count) = early_client(&credentials);
    for _ in 0..3 {
        let reply = client.call("early").early_data().wait().unwrap();
        assert_eq!(reply.as_ref(), b"early");
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
    // The first alone: there is a session for the others.
    assert_eq!(client.statistics().protocol.early_requests, 1);
    assert_eq!(server.statistics().protocol.early_requests, 1);
}

#[test]
fn both_ends_are_told_which_request_was_early() {
    let credentials = Credentials::new();
    let (client, _server, _count) = early_client(&credentials);
    for is_early in [true, false] {
        let call = client.call("were you early?").early_data();
        let reply = call.wait_reply().unwrap();
        assert_eq!(reply.was_early, is_early);
        assert_eq!(reply.body, is_early.to_string());
    }
}

#[test]
fn many_calls_that_wait_for_one_session_run_once_each() {
    let credentials = Credentials::new();
    let (client, _server, count) = early_client(&credentials);
    std::thread::scope(|scope| {
        for number in 0..20_u8 {
            let client = &client;
            scope.spawn(move || {
                let reply = client.call(vec![number]).early_data().wait().unwrap();
                assert_eq!(reply.as_ref(), [number]);
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 20);
}

#[test]
fn an_early_call_to_a_server_without_tickets_is_made_by_tls() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let client = credentials.client();
    let endpoint = client.open_blocking("127.0.0.1:0").unwrap();
    let client = endpoint.client(server.local_address()).unwrap();
    let reply = client.call("early").early_data().wait().unwrap();
    assert_eq!(reply.as_ref(), b"early");
}

#[test]
fn an_early_call_that_is_dropped_leaves_the_connect_to_others() {
    let credentials = Credentials::new();
    let (client, _server, _) = early_client(&credentials);
    let brief = client.call("dropped").early_data();
    let brief = brief.deadline(Duration::from_nanos(1)).wait();
    assert!(brief.is_err());
    let reply = client.call("early").early_data().wait().unwrap();
    assert_eq!(reply.as_ref(), b"early");
}

#[tokio::test]
async fn a_task_has_its_first_reply_early() {
    let credentials = Credentials::new();
    let plan = TicketPlan { takes_early_data: true, ..TicketPlan::new([NAME]) };
    let (keys, store) = ticket(&credentials, plan);
    let server = credentials.server().tickets(keys);
    let server = server.bind("127.0.0.1:0").await.unwrap();
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            echo(request);
        }
    });
    let endpoint = credentials.client().tickets(store);
    let endpoint = endpoint.open("127.0.0.1:0").await.unwrap();
    let client = endpoint.client(address).unwrap();
    let replies = [(); 5].map(|()| client.call("early").early_data());
    for reply in replies {
        assert_eq!(reply.await.unwrap().as_ref(), b"early");
    }
}

#[test]
fn a_server_that_does_not_know_a_ticket_is_reached_by_tls() {
    let credentials = Credentials::new();
    let (_, store) = ticket(&credentials, TicketPlan::new([NAME]));
    let (_server, address) = server(&credentials, TicketKeys::new());
    let client = credentials.client().tickets(store.clone());
    call(&client.connect_blocking(address).unwrap());
    assert!(store.is_empty(), "the ticket is not tried again");
    assert_eq!(store.handshakes(), 0);
}

#[test]
fn a_server_without_tickets_is_reached_by_tls() {
    let credentials = Credentials::new();
    let (_, store) = ticket(&credentials, TicketPlan::new([NAME]));
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let client = credentials.client().tickets(store);
    call(&client.connect_blocking(server.local_address()).unwrap());
}

#[test]
fn a_client_certificate_goes_with_the_ticket() {
    let credentials = Credentials::new();
    let authority = credentials.authority();
    let (keys, store) = ticket(
        &credentials,
        TicketPlan { requires_client_certificate: true, ..TicketPlan::new([NAME]) },
    );
    let required = ClientAuth::Required(authority.trust().unwrap());
    let server = credentials.server().client_auth(required).tickets(keys);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| {
        let shown = request.peer().certificates.len();
        request.reply(shown.to_string()).unwrap();
    });
    let alice = authority.client("alice").unwrap();
    let client = credentials.client().identity(alice).tickets(store);
    let client = client.connect_blocking(server.local_address()).unwrap();
    assert_eq!(client.call("").wait().unwrap().as_ref(), b"1");
}
