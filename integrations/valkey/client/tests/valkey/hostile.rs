// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that break the rules: their sessions end, and the server lives.

use std::net::UdpSocket;

use smt::{Identity, Session, Trust};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::server::{Server, ask, keys, say};

/// A session without the stream on top of it.
async fn session(server: &Server) -> (smt::Client, Session) {
    let trust = Trust::roots_from_pem_files(&[keys("ca.pem")]).expect("an authority");
    let identity = Identity::from_pem_files(keys("client.pem"), keys("client.key"));
    let builder = smt::client(trust).identity(identity.expect("a certificate"));
    let client = builder.connect(("127.0.0.1", server.smt)).await;
    let client = client.expect("a session");
    let session = client.connect().await.expect("it is live");
    (client, session)
}

fn message(position: u64, bytes: &[u8]) -> Vec<u8> {
    [&position.to_be_bytes()[..], bytes].concat()
}

#[tokio::test]
async fn messages_without_a_place_in_the_stream_end_their_session_alone() {
    let server = Server::start("").await;
    let mut other = server.smt().await;
    let bad: [&[Vec<u8>]; 5] = [
        // No header, no bytes, bytes that were there, overlapping bytes, a position that overflows.
        &[vec![1, 2, 3]],
        &[message(0, b"")],
        &[message(0, b"PING\r\n"), message(0, b"PING\r\n")],
        &[message(9, b"abc"), message(8, b"xyz")],
        &[message(u64::MAX, b"abc")],
    ];
    for messages in bad {
        let (_client, session) = session(&server).await;
        let calls = messages.iter().map(|message| {
            let call = session.call(message.clone());
            tokio::spawn(async move { call.await })
        });
        let mut texts = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            if let Err(error) = call.await.expect("no panic") {
                texts.push(error.to_string());
            }
        }
        assert!(
            texts.iter().any(|text| text.contains("closed the session")),
            "{messages:?}: {texts:?}"
        );
        assert_eq!(ask(&mut other, &["PING"]).await, b"+PONG\r\n");
    }
    assert!(server.log().contains("has no position in the stream"), "{}", server.log());
}

#[tokio::test]
async fn a_client_may_not_fill_the_memory_behind_a_gap() {
    let server = Server::start("").await;
    let (_client, session) = session(&server).await;
    let calls = (1..400).map(|place| {
        let call = session.call(message(place * 2, b"x"));
        tokio::spawn(async move { call.await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.expect("no panic").is_err());
    }
    assert!(server.log().contains("has sent more than may wait"), "{}", server.log());
    assert_eq!(ask(&mut server.smt().await, &["PING"]).await, b"+PONG\r\n");
}

#[tokio::test]
async fn garbage_is_answered_as_over_tcp() {
    let server = Server::start("").await;
    for garbage in [
        &b"*99999999999\r\n$3\r\n"[..],
        b"*1\r\n$-5\r\n",
        b"*1\r\nPING\r\n",
        b"\xff\x80 garbage\r\nQUIT\r\n",
        b"GET 'unbalanced\r\n",
        b"$5\r\nworld\r\nQUIT\r\n",
    ] {
        let over_smt = all_replies(&mut server.smt().await, garbage).await;
        let over_tcp = all_replies(&mut server.tcp().await, garbage).await;
        assert_eq!(over_smt, over_tcp, "{garbage:?}");
        assert!(!over_tcp.is_empty(), "{garbage:?}");
    }
    // Datagrams that are no packets.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for length in 0..1_500_usize {
        let datagram: Vec<u8> = (0..length).map(|place| (place * length) as u8).collect();
        socket.send_to(&datagram, ("127.0.0.1", server.smt)).expect("it is sent");
    }
    assert_eq!(ask(&mut server.smt().await, &["PING"]).await, b"+PONG\r\n");
}

/// All bytes until the server closes the connection.
async fn all_replies(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) -> String {
    say(stream, bytes).await;
    let mut read = Vec::new();
    let ended = stream.read_to_end(&mut read);
    let ended = tokio::time::timeout(crate::server::HANGS_AFTER, ended).await;
    // TCP's end may be a reset.
    let _ = ended.expect("the server closes it");
    String::from_utf8_lossy(&read).into_owned()
}
