// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a running server are replaced, and `SMT.RELOAD` has them read again.

use std::fs;

use smt::{Identity, Trust};
use smt_valkey::{Options, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::fleet::Fleet;
use crate::server::{HANGS_AFTER, Server, ask, packed, reply, say};

/// The reply to `SMT.RELOAD`.
async fn reload(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    String::from_utf8_lossy(&ask(stream, &["SMT.RELOAD"]).await).into_owned()
}

/// Has a client wait for an element of a list.
async fn block(server: &Server, stream: &mut Stream, list: &str, blocked: usize) {
    say(stream, &packed(&["BLPOP", list, "0"])).await;
    server.wait_for(&format!("blocked_clients:{blocked}")).await;
}

/// Waits until the list of clients has these words.
async fn wait_for_client(admin: &mut (impl AsyncRead + AsyncWrite + Unpin), words: &str) {
    let mut list = String::new();
    for _ in 0..2_000 {
        list = String::from_utf8_lossy(&ask(admin, &["CLIENT", "LIST"]).await).into_owned();
        if list.contains(words) {
            return;
        }
    }
    panic!("no client has {words}:\n{list}");
}

/// All bytes until the connection ends, and whether it ended well.
async fn rest(stream: &mut Stream) -> (Vec<u8>, Option<String>) {
    let mut read = Vec::new();
    let ended = tokio::time::timeout(HANGS_AFTER, stream.read_to_end(&mut read)).await;
    let error = ended.expect("it ends").err();
    (read, error.map(|error| error.to_string()))
}

async fn is_served(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> bool {
    ask(stream, &["PING"]).await == b"+PONG\r\n"
}

#[tokio::test]
async fn a_revoked_client_is_out_at_once_and_another_one_goes_on() {
    let fleet = Fleet::new();
    let server = Server::start_with(&fleet.arguments(), "").await;
    let mut admin = server.tcp().await;
    let mut alice = fleet.connect(&server, &fleet.alice).await;
    let mut idle = fleet.connect(&server, &fleet.alice).await;
    let mut bob = fleet.connect(&server, &fleet.bob).await;
    assert!(is_served(&mut idle).await && is_served(&mut bob).await);
    block(&server, &mut alice, "list", 1).await;
    assert_eq!(reload(&mut admin).await, ":0\r\n", "the list is as it was");

    fleet.revoke(&[&fleet.alice]);
    assert!(is_served(&mut idle).await, "the list was not read yet");
    assert_eq!(reload(&mut admin).await, ":2\r\n");
    let (read, error) = rest(&mut alice).await;
    assert!(read.is_empty());
    let error = error.expect("no good end");
    assert!(error.contains("is accepted no more"), "{error}");
    say(&mut idle, &packed(&["SET", "k", "v"])).await;
    assert_eq!(reply(&mut idle).await, b"");
    let refused = fleet.refusal(&server, &fleet.alice).await;
    assert!(refused.contains("revoked"), "{refused}");

    assert!(is_served(&mut bob).await);
    assert_eq!(ask(&mut bob, &["EXISTS", "k"]).await, b":0\r\n");
    for line in ["smt_sessions:1", "smt_sessions_distrusted:2", "blocked_clients:0"] {
        server.wait_for(line).await;
    }
    let log = server.log();
    assert!(log.contains("would not be let in any more: "), "{log}");
    assert_eq!(reload(&mut admin).await, ":0\r\n");

    // A client that is on no list any more may come back.
    fleet.revoke(&[]);
    assert_eq!(reload(&mut admin).await, ":0\r\n");
    assert!(is_served(&mut fleet.connect(&server, &fleet.alice).await).await);
}

#[tokio::test]
async fn commands_in_progress_are_answered_before_the_end() {
    const LENGTH: usize = 20 << 20;
    let fleet = Fleet::new();
    let arguments = format!("{} distrusted finish", fleet.arguments());
    let server = Server::start_with(&arguments, "").await;
    let mut admin = server.tcp().await;
    let value = "v".repeat(LENGTH);
    assert_eq!(ask(&mut admin, &["SET", "big", &value]).await, b"+OK\r\n");
    let mut blocked = fleet.connect(&server, &fleet.alice).await;
    let mut slow = fleet.connect(&server, &fleet.alice).await;
    let mut half = fleet.connect(&server, &fleet.alice).await;
    let mut silent = fleet.connect(&server, &fleet.alice).await;
    let mut bob = fleet.connect(&server, &fleet.bob).await;
    block(&server, &mut blocked, "list", 1).await;
    // More than is on its way before somebody reads.
    ask(&mut slow, &["CLIENT", "SETNAME", "slow"]).await;
    say(&mut slow, &packed(&["GET", "big"])).await;
    say(&mut half, &packed(&["SET", "k", "v"])[..10]).await;
    say(&mut silent, &packed(&["CLIENT", "REPLY", "OFF"])).await;
    assert!(is_served(&mut bob).await);
    for words in ["cmd=get", "cmd=client|reply", "tot-net-in=10 "] {
        wait_for_client(&mut admin, words).await;
    }

    fleet.revoke(&[&fleet.alice]);
    assert_eq!(reload(&mut admin).await, ":4\r\n");
    // Further commands are none in progress.
    say(&mut blocked, &packed(&["SET", "more", "1"])).await;
    // The two without commands in progress end while the others go on.
    for stream in [&mut half, &mut silent] {
        assert_eq!(rest(stream).await, (Vec::new(), None));
    }
    server.wait_for("blocked_clients:1").await;
    let (read, error) = rest(&mut slow).await;
    assert_eq!((read.len(), error), (LENGTH + b"$20971520\r\n\r\n".len(), None));
    assert_eq!(reload(&mut admin).await, ":0\r\n", "the blocked one is to end already");
    ask(&mut bob, &["RPUSH", "list", "element"]).await;
    let expected = b"*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n".to_vec();
    assert_eq!(rest(&mut blocked).await, (expected, None));
    server.wait_for("smt_sessions:1").await;
    assert_eq!(ask(&mut bob, &["EXISTS", "more"]).await, b":0\r\n");
    assert!(fleet.refusal(&server, &fleet.alice).await.contains("revoked"));
}

#[tokio::test]
async fn sessions_of_revoked_clients_go_on_if_that_is_chosen() {
    let fleet = Fleet::new();
    let server = Server::start_with(&format!("{} distrusted keep", fleet.arguments()), "").await;
    let mut alice = fleet.connect(&server, &fleet.alice).await;
    fleet.revoke(&[&fleet.alice]);
    assert_eq!(reload(&mut server.tcp().await).await, ":0\r\n");
    assert!(is_served(&mut alice).await);
    assert!(fleet.refusal(&server, &fleet.alice).await.contains("revoked"));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let fleet = Fleet::new();
    let server = Server::start_with(&fleet.arguments(), "").await;
    let mut admin = server.tcp().await;
    let mut alice = fleet.connect(&server, &fleet.alice).await;
    assert!(is_served(&mut alice).await);
    // Each of these would be out, and the certificate is another one, if it were not for the fault.
    fleet.revoke(&[&fleet.alice]);
    fleet.renew_server();
    for name in ["server.pem", "server.key", "ca.pem", "ca.crl"] {
        let path = fleet.path(name);
        let good = fs::read_to_string(&path).expect("it is there");
        let faults: [&dyn Fn(); 3] = [
            &|| fleet.write(name, "no certificate\n"),
            &|| fs::remove_file(&path).expect("it was there"),
            &|| fs::create_dir(&path).expect("a folder in its place"),
        ];
        for fault in faults {
            fault();
            let refused = reload(&mut admin).await;
            assert!(refused.starts_with("-ERR caller: "), "{refused}");
            assert!(refused.contains(&path.display().to_string()), "{refused}");
            assert!(refused.contains("Nothing has changed"), "{refused}");
            assert!(is_served(&mut alice).await);
        }
        assert!(is_served(&mut fleet.connect(&server, &fleet.alice).await).await);
        fs::remove_dir(&path).expect("it is empty");
        fleet.write(name, &good);
    }
    // A key that belongs to another certificate.
    let key = fleet.path("server.key");
    let good = fs::read_to_string(&key).expect("it is there");
    fleet.write("server.key", &fleet.bob.key_pem);
    let refused = reload(&mut admin).await;
    assert!(refused.starts_with("-ERR caller: "), "{refused}");
    assert!(is_served(&mut alice).await);
    fleet.write("server.key", &good);
    assert_eq!(reload(&mut admin).await, ":1\r\n");
}

#[tokio::test]
async fn a_renewed_certificate_is_met_by_new_clients_and_sessions_go_on() {
    let fleet = Fleet::new();
    let server = Server::start_with(&fleet.arguments(), "").await;
    let mut bob = fleet.connect(&server, &fleet.bob).await;
    let renewed = fleet.renew_server();
    let pinned = Trust::pinned_from_pem(renewed.certificate_pem.as_bytes());
    let (certificate, key) = (&fleet.bob.certificate_pem, &fleet.bob.key_pem);
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).expect("bob's");
    let options = Options::new(pinned.expect("a certificate")).identity(identity);
    let address = ("127.0.0.1", server.smt);
    assert!(options.stream(address).await.is_err(), "the new one was not read yet");
    assert_eq!(reload(&mut server.tcp().await).await, ":0\r\n");
    assert!(is_served(&mut options.stream(address).await.expect("a session")).await);
    assert!(is_served(&mut bob).await);
}

#[tokio::test]
async fn clients_of_an_authority_that_was_taken_out_are_out() {
    let (fleet, other) = (Fleet::new(), Fleet::new());
    let [one, both] = [&fleet, &other].map(|fleet| fs::read_to_string(fleet.path("ca.pem")));
    let (one, both) = (one.expect("a file"), both.expect("a file"));
    fleet.write("ca.pem", &format!("{one}{both}"));
    let list = other.path("ca.crl").display().to_string();
    let arguments = format!("{} crl {list}", fleet.arguments());
    let server = Server::start_with(&arguments, "").await;
    let mut alice = fleet.connect(&server, &fleet.alice).await;
    let stranger = fleet.connect(&server, &other.alice).await;
    fleet.write("ca.pem", &one);
    assert_eq!(reload(&mut alice).await, ":1\r\n");
    drop(stranger);
    let refused = fleet.refusal(&server, &other.alice).await;
    assert!(refused.contains("certificate"), "{refused}");
    assert!(is_served(&mut alice).await);
}

#[tokio::test]
async fn administrators_alone_may_reload_and_one_that_is_out_gets_the_reply_first() {
    let fleet = Fleet::new();
    let server = Server::start_with(&format!("{} user cn", fleet.arguments()), "").await;
    let mut admin = server.tcp().await;
    for rules in ["alice on nopass +@all ~*", "bob on nopass +@all -@admin ~*"] {
        let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(rules.split(' ')).collect();
        assert_eq!(ask(&mut admin, &words).await, b"+OK\r\n");
    }
    let mut alice = fleet.connect(&server, &fleet.alice).await;
    let mut bob = fleet.connect(&server, &fleet.bob).await;
    fleet.revoke(&[&fleet.alice]);
    let refused = reload(&mut bob).await;
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    let refused = ask(&mut admin, &["EVAL", "return redis.call('SMT.RELOAD')", "0"]).await;
    assert!(refused.starts_with(b"-"), "scripts may not");
    let refused = ask(&mut alice, &["SMT.RELOAD", "now"]).await;
    assert!(refused.starts_with(b"-ERR wrong number of arguments"));
    // No command behind it is executed.
    let commands = [packed(&["SMT.RELOAD"]), packed(&["SET", "k", "v"])].concat();
    say(&mut alice, &commands).await;
    assert_eq!(rest(&mut alice).await, (b":1\r\n".to_vec(), None));
    assert_eq!(ask(&mut admin, &["EXISTS", "k"]).await, b":0\r\n");
    assert!(is_served(&mut bob).await);
}

/// Sends commands and reads their replies.
async fn use_until_the_end(mut stream: Stream) -> std::io::Result<()> {
    let commands = packed(&["ECHO", &"e".repeat(3_000)]).repeat(20);
    let mut read = vec![0; 20 * (3_000 + b"$3000\r\n\r\n".len())];
    loop {
        stream.write_all(&commands).await?;
        stream.flush().await?;
        stream.read_exact(&mut read).await?;
    }
}

#[tokio::test]
async fn revoked_clients_of_threads_that_read_and_write_are_out() {
    let fleet = Fleet::new();
    let threads = "--io-threads 3 --events-per-io-thread 0";
    let server = Server::start_with(&fleet.arguments(), threads).await;
    let mut admin = server.tcp().await;
    // Servers before 9.1 refuse this, and take `events-per-io-thread` instead.
    ask(&mut admin, &["CONFIG", "SET", "io-threads-always-active", "yes"]).await;
    let mut bob = fleet.connect(&server, &fleet.bob).await;
    for _ in 0..5 {
        fleet.revoke(&[]);
        assert_eq!(reload(&mut admin).await, ":0\r\n");
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let mut stream = fleet.connect(&server, &fleet.alice).await;
            assert!(is_served(&mut stream).await);
            tasks.push(tokio::spawn(use_until_the_end(stream)));
        }
        fleet.revoke(&[&fleet.alice]);
        assert_eq!(reload(&mut admin).await, ":4\r\n");
        for task in tasks {
            let ended = tokio::time::timeout(HANGS_AFTER, task).await;
            assert!(ended.expect("in time").expect("no panic").is_err());
        }
        server.wait_for("smt_sessions:1").await;
        assert!(is_served(&mut bob).await);
    }
    server.wait_for("smt_sessions_distrusted:20").await;
}

#[test]
fn lists_and_choices_that_say_nothing_do_not_start() {
    for (module, words) in [
        ("auth-clients no crl /nowhere.crl", "`crl` is for certificates of clients"),
        ("distrusted perhaps", "no such argument: distrusted perhaps"),
        ("crl /nowhere.crl", "cannot read /nowhere.crl"),
    ] {
        let log = Server::refused(module, "");
        assert!(log.contains(words), "{log}");
    }
}

#[tokio::test]
async fn a_client_of_redis_that_is_revoked_is_out_and_another_one_goes_on() {
    let fleet = Fleet::new();
    for (choice, ends_well) in [("end", false), ("finish", true)] {
        fleet.revoke(&[]);
        let arguments = format!("{} distrusted {choice}", fleet.arguments());
        let Some(server) = Server::start_redis(&arguments, "").await else {
            return;
        };
        let (mut admin, mut tcp) = (server.tcp().await, server.tcp().await);
        let mut alice = fleet.connect(&server, &fleet.alice).await;
        let mut bob = fleet.connect(&server, &fleet.bob).await;
        assert!(is_served(&mut alice).await && is_served(&mut bob).await);
        // Its commands wait while clients are paused, and are in progress.
        ask(&mut admin, &["CLIENT", "PAUSE", "1000000", "WRITE"]).await;
        say(&mut alice, &packed(&["INCR", "n"])).await;
        for _ in 0..20 {
            assert_eq!(ask(&mut tcp, &["GET", "n"]).await, b"$-1\r\n");
        }
        fleet.write("ca.crl", "no list\n");
        assert!(reload(&mut admin).await.starts_with("-ERR caller: "));
        fleet.revoke(&[&fleet.alice]);
        assert_eq!(reload(&mut admin).await, ":1\r\n");
        ask(&mut admin, &["CLIENT", "UNPAUSE"]).await;
        let (read, error) = rest(&mut alice).await;
        let expected: &[u8] = if ends_well { b":1\r\n" } else { b"" };
        assert_eq!((&read[..], error.is_none()), (expected, ends_well), "{error:?}");
        assert!(fleet.refusal(&server, &fleet.alice).await.contains("revoked"));
        assert!(is_served(&mut bob).await);
        let counted = ask(&mut bob, &["EXISTS", "n"]).await;
        assert_eq!(counted, format!(":{}\r\n", u8::from(ends_well)).as_bytes());
        server.wait_for("smt_sessions:1").await;
    }
}

/// Its modules have no ACL categories.
#[tokio::test]
async fn administrators_of_redis_alone_may_reload() {
    let fleet = Fleet::new();
    let Some(server) = Server::start_redis(&format!("{} user cn", fleet.arguments()), "").await
    else {
        return;
    };
    let mut admin = server.tcp().await;
    for rules in ["alice on nopass +@all ~*", "bob on nopass +@all -@admin ~*"] {
        let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(rules.split(' ')).collect();
        assert_eq!(ask(&mut admin, &words).await, b"+OK\r\n");
    }
    let mut alice = fleet.connect(&server, &fleet.alice).await;
    let mut bob = fleet.connect(&server, &fleet.bob).await;
    let refused = reload(&mut bob).await;
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    assert_eq!(reload(&mut alice).await, ":0\r\n");
    let mut tcp = server.tcp().await;
    assert_eq!(ask(&mut tcp, &["AUTH", "bob", "any"]).await, b"+OK\r\n");
    let refused = reload(&mut tcp).await;
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    assert_eq!(reload(&mut admin).await, ":0\r\n");
}
