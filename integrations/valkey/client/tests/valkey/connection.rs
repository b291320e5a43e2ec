// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that block, are told of things, are killed, read slowly or vanish.

use std::process::{Command, Stdio};

use tokio::io::AsyncReadExt;

use crate::server::{HANGS_AFTER, Server, ask, keys, packed, reply, say};

#[tokio::test]
async fn a_blocked_client_is_answered_when_the_element_comes() {
    let server = Server::start("").await;
    let (mut blocked, mut other) = (server.smt().await, server.smt().await);
    say(&mut blocked, &packed(&["BLPOP", "list", "0"])).await;
    // Commands behind it wait for their turn, in other messages.
    say(&mut blocked, &packed(&["ECHO", "behind"])).await;
    say(&mut blocked, &packed(&["ECHO", "last"])).await;
    server.wait_for("blocked_clients:1").await;
    ask(&mut other, &["RPUSH", "list", "element"]).await;
    let expected = b"*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n$6\r\nbehind\r\n$4\r\nlast\r\n";
    let mut read = vec![0; expected.len()];
    blocked.read_exact(&mut read).await.expect("replies");
    assert_eq!(read, expected);
}

#[tokio::test]
async fn subscribers_and_monitors_are_told() {
    let server = Server::start("").await;
    let (mut subscriber, mut monitor) = (server.smt().await, server.smt().await);
    let mut publisher = server.tcp().await;
    ask(&mut subscriber, &["SUBSCRIBE", "news"]).await;
    assert_eq!(ask(&mut monitor, &["MONITOR"]).await, b"+OK\r\n");
    for number in 0..1_000 {
        let text = format!("{number:04}");
        assert_eq!(ask(&mut publisher, &["PUBLISH", "news", &text]).await, b":1\r\n");
    }
    let message = |number| format!("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\n{number:04}\r\n");
    let expected: String = (0..1_000).map(message).collect();
    let mut read = vec![0; expected.len()];
    let told = tokio::time::timeout(HANGS_AFTER, subscriber.read_exact(&mut read)).await;
    told.expect("in time").expect("messages");
    assert!(read == expected.as_bytes(), "messages in another order");
    let mut seen = Vec::new();
    while seen.iter().filter(|byte| **byte == b'\n').count() < 1_000 {
        monitor.read_buf(&mut seen).await.expect("commands");
    }
    let seen = String::from_utf8_lossy(&seen).into_owned();
    for (number, line) in seen.lines().enumerate() {
        let command = format!("\"PUBLISH\" \"news\" \"{number:04}\"");
        assert!(line.ends_with(&command), "{line}");
    }
}

#[tokio::test]
async fn half_a_command_and_several_behave_as_bytes_do() {
    let server = Server::start("").await;
    let mut stream = server.smt().await;
    let bytes =
        [packed(&["SET", "k", "v"]), packed(&["GET", "k"]), packed(&["ECHO", "x"])].concat();
    // Each byte is a request of its own.
    for byte in &bytes {
        say(&mut stream, std::slice::from_ref(byte)).await;
    }
    let expected = b"+OK\r\n$1\r\nv\r\n$1\r\nx\r\n";
    let mut read = vec![0; expected.len()];
    stream.read_exact(&mut read).await.expect("replies");
    assert_eq!(read, expected);
}

#[tokio::test]
async fn a_reader_and_a_writer_in_two_tasks_do_not_wait_for_each_other() {
    let server = Server::start("").await;
    let (mut reader, mut writer) = tokio::io::split(server.smt().await);
    // More requests than may be unanswered: each byte is one.
    let bytes = packed(&["ECHO", "x"]).repeat(50);
    let writing = tokio::spawn(async move {
        for byte in bytes {
            say(&mut writer, &[byte]).await;
        }
    });
    let mut read = vec![0; 50 * b"$1\r\nx\r\n".len()];
    let told = tokio::time::timeout(HANGS_AFTER, reader.read_exact(&mut read)).await;
    told.expect("in time").expect("replies");
    assert_eq!(read, b"$1\r\nx\r\n".repeat(50));
    writing.await.expect("all is written");
}

#[tokio::test]
async fn clients_without_replies_go_on() {
    let server = Server::start("").await;
    let mut stream = server.smt().await;
    say(&mut stream, &packed(&["CLIENT", "REPLY", "OFF"])).await;
    for _ in 0..1_000 {
        say(&mut stream, &packed(&["INCR", "n"])).await;
    }
    say(&mut stream, &packed(&["CLIENT", "REPLY", "ON"])).await;
    assert_eq!(reply(&mut stream).await, b"+OK\r\n");
    assert_eq!(ask(&mut stream, &["GET", "n"]).await, b"$4\r\n1000\r\n");
}

#[tokio::test]
async fn clients_are_listed_and_killed_like_others() {
    let server = Server::start("").await;
    let (mut stream, mut other) = (server.smt().await, server.tcp().await);
    ask(&mut stream, &["CLIENT", "SETNAME", "me"]).await;
    let id = ask(&mut stream, &["CLIENT", "ID"]).await;
    let id = String::from_utf8_lossy(&id[1..]).trim().to_owned();
    let list = ask(&mut other, &["CLIENT", "LIST", "ID", &id]).await;
    let list = String::from_utf8_lossy(&list).into_owned();
    assert!(list.contains("addr=127.0.0.1:"), "{list}");
    assert!(list.contains(&format!("laddr=127.0.0.1:{}", server.smt)), "{list}");
    assert!(list.contains("name=me"), "{list}");
    assert_eq!(ask(&mut other, &["CLIENT", "KILL", "ID", &id]).await, b":1\r\n");
    assert_eq!(reply(&mut stream).await, b"", "the connection ends");
    server.wait_for("smt_sessions:0").await;
}

#[tokio::test]
async fn the_last_reply_comes_before_the_end() {
    let server = Server::start("").await;
    for _ in 0..20 {
        let mut stream = server.smt().await;
        assert_eq!(ask(&mut stream, &["QUIT"]).await, b"+OK\r\n");
        assert_eq!(reply(&mut stream).await, b"");
    }
    // Too many clients are told so.
    let mut tcp = server.tcp().await;
    ask(&mut tcp, &["CONFIG", "SET", "maxclients", "1"]).await;
    let refused = reply(&mut server.smt().await).await;
    assert_eq!(refused, b"-ERR max number of clients reached\r\n");
}

#[tokio::test]
async fn a_reader_that_stops_is_closed_by_the_limits_of_the_server() {
    let server = Server::start("").await;
    let mut other = server.tcp().await;
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 0 0"];
    assert_eq!(ask(&mut other, &limit).await, b"+OK\r\n");
    let mut slow = server.smt().await;
    ask(&mut slow, &["SUBSCRIBE", "news"]).await;
    let text = "x".repeat(100_000);
    let mut published = 0;
    while ask(&mut other, &["PUBLISH", "news", &text]).await == b":1\r\n" {
        published += 1;
        assert!(published < 2_000, "200 MB wait for a reader that reads nothing");
    }
    assert!(published > 20, "closed after {published} messages");
    assert_eq!(ask(&mut server.smt().await, &["PING"]).await, b"+PONG\r\n");
}

#[tokio::test]
async fn clients_that_vanish_are_found_out() {
    let server = Server::start_with("keepalive 1", "").await;
    let mut process = Command::new(env!("CARGO_BIN_EXE_smt-valkey-cli"))
        .args(["-p", &server.smt.to_string(), "--cacert"])
        .arg(keys("ca.pem"))
        .arg("--cert")
        .arg(keys("client.pem"))
        .arg("--key")
        .arg(keys("client.key"))
        .args(["SUBSCRIBE", "news"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    server.wait_for("pubsub_clients:1").await;
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    server.wait_for("smt_sessions:0").await;
    server.wait_for("pubsub_clients:0").await;
}

#[tokio::test]
async fn a_long_command_kills_nobody_and_snapshots_go_on() {
    let server = Server::start("--enable-debug-command local").await;
    let mut stream = server.smt().await;
    assert_eq!(ask(&mut stream, &["DEBUG", "SLEEP", "3"]).await, b"+OK\r\n");
    ask(&mut stream, &["SET", "k", "v"]).await;
    ask(&mut stream, &["BGSAVE"]).await;
    server.wait_for("rdb_bgsave_in_progress:0").await;
    server.wait_for("rdb_saves:1").await;
    assert_eq!(ask(&mut stream, &["GET", "k"]).await, b"$1\r\nv\r\n");
}

/// Has threads read and write even if there is little to do. Servers before 9.1 refuse this, and
/// take `events-per-io-thread` instead.
async fn use_threads(server: &Server) {
    ask(&mut server.tcp().await, &["CONFIG", "SET", "io-threads-always-active", "yes"]).await;
}

#[tokio::test]
async fn threads_of_the_server_may_read_and_write() {
    let server = Server::start("--io-threads 2 --events-per-io-thread 0").await;
    use_threads(&server).await;
    let clients = (0..4).map(|_| server.smt());
    let mut tasks = Vec::new();
    for client in clients {
        let mut stream = client.await;
        tasks.push(tokio::spawn(async move {
            let value = "v".repeat(3_000);
            for number in 0..50 {
                let key = format!("k{}", number % 7);
                assert_eq!(ask(&mut stream, &["SET", &key, &value]).await, b"+OK\r\n");
                let read = ask(&mut stream, &["GET", &key]).await;
                assert_eq!(read.len(), 3_000 + 9);
            }
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let info = ask(&mut server.tcp().await, &["INFO", "stats"]).await;
    let info = String::from_utf8_lossy(&info).into_owned();
    let threaded = info.lines().find(|line| line.starts_with("io_threaded_reads_processed:"));
    assert_ne!(threaded, Some("io_threaded_reads_processed:0"), "no thread has read anything");
}

/// A thread may still write messages to a client whose commands another one has just read.
#[tokio::test]
async fn threads_that_read_and_write_one_client_at_once_lose_no_byte() {
    const MESSAGES: usize = 400;
    let server = Server::start("--io-threads 3 --events-per-io-thread 0").await;
    use_threads(&server).await;
    let said = "m".repeat(2_000);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let mut stream = server.smt().await;
        ask(&mut stream, &["HELLO", "3"]).await;
        let told = ask(&mut stream, &["SUBSCRIBE", "news"]).await;
        assert!(told.ends_with(b":1\r\n"));
        tasks.push(tokio::spawn(async move {
            let (mut reading, mut writing) = tokio::io::split(stream);
            let asking = async {
                // Each command by itself, so that many are read while messages are written.
                for number in 0..MESSAGES {
                    say(&mut writing, &packed(&["ECHO", &format!("e{number:04}")])).await;
                }
            };
            let answered = async {
                let mut read = Vec::new();
                let message = b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2000\r\n".len() + 2_002;
                let expected = MESSAGES * (message + b"$5\r\ne0000\r\n".len());
                while read.len() < expected {
                    let bytes = tokio::time::timeout(HANGS_AFTER, reading.read_buf(&mut read));
                    let bytes = bytes.await.expect("in time").expect("bytes");
                    assert_ne!(bytes, 0, "the connection has ended");
                }
                read
            };
            let ((), read) = tokio::join!(asking, answered);
            let read = String::from_utf8(read).expect("text");
            let echoed: Vec<&str> = read.lines().filter(|line| line.starts_with('e')).collect();
            let expected: Vec<String> = (0..MESSAGES).map(|n| format!("e{n:04}")).collect();
            assert_eq!(echoed, expected);
            assert_eq!(read.matches(&"m".repeat(2_000)).count(), MESSAGES);
        }));
    }
    let mut publisher = server.smt().await;
    for _ in 0..MESSAGES {
        assert_eq!(ask(&mut publisher, &["PUBLISH", "news", &said]).await, b":3\r\n");
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    server.wait_for("smt_sessions_broken:0").await;
}

/// A thread has read commands behind one that blocks. When it is over the client is read again.
#[tokio::test]
async fn a_blocked_client_is_read_again_where_threads_read() {
    let server = Server::start("--io-threads 3 --events-per-io-thread 0").await;
    use_threads(&server).await;
    let mut admin = server.tcp().await;
    let mut stream = server.smt().await;
    for number in 0..50 {
        let echo = packed(&["ECHO", "behind"]);
        let commands = [packed(&["BLPOP", "q", "0"]), echo.clone(), echo].concat();
        say(&mut stream, &commands).await;
        server.wait_for("blocked_clients:1").await;
        ask(&mut admin, &["RPUSH", "q", &format!("{number:02}")]).await;
        let expected =
            format!("*2\r\n$1\r\nq\r\n$2\r\n{number:02}\r\n$6\r\nbehind\r\n$6\r\nbehind\r\n");
        let mut read = vec![0; expected.len()];
        let told = tokio::time::timeout(HANGS_AFTER, stream.read_exact(&mut read)).await;
        told.expect("in time").expect("replies");
        assert_eq!(String::from_utf8_lossy(&read), expected);
        assert_eq!(ask(&mut stream, &["PING"]).await, b"+PONG\r\n");
    }
}

/// In 9.1 SMT has the place of RDMA among the server's listeners.
#[tokio::test]
async fn settings_of_rdma_leave_the_listener_alone() {
    let server = Server::start("").await;
    let mut stream = server.smt().await;
    for words in [["rdma-port", "1"], ["rdma-bind", "127.0.0.1"]] {
        let refused = ask(&mut stream, &["CONFIG", "SET", words[0], words[1]]).await;
        assert!(refused.starts_with(b"-ERR"), "{}", String::from_utf8_lossy(&refused));
    }
    let info = ask(&mut stream, &["INFO", "server"]).await;
    let listener = format!("bind=127.0.0.1,port={}", server.smt);
    assert!(String::from_utf8_lossy(&info).contains(&listener));
    assert_eq!(ask(&mut server.smt().await, &["PING"]).await, b"+PONG\r\n");
}
