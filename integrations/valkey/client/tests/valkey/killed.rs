// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that is killed under load keeps what it has acknowledged. `SMT_VALKEY_KILLS` says how
//! often it is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncWriteExt;

use crate::server::{Server, ask, packed, reply};

/// How many writes a client has sent, and how many were acknowledged to it.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

#[tokio::test]
async fn a_killed_server_loses_no_acknowledged_write_and_repeats_none() {
    let kills = std::env::var("SMT_VALKEY_KILLS").map_or(3, |text| text.parse().expect("a number"));
    let mut server = Server::start("--appendonly yes --appendfsync always").await;
    for round in 0..kills {
        let counts: Vec<Arc<Counts>> = (0..CLIENTS).map(|_| Arc::default()).collect();
        let mut tasks = Vec::new();
        for (client, counts) in counts.iter().enumerate() {
            let stream = server.smt().await;
            tasks.push(tokio::spawn(write(stream, key(round, client), Arc::clone(counts))));
        }
        // The load decides when: after some hundred writes, another number each time.
        let until = 200 + 37 * u64::from(round % 11);
        while counts.iter().map(|counts| counts.acknowledged.load(Ordering::Acquire)).sum::<u64>()
            < until
        {
            tokio::task::yield_now().await;
        }
        server.kill_and_restart().await;
        for task in tasks {
            // It waits for a server that does not know its session any more.
            task.abort();
            let ended = task.await;
            assert!(ended.as_ref().is_ok() || ended.is_err_and(|error| error.is_cancelled()));
        }
        for (client, counts) in counts.iter().enumerate() {
            check(&server, &key(round, client), counts).await;
        }
    }
}

async fn write(mut stream: smt_valkey::Stream, key: String, counts: Arc<Counts>) {
    loop {
        let number = counts.sent.fetch_add(1, Ordering::AcqRel) + 1;
        let command = packed(&["RPUSH", &key, &number.to_string()]);
        if stream.write_all(&command).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        let reply = reply(&mut stream).await;
        if reply != format!(":{number}\r\n").as_bytes() {
            assert_eq!(reply, b"", "another reply than the length of the list");
            return;
        }
        counts.acknowledged.store(number, Ordering::Release);
    }
}

/// The list has each number that was acknowledged once, in order, and of the others at most the one
/// that was on its way.
async fn check(server: &Server, key: &str, counts: &Counts) {
    let list = ask(&mut server.tcp().await, &["LRANGE", key, "0", "-1"]).await;
    let list: Vec<u64> = redis::parse_redis_value(&list)
        .and_then(|list| Ok(redis::from_redis_value(list)?))
        .expect("a list of numbers");
    let expected: Vec<u64> = (1..=list.len() as u64).collect();
    assert_eq!(list, expected, "{key}");
    let (sent, acknowledged) = (&counts.sent, &counts.acknowledged);
    let bounds = acknowledged.load(Ordering::Acquire)..=sent.load(Ordering::Acquire);
    assert!(bounds.contains(&(list.len() as u64)), "{key}: {} of {bounds:?}", list.len());
}

fn key(round: u32, client: usize) -> String {
    format!("list:{round}:{client}")
}

const CLIENTS: usize = 4;
