// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every command of the server with good and bad arguments, over TCP at one server and over SMT at
//! another: their replies are equal, byte for byte. A command is compared by its name alone if its
//! reply tells of times, numbers or addresses that differ by nature.

use redis::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::server::{HANGS_AFTER, Server, ask, packed, say};

/// Commands that are not given here: they end the connection or the server, change its role, or go
/// on for ever. `connection.rs` has tests of those that belong to connections.
const LEFT_OUT: &[&str] = &[
    "shutdown",
    "debug",
    "replicaof",
    "slaveof",
    "failover",
    "sync",
    "psync",
    "monitor",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "quit",
    "bgsave",
    "bgrewriteaof",
    "save",
    "replconf",
    "client|reply",
    "client|pause",
    "client|kill",
    "client|no-touch",
    "config|rewrite",
    "module|load",
    "module|loadex",
    "module|unload",
    "restore",
    "restore-asking",
    "pfdebug",
    "hello",
];
/// Commands whose replies differ by nature.
const DIFFERENT: &[&str] = &[
    "info",
    "time",
    "lastsave",
    "acl|genpass",
    "acl|log",
    "client|id",
    "client|list",
    "client|info",
    "client|trackinginfo",
    "command",
    "command|docs",
    "command|info",
    "command|list",
    "config|get",
    "latency|histogram",
    "latency|doctor",
    "latency|latest",
    "memory|stats",
    "memory|doctor",
    "memory|malloc-stats",
    "memory|usage",
    "slowlog|get",
    "slowlog|len",
    "commandlog|get",
    "lolwut",
    "randomkey",
    "role",
    "module|list",
    "object|idletime",
    "object|freq",
    "xadd",
    "xinfo|consumers",
    "xinfo|stream",
    "keys",
    "scan",
    "function|dump",
    "function|stats",
    "dump",
    "cluster|myid",
    "script|show",
    "hotkeys",
    "expiretime",
    "pexpiretime",
    "ttl",
    "pttl",
];

#[tokio::test]
async fn every_command_replies_over_smt_as_over_tcp() {
    let (by_tcp, by_smt) = (Server::start("").await, Server::start("").await);
    let names = names(&by_tcp).await;
    assert!(names.len() > 300, "only {} commands", names.len());
    let mut compared = 0;
    for name in &names {
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let (mut tcp, mut smt) = (by_tcp.tcp().await, by_smt.smt().await);
        for arguments in arguments() {
            let words: Vec<&str> = name.split('|').chain(arguments.iter().copied()).collect();
            let over_tcp = replies(&mut tcp, &words).await;
            let over_smt = replies(&mut smt, &words).await;
            if DIFFERENT.contains(&name.as_str()) {
                assert_eq!(over_smt.get(..1), over_tcp.get(..1), "{words:?}");
                continue;
            }
            let texts = [&over_smt, &over_tcp].map(|bytes| String::from_utf8_lossy(bytes));
            assert_eq!(texts[0], texts[1], "{words:?}");
            compared += 1;
        }
        // A key with a lifetime would be gone a little sooner for one of the servers.
        if name.contains("ex") {
            for server in [&by_tcp, &by_smt] {
                ask(&mut server.tcp().await, &["PERSIST", "key"]).await;
            }
        }
    }
    println!("{compared} replies of {} commands are equal", names.len());
    assert!(compared > 2_000, "only {compared} replies were compared");
}

/// Arguments, good for some commands and bad for others.
fn arguments() -> [&'static [&'static str]; 9] {
    [
        &[],
        &["key"],
        &["key", "1"],
        &["key", "field", "value"],
        &["key", "0.01"],
        &["key", "0", "-1"],
        &["1", "key", "member", "0.01"],
        &["\0\u{e9}\r\n", "not a number"],
        &["k1", "k2", "k3", "k4", "k5", "k6", "k7"],
    ]
}

/// Names of all commands, and those of their subcommands behind a bar.
async fn names(server: &Server) -> Vec<String> {
    let reply = ask(&mut server.tcp().await, &["COMMAND"]).await;
    let Ok(Value::Array(commands)) = redis::parse_redis_value(&reply) else {
        panic!("COMMAND gives no list");
    };
    let mut names = Vec::new();
    for command in &commands {
        let Value::Array(facts) = command else {
            panic!("a command is no list: {command:?}");
        };
        names.push(text(&facts[0]));
        if let Some(Value::Array(subcommands)) = facts.get(9) {
            for subcommand in subcommands {
                if let Value::Array(facts) = subcommand {
                    names.push(text(&facts[0]));
                }
            }
        }
    }
    names.sort();
    names
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        other => panic!("no name: {other:?}"),
    }
}

/// All that a command brings, up to the reply of another command behind it.
async fn replies(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), words: &[&str]) -> Vec<u8> {
    let mark: &[u8] = b"$9\r\nthe mark!\r\n";
    // A transaction that the command has begun ends.
    let commands = [packed(words), packed(&["DISCARD"]), packed(&["ECHO", "the mark!"])].concat();
    say(stream, &commands).await;
    let mut read = Vec::new();
    while !read.ends_with(mark) {
        let bytes = tokio::time::timeout(HANGS_AFTER, stream.read_buf(&mut read)).await;
        let bytes = bytes.unwrap_or_else(|_| panic!("{words:?} is not answered: {read:?}"));
        if bytes.unwrap_or(0) == 0 {
            break;
        }
    }
    read
}
