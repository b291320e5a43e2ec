// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands over SMT, by the crate `redis` and by the command `smt-valkey-cli`.

use std::process::{Command, Stdio};

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig};
use tokio::io::AsyncReadExt;

use crate::server::{HANGS_AFTER, Server, ask, keys, options, packed, say};

async fn connection(server: &Server) -> MultiplexedConnection {
    let options = options("client");
    let address = ("127.0.0.1", server.smt);
    // Machines under load answer late.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let info = Default::default();
    let connection = options.connection_with_config(address, &info, config);
    let connection = connection.await;
    connection.expect("a connection")
}

#[tokio::test]
async fn the_crate_redis_has_pipelines_and_transactions_over_smt() {
    let server = Server::start("").await;
    let mut valkey = connection(&server).await;
    let mut pipeline = redis::pipe();
    pipeline.set("a", 1).ignore().incr("a", 41).get("a");
    let replies: (i64, i64) = pipeline.query_async(&mut valkey).await.expect("replies");
    assert_eq!(replies, (42, 42));
    let mut transaction = redis::pipe();
    transaction.atomic().incr("a", 1).incr("a", 1);
    let replies: (i64, i64) = transaction.query_async(&mut valkey).await.expect("replies");
    assert_eq!(replies, (43, 44));
    let many = (0..1_000).map(|number| {
        let mut valkey = valkey.clone();
        tokio::spawn(async move { valkey.incr::<_, _, i64>("many", number).await })
    });
    for task in many.collect::<Vec<_>>() {
        task.await.expect("no panic").expect("a reply");
    }
    let sum: i64 = valkey.get("many").await.expect("a reply");
    assert_eq!(sum, 999 * 1_000 / 2);
    // One database for clients of both kinds.
    assert_eq!(ask(&mut server.tcp().await, &["GET", "many"]).await, b"$6\r\n499500\r\n");
}

#[tokio::test]
async fn values_of_all_sizes_come_back() {
    let server = Server::start("").await;
    let mut valkey = connection(&server).await;
    for length in [0, 1, 1_000, 70_000, 1 << 20, 3_000_001, 40 << 20] {
        let value: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        let () = valkey.set("value", &value[..]).await.expect("it is set");
        let read: Vec<u8> = valkey.get("value").await.expect("it is there");
        assert!(read == value, "{length} bytes are others");
    }
}

#[tokio::test]
async fn a_watched_key_that_changes_stops_the_transaction() {
    let server = Server::start("").await;
    let (mut watching, mut other) = (server.smt().await, server.tcp().await);
    for command in [&["WATCH", "k"][..], &["MULTI"], &["SET", "k", "mine"]] {
        ask(&mut watching, command).await;
    }
    ask(&mut other, &["SET", "k", "theirs"]).await;
    assert_eq!(ask(&mut watching, &["EXEC"]).await, b"*-1\r\n");
}

#[tokio::test]
async fn a_hundred_replies_to_one_request_come_whole_to_many_clients_at_once() {
    let server = Server::start("").await;
    let value = "v".repeat(1_024);
    let mut tcp = server.tcp().await;
    let mut commands = Vec::new();
    for record in 0..100 {
        let key = format!("user{record}");
        ask(&mut tcp, &["HSET", &key, "field0", &value]).await;
        commands.extend(packed(&["HGETALL", &key]));
    }
    // Longer than what the server writes at once: a reply, and one-way messages behind it.
    let expected = format!("*2\r\n$6\r\nfield0\r\n$1024\r\n{value}\r\n").repeat(100);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (mut stream, commands) = (server.smt().await, commands.clone());
        let expected = expected.clone().into_bytes();
        tasks.spawn(async move {
            for _ in 0..20 {
                say(&mut stream, &commands).await;
                let mut read = vec![0; expected.len()];
                let told = tokio::time::timeout(HANGS_AFTER, stream.read_exact(&mut read)).await;
                told.expect("in time").expect("replies");
                assert!(read == expected, "other bytes than those of the records");
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("all replies");
    }
}

fn command_of(server: &Server) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-valkey-cli"));
    command.args(["-p", &server.smt.to_string(), "--cacert"]);
    command.arg(keys("ca.pem")).arg("--cert").arg(keys("client.pem"));
    command.arg("--key").arg(keys("client.key"));
    command
}

#[tokio::test]
async fn the_command_prints_replies_and_tells_failures_by_its_exit_code() {
    let server = Server::start("").await;
    let run = |words: &[&str]| command_of(&server).args(words).output().expect("it runs");
    let set = run(&["SET", "a b", "7"]);
    assert!(set.status.success());
    assert_eq!(String::from_utf8_lossy(&set.stdout), "OK\n");
    assert_eq!(run(&["--no-raw", "GET", "a b"]).stdout, b"\"7\"\n");
    let failed = run(&["--no-raw", "LPUSH", "a b", "1"]);
    assert!(!failed.status.success());
    let text = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert!(text.starts_with("(error) WRONGTYPE Operation against"), "{text}");
}

#[tokio::test]
async fn a_batch_of_commands_is_one_request() {
    use std::io::Write;

    let server = Server::start("").await;
    let mut command = command_of(&server);
    let command = command.arg("--batch").stdin(Stdio::piped());
    let mut process = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let lines = "INCR n\nINCR n\n\nECHO 'a \"b\"'\n";
    let mut input = process.stdin.take().expect("piped");
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"1\n2\na \"b\"\n");
}
