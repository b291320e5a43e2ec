// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many connections by one socket.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;

use crate::server::{HANGS_AFTER, Server, ask, options, packed, say};

/// Replies of half a megabyte come as a reply and one-way messages.
#[tokio::test]
async fn each_connection_gets_its_own_replies_and_messages() {
    const LENGTH: usize = 500_000;
    let server = Server::start("").await;
    let connector = options("client").open().await.expect("a socket");
    let mut tasks = JoinSet::new();
    for number in 0..20_u8 {
        let stream = connector.stream(("127.0.0.1", server.smt)).await;
        let mut stream = stream.expect("a session");
        tasks.spawn(async move {
            let key = format!("key{number}");
            let value = String::from_utf8(vec![b'a' + number; LENGTH]).expect("letters");
            for _ in 0..5 {
                assert_eq!(ask(&mut stream, &["SET", &key, &value]).await, b"+OK\r\n");
                let got = ask(&mut stream, &["GET", &key]).await;
                assert!(got == format!("${LENGTH}\r\n{value}\r\n").as_bytes());
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("its own bytes");
    }
    // Connections that go leave the others alone, and new ones come by the same socket.
    let again = connector.stream(("127.0.0.1", server.smt)).await;
    let mut again = again.expect("a session");
    assert_eq!(ask(&mut again, &["PING"]).await, b"+PONG\r\n");
}

#[tokio::test]
async fn a_subscriber_without_requests_learns_that_its_server_is_gone() {
    let mut server = Server::start("").await;
    let options = options("client").silence_max(Duration::from_secs(1));
    let connector = options.open().await.expect("a socket");
    let stream = connector.stream(("127.0.0.1", server.smt)).await;
    let mut stream = stream.expect("a session");
    ask(&mut stream, &["SUBSCRIBE", "news"]).await;
    server.kill_and_restart().await;
    let mut byte = [0];
    let told = tokio::time::timeout(HANGS_AFTER, stream.read_exact(&mut byte)).await;
    let error = told.expect("it is told").expect_err("the server is gone");
    assert!(!error.to_string().is_empty());
}

/// The server's own limit for subscribers would end it too, and is taken away here.
#[tokio::test]
async fn a_reader_that_stops_ends_alone() {
    const PART: usize = 100_000;
    let server = Server::start("").await;
    let mut publisher = server.tcp().await;
    let limits = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"];
    assert_eq!(ask(&mut publisher, &limits).await, b"+OK\r\n");
    let connector = options("client").open().await.expect("a socket");
    let address = ("127.0.0.1", server.smt);
    let mut stopped = connector.stream(address).await.expect("a session");
    let mut other = connector.stream(address).await.expect("a session");
    ask(&mut stopped, &["SUBSCRIBE", "news"]).await;
    let news = "n".repeat(PART);
    for _ in 0..200 {
        ask(&mut publisher, &["PUBLISH", "news", &news]).await;
    }
    // A reply that is longer than a message waits behind what nobody reads.
    let value = "v".repeat(5 * PART);
    ask(&mut publisher, &["SET", "value", &value]).await;
    say(&mut other, &packed(&["GET", "value"])).await;
    let mut read = vec![0; 5 * PART + b"$500000\r\n\r\n".len()];
    let told = tokio::time::timeout(HANGS_AFTER, other.read_exact(&mut read)).await;
    told.expect("in time").expect("a reply");
    let mut taken = Vec::new();
    let told = tokio::time::timeout(HANGS_AFTER, stopped.read_to_end(&mut taken)).await;
    let error = told.expect("it ends").expect_err("it has not read");
    assert!(error.to_string().starts_with("limit: nobody has read"), "{error}");
}

/// The server ends a session five seconds after its last bytes, also if they wait at the client.
#[tokio::test]
async fn bytes_that_came_before_the_server_closed_the_session_are_read() {
    const LENGTH: usize = 4_000_000;
    const SILENCE_MAX: Duration = Duration::from_secs(1);
    let server = Server::start("").await;
    let mut admin = server.tcp().await;
    let value = "v".repeat(LENGTH);
    ask(&mut admin, &["SET", "value", &value]).await;
    let options = options("client").silence_max(SILENCE_MAX);
    let stream = options.stream(("127.0.0.1", server.smt)).await;
    let mut stream = stream.expect("a session");
    let commands = [packed(&["GET", "value"]), packed(&["QUIT"])].concat();
    say(&mut stream, &commands).await;
    // Until some bytes are there, and no session any more.
    let mut read = vec![0; 1];
    stream.read_exact(&mut read).await.expect("a reply");
    server.wait_for("smt_sessions:0").await;
    // The client looks whether its server is there, and finds that it is not.
    tokio::time::sleep(3 * SILENCE_MAX).await;
    let told = tokio::time::timeout(HANGS_AFTER, stream.read_to_end(&mut read)).await;
    told.expect("in time").expect("all bytes, and the end");
    assert!(read == format!("${LENGTH}\r\n{value}\r\n+OK\r\n").as_bytes());
}
