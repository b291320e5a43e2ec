// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Redis 7.0 with the module: calls of commands, one at a time.

use redis::AsyncCommands;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{HANGS_AFTER, Server, ask, options, packed, reply, say};

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).into_owned()
}

#[tokio::test]
async fn redis_answers_over_smt_byte_for_byte_as_over_tcp() {
    let Some(server) = Server::start_redis("", "").await else {
        return;
    };
    let (mut smt, mut tcp) = (server.smt().await, server.tcp().await);
    let large = "v".repeat(3_000_001);
    for words in [
        &["SET", "k", "v"][..],
        &["GET", "k"],
        &["GET", "nothing"],
        &["SET", "big", &large],
        &["GET", "big"],
        &["LPUSH", "k", "1"],
        &["GET"],
        &["NOSUCH", "x"],
        &["HSET", "h", "a", "1", "b", "2"],
        &["HGETALL", "h"],
        &["XREAD", "STREAMS", "s", "0"],
        &["EVAL", "return {1, 'two', {ok='three'}}", "0"],
        &["EVAL", "return redis.call('LPUSH', 'k', 1)", "0"],
        &["CONFIG", "GET", "maxmemory"],
        &["COMMAND", "COUNT"],
        &["DEL", "h"],
    ] {
        let over_tcp = ask(&mut tcp, words).await;
        if words[0] == "HSET" || words[0] == "DEL" {
            // The second time it would have another outcome.
            assert!(over_tcp.starts_with(b":"));
            continue;
        }
        let over_smt = ask(&mut smt, words).await;
        assert!(over_smt == over_tcp, "{:?}: {} {}", words[0], text(&over_smt), text(&over_tcp));
    }
    // Protocol 3, half a command, lines, and what is no command.
    let hello = text(&ask(&mut smt, &["HELLO", "3"]).await);
    assert!(hello.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"), "{hello}");
    assert_eq!(ask(&mut smt, &["GET", "nothing"]).await, b"_\r\n");
    assert!(ask(&mut smt, &["CONFIG", "GET", "port"]).await.starts_with(b"%1\r\n"));
    for byte in packed(&["ECHO", "x"]) {
        say(&mut smt, &[byte]).await;
    }
    assert_eq!(reply(&mut smt).await, b"$1\r\nx\r\n");
    say(&mut smt, b"\r\nGET  k\n").await;
    assert_eq!(reply(&mut smt).await, b"$1\r\nv\r\n");
    for garbage in [&b"*1\r\nPING\r\n"[..], b"*1\r\n$-5\r\n", b"*99999999999\r\n$3\r\n"] {
        let (mut smt, mut tcp) = (server.smt().await, server.tcp().await);
        say(&mut smt, garbage).await;
        say(&mut tcp, garbage).await;
        let over_smt = reply(&mut smt).await;
        assert_eq!(text(&over_smt), text(&reply(&mut tcp).await));
        assert_eq!(reply(&mut smt).await, b"", "it is closed");
    }
}

#[tokio::test]
async fn pipelines_of_the_crate_redis_come_back_in_order() {
    let Some(server) = Server::start_redis("", "").await else {
        return;
    };
    let info = Default::default();
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let connection = options("client");
    let address = ("127.0.0.1", server.smt);
    let connection = connection.connection_with_config(address, &info, config);
    let mut redis = connection.await.expect("a connection");
    let mut pipeline = redis::pipe();
    for _ in 0..5_000 {
        pipeline.incr("n", 1);
    }
    let replies: Vec<i64> = pipeline.query_async(&mut redis).await.expect("replies");
    assert_eq!(replies, (1..=5_000).collect::<Vec<i64>>());
    // More replies than a session may have on their way, to a client that asks for all at once.
    let value = vec![b'v'; 100_000];
    let () = redis.set("value", &value[..]).await.expect("it is set");
    let mut pipeline = redis::pipe();
    for _ in 0..200 {
        pipeline.get("value");
    }
    let replies: Vec<Vec<u8>> = pipeline.query_async(&mut redis).await.expect("replies");
    assert!(replies.len() == 200 && replies.iter().all(|reply| *reply == value));
    // A client that writes no more still gets its replies, and then the end.
    let mut stream = server.smt().await;
    stream.write_all(&packed(&["GET", "value"]).repeat(100)).await.expect("written");
    stream.shutdown().await.expect("the end is told");
    let mut read = Vec::new();
    let told = tokio::time::timeout(HANGS_AFTER, stream.read_to_end(&mut read)).await;
    told.expect("in time").expect("an end");
    assert_eq!(read.len(), 100 * (100_000 + b"$100000\r\n\r\n".len()));
}

#[tokio::test]
async fn commands_that_need_more_than_a_call_say_what_is_missing() {
    let Some(server) = Server::start_redis("", "").await else {
        return;
    };
    let mut smt = server.smt().await;
    for words in [
        &["MULTI"][..],
        &["EXEC"],
        &["WATCH", "k"],
        &["SELECT", "1"],
        &["SUBSCRIBE", "c"],
        &["PSUBSCRIBE", "c"],
        &["MONITOR"],
        &["PSYNC", "?", "-1"],
        &["BLPOP", "list", "0"],
        &["bzpopmin", "set", "0"],
        &["WAIT", "0", "0"],
        &["CLIENT", "SETNAME", "x"],
        &["XREAD", "BLOCK", "0", "STREAMS", "s", "0"],
        &["SCRIPT", "DEBUG", "YES"],
    ] {
        let refused = text(&ask(&mut smt, words).await);
        let expected = format!("-ERR over SMT this Redis has no such {}", words[0]);
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let log = server.log();
    let line = log.lines().find(|line| line.contains("gives modules no connection types"));
    let line = line.expect("the log says what is missing");
    for word in ["MULTI", "SELECT", "SUBSCRIBE", "MONITOR", "BLPOP", "WAIT"] {
        assert!(line.contains(word), "{line}");
    }
    assert_eq!(ask(&mut smt, &["PING"]).await, b"+PONG\r\n");
}

#[tokio::test]
async fn a_session_of_redis_is_one_user() {
    let Some(server) = Server::start_redis("", "").await else {
        return;
    };
    let mut admin = server.tcp().await;
    ask(&mut admin, &["CONFIG", "SET", "requirepass", "secret"]).await;
    let mut smt = server.smt().await;
    assert!(ask(&mut smt, &["GET", "k"]).await.starts_with(b"-NOAUTH"));
    assert!(ask(&mut smt, &["AUTH", "wrong"]).await.starts_with(b"-WRONGPASS"));
    assert!(ask(&mut smt, &["HELLO", "3"]).await.starts_with(b"-NOAUTH"));
    assert_eq!(ask(&mut smt, &["AUTH", "secret"]).await, b"+OK\r\n");
    let rules = "ACL SETUSER client on >pw ~mine:* +get +set +eval";
    let rules: Vec<&str> = rules.split(' ').collect();
    assert_eq!(ask(&mut smt, &rules).await, b"+OK\r\n");
    let mut user = server.smt().await;
    let hello = ask(&mut user, &["HELLO", "2", "AUTH", "client", "pw"]).await;
    assert!(hello.starts_with(b"*14\r\n"), "{}", text(&hello));
    assert_eq!(ask(&mut user, &["SET", "mine:1", "v"]).await, b"+OK\r\n");
    for words in [
        &["SET", "yours:1", "v"][..],
        &["DEL", "mine:1"],
        &["EVAL", "return redis.call('GET', 'yours:1')", "0"],
    ] {
        let refused = text(&ask(&mut user, words).await);
        assert!(refused.starts_with("-NOPERM") || refused.contains("can't access"), "{refused}");
    }
    // A HELLO with a fault logs nobody in.
    let mut nobody = server.smt().await;
    let words = ["HELLO", "2", "AUTH", "client", "pw", "NONSENSE"];
    let refused = text(&ask(&mut nobody, &words).await);
    assert!(refused.starts_with("-ERR Syntax"), "{refused}");
    assert!(ask(&mut nobody, &["GET", "k"]).await.starts_with(b"-NOAUTH"));
    // Somebody without a user may not send much.
    let refused = text(&ask(&mut nobody, &["GET", &"k".repeat(20_000)]).await);
    assert!(refused.contains("invalid bulk length"), "{refused}");
    // A user that is deleted has no connection any more.
    assert_eq!(ask(&mut smt, &["ACL", "DELUSER", "client"]).await, b":1\r\n");
    say(&mut user, &packed(&["GET", "mine:1"])).await;
    assert_eq!(reply(&mut user).await, b"");
    drop((smt, user, nobody));

    let server = Server::start_redis("user cn", "").await.expect("it was there");
    let rules = "ACL SETUSER client on nopass ~* +get";
    let rules: Vec<&str> = rules.split(' ').collect();
    ask(&mut server.tcp().await, &rules).await;
    let mut user = server.smt().await;
    assert_eq!(ask(&mut user, &["GET", "k"]).await, b"$-1\r\n");
    assert!(ask(&mut user, &["SET", "k", "v"]).await.starts_with(b"-NOPERM"));
    let stranger = options("stranger").stream(("127.0.0.1", server.smt)).await;
    assert_eq!(reply(&mut stranger.expect("a session")).await, b"");
    // A certificate of a user that is off lets nobody in.
    let off = ["ACL", "SETUSER", "client", "off"];
    assert_eq!(ask(&mut server.tcp().await, &off).await, b"+OK\r\n");
    assert_eq!(reply(&mut server.smt().await).await, b"");
}

#[tokio::test]
async fn a_killed_redis_has_all_writes_that_it_has_acknowledged_over_smt() {
    let file = "--appendonly yes --appendfsync always";
    let Some(mut server) = Server::start_redis("", file).await else {
        return;
    };
    let mut smt = server.smt().await;
    for number in 1..=200 {
        let expected = format!(":{number}\r\n");
        assert_eq!(ask(&mut smt, &["INCR", "n"]).await, expected.as_bytes());
    }
    server.kill_and_restart().await;
    assert_eq!(ask(&mut server.smt().await, &["GET", "n"]).await, b"$3\r\n200\r\n");
}

#[tokio::test]
async fn nothing_is_executed_in_a_script_or_while_clients_are_paused() {
    let Some(server) = Server::start_redis("", "--busy-reply-threshold 10").await else {
        return;
    };
    let (mut smt, mut tcp) = (server.smt().await, server.tcp().await);
    ask(&mut tcp, &["CLIENT", "PAUSE", "1000000", "WRITE"]).await;
    say(&mut smt, &packed(&["INCR", "n"])).await;
    for _ in 0..20 {
        assert_eq!(ask(&mut tcp, &["GET", "n"]).await, b"$-1\r\n");
    }
    ask(&mut tcp, &["CLIENT", "UNPAUSE"]).await;
    assert_eq!(reply(&mut smt).await, b":1\r\n");

    let mut script = server.tcp().await;
    say(&mut script, &packed(&["EVAL", "while true do end", "0"])).await;
    while !ask(&mut tcp, &["PING"]).await.starts_with(b"-BUSY") {}
    say(&mut smt, &packed(&["INCR", "n"])).await;
    // The server looks at its sockets meanwhile.
    for _ in 0..20 {
        assert!(ask(&mut tcp, &["PING"]).await.starts_with(b"-BUSY"));
    }
    assert_eq!(ask(&mut tcp, &["SCRIPT", "KILL"]).await, b"+OK\r\n");
    assert!(text(&reply(&mut script).await).contains("killed"));
    assert_eq!(reply(&mut smt).await, b":2\r\n");
}
