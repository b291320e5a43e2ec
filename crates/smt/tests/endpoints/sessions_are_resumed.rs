// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that comes back resumes its session, with a fresh key exchange and the identities that
//! both sides had before (SPEC §6.10).

use smt::{Builder, ClientAuth, Failure, Peer, Statistics, TlsClient, TlsServer, blocking};

use crate::support::{Credentials, assert_echo, echo, on_every_runtime, serve};

fn server(credentials: &Credentials) -> Builder<TlsServer> {
    let trust = credentials.authority().trust().unwrap();
    let server = credentials.server().sessions_memory(MEMORY);
    server.client_auth(ClientAuth::Required(trust))
}

fn client(credentials: &Credentials) -> Builder<TlsClient> {
    let identity = credentials.authority().client("writer").unwrap();
    credentials.client().identity(identity)
}

/// Serves the client of that name alone.
fn writers_alone(peer: &Peer) -> Result<(), Failure> {
    let certificate = peer.certificate();
    match certificate.and_then(|certificate| certificate.common_name.as_deref()) {
        Some("writer") => Ok(()),
        name => Err(Failure::refusal(403, format!("{name:?} is no writer"))),
    }
}

/// Sessions that have begun, and those among them that were resumed.
fn counted(statistics: &Statistics) -> (u64, u64) {
    let protocol = &statistics.protocol;
    (protocol.sessions_begun, protocol.sessions_resumed)
}

/// Ends the session of the client, whose next call begins another.
fn end_session(client: &blocking::Client) -> bool {
    let session = client.connect().unwrap();
    session.close();
    session.peer().is_resumed
}

// SMT [6.10-10]
#[test]
fn a_client_of_threads_comes_back_with_its_certificate_and_is_authorized_again() {
    let credentials = Credentials::new();
    let server = server(&credentials).authorize(writers_alone);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| {
        let peer = request.peer();
        let name = peer.certificate().unwrap().common_name.clone().unwrap();
        let is_resumed = u8::from(peer.is_resumed);
        request.reply([name.as_bytes(), &[is_resumed]].concat()).unwrap();
    });
    let client = client(&credentials);
    let client = client.connect_blocking(server.local_address()).unwrap();
    for begun in 0..4 {
        let reply = client.call("who am I?").wait().unwrap();
        let (is_resumed, name) = reply.split_last().unwrap();
        assert_eq!(name, b"writer");
        assert_eq!(*is_resumed != 0, begun > 0);
        assert_eq!(end_session(&client), begun > 0);
    }
    assert_eq!(counted(&client.statistics()), (4, 3));
    assert_eq!(counted(&server.statistics()), (4, 3));
}

// SMT [6.10-10]
#[test]
fn a_rule_that_a_client_no_longer_meets_refuses_its_resumed_session() {
    let credentials = Credentials::new();
    let server = server(&credentials).authorize(|peer| match peer.is_resumed {
        false => Ok(()),
        true => Err(Failure::refusal(403, "not any more")),
    });
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let client = client(&credentials);
    let client = client.connect_blocking(server.local_address()).unwrap();
    assert_echo(&client, "hi");
    assert!(!end_session(&client));
    let error = client.call("hi").wait().unwrap_err();
    assert!(error.to_string().contains("not any more"), "{error}");
}

#[test]
fn a_client_of_tasks_comes_back_by_resumption() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = server(&credentials).bind("127.0.0.1:0").await.unwrap();
        let serving = server.clone();
        tokio::spawn(async move {
            while let Some(request) = serving.accept_request().await {
                echo(request);
            }
        });
        let client = client(&credentials);
        let client = client.connect(server.local_address()).await.unwrap();
        for begun in 0..3 {
            assert_eq!(client.call("hi").await.unwrap(), "hi");
            let session = client.connect().await.unwrap();
            assert_eq!(session.peer().is_resumed, begun > 0);
            session.close();
        }
        assert_eq!(counted(&client.statistics()), (3, 2));
        assert_eq!(counted(&server.statistics()), (3, 2));
    });
}

/// Shards have their memory in common: a session of one is resumed with another.
#[test]
fn sessions_are_resumed_at_every_shard_of_a_server() {
    let credentials = Credentials::new();
    let shards = credentials
        .server()
        .sessions_memory(MEMORY)
        .bind_shards_blocking("127.0.0.1:0", 2)
        .unwrap();
    shards.iter().for_each(|shard| serve(shard, 1, echo));
    let client = credentials.client();
    let client = client.connect_blocking(shards[0].local_address()).unwrap();
    for begun in 0..6 {
        assert_echo(&client, "hi");
        assert_eq!(end_session(&client), begun > 0);
    }
    let resumed = shards.iter().map(|shard| counted(&shard.statistics()).1);
    assert_eq!(resumed.sum::<u64>(), 5);
}

// SMT [6.10-9]
#[test]
fn a_server_with_a_new_certificate_or_trust_is_met_by_a_full_handshake() {
    let credentials = Credentials::new();
    let server = server(&credentials).bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, echo);
    let client = client(&credentials);
    let client = client.connect_blocking(server.local_address()).unwrap();
    let come_back = || {
        assert_echo(&client, "hi");
        end_session(&client)
    };
    assert_eq!([come_back(), come_back()], [false, true]);
    let identity = credentials.authority().server(&["localhost"]).unwrap();
    server.set_identity(identity).unwrap();
    assert_eq!([come_back(), come_back()], [false, true]);
    server.set_client_auth(ClientAuth::None).unwrap();
    assert_eq!([come_back(), come_back()], [false, true]);
    let others = Credentials::new().authority().trust().unwrap();
    server.set_client_auth(ClientAuth::Required(others)).unwrap();
    assert!(client.call("hi").wait().is_err(), "it is not trusted any more");
}

// SMT [6.10-3]
#[test]
fn either_side_can_do_without() {
    let credentials = Credentials::new();
    for at_server in [true, false] {
        let (mut server, mut client) = (credentials.server(), credentials.client());
        if !at_server {
            server = server.sessions_memory(MEMORY);
            client = client.sessions_memory(0);
        }
        let server = server.bind_blocking("127.0.0.1:0").unwrap();
        serve(&server, 1, echo);
        let client = client.connect_blocking(server.local_address()).unwrap();
        for _ in 0..2 {
            assert_echo(&client, "hi");
            assert!(!end_session(&client));
        }
        assert_eq!(counted(&server.statistics()), (2, 0));
    }
}

const MEMORY: usize = 1 << 20;
