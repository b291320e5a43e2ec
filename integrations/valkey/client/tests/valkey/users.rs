// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients as users: by their certificates, or refused.

use crate::server::{Server, ask, options, reply, say};

#[tokio::test]
async fn a_certificate_names_the_user() {
    let server = Server::start_with("user cn", "").await;
    let mut admin = server.tcp().await;
    let words: Vec<&str> = "ACL SETUSER client on nopass +@all ~mine:*".split(' ').collect();
    assert_eq!(ask(&mut admin, &words).await, b"+OK\r\n");
    let mut stream = server.smt().await;
    assert_eq!(ask(&mut stream, &["ACL", "WHOAMI"]).await, b"$6\r\nclient\r\n");
    assert_eq!(ask(&mut stream, &["SET", "mine:1", "v"]).await, b"+OK\r\n");
    let refused = ask(&mut stream, &["SET", "yours:1", "v"]).await;
    assert!(refused.starts_with(b"-NOPERM"), "{}", String::from_utf8_lossy(&refused));
    // A certificate of the authority that names nobody.
    let stream = options("stranger").stream(("127.0.0.1", server.smt)).await;
    assert_eq!(reply(&mut stream.expect("a session")).await, b"");
}

#[tokio::test]
async fn clients_of_other_authorities_or_none_are_refused() {
    let server = Server::start("").await;
    let address = ("127.0.0.1", server.smt);
    let error = options("other").stream(address).await.err();
    let text = error.expect("refused").to_string();
    assert!(text.contains("certificate"), "{text}");
    let trust = smt::Trust::roots_from_pem_files(&[crate::server::keys("ca.pem")]);
    let nobody = smt_valkey::Options::new(trust.expect("an authority"));
    let error = nobody.stream(address).await.err();
    assert!(error.expect("refused").to_string().contains("certificate"));
    let mut stream = server.smt().await;
    say(&mut stream, b"PING\r\n").await;
    assert_eq!(reply(&mut stream).await, b"+PONG\r\n");
}
