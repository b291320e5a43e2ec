// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stock replica that follows its primary over SMT, by a tunnel.

use crate::server::{Server, ask};
use crate::tunnel::Tunnel;

/// Waits until both servers have the same records.
async fn same(primary: &Server, replica: &Server) {
    let (mut one, mut other) = (primary.tcp().await, replica.tcp().await);
    for _ in 0..3_000 {
        let digest = ask(&mut one, &["DEBUG", "DIGEST"]).await;
        if digest == ask(&mut other, &["DEBUG", "DIGEST"]).await {
            assert!(digest.starts_with(b"+"), "no digest");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the replica has other records:\n{}", replica.log());
}

async fn increment(server: &Server, times: usize) {
    let mut stream = server.tcp().await;
    for _ in 0..times {
        ask(&mut stream, &["INCR", "counter"]).await;
    }
}

#[tokio::test]
async fn a_replica_follows_its_primary_over_smt_and_goes_on_behind_a_killed_tunnel() {
    let options = "--enable-debug-command yes --repl-diskless-sync-delay 0";
    let primary = Server::start(options).await;
    let replica = Server::start(options).await;
    let mut stream = primary.tcp().await;
    for number in 0..8_u64 {
        // Bytes that no snapshot makes shorter.
        let mut state = number + 1;
        let value: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + (state >> 33) as u8 % 95)
        })
        .take(1 << 20)
        .collect();
        ask(&mut stream, &["SET", &format!("big:{number}"), &value]).await;
    }
    ask(&mut stream, &["DEBUG", "POPULATE", "20000", "small", "64"]).await;

    let tunnel = Tunnel::start(&primary, "127.0.0.1:0", "client", &[]);
    let place = tunnel.place.clone();
    let port = place.rsplit_once(':').expect("a port").1;
    let mut admin = replica.tcp().await;
    let told = ask(&mut admin, &["REPLICAOF", "127.0.0.1", port]).await;
    assert_eq!(told, b"+OK\r\n");
    replica.wait_for("master_link_status:up").await;
    same(&primary, &replica).await;
    primary.wait_for("smt_sessions:1").await;
    increment(&primary, 500).await;
    same(&primary, &replica).await;

    tunnel.kill();
    replica.wait_for("master_link_status:down").await;
    increment(&primary, 500).await;
    let _tunnel = Tunnel::start(&primary, &place, "client", &[]);
    replica.wait_for("master_link_status:up").await;
    same(&primary, &replica).await;
    primary.wait_for("sync_full:1").await;
    primary.wait_for("sync_partial_ok:1").await;
    assert_eq!(ask(&mut admin, &["GET", "counter"]).await, b"$4\r\n1000\r\n");
}

#[tokio::test]
async fn a_replica_with_two_channels_is_told_of_in_the_log_of_its_primary() {
    let options = "--dual-channel-replication-enabled yes --repl-diskless-sync-delay 0";
    let (primary, replica) = (Server::start(options).await, Server::start(options).await);
    let tunnel = Tunnel::start(&primary, "127.0.0.1:0", "client", &[]);
    let port = tunnel.place.rsplit_once(':').expect("a port").1;
    let mut admin = replica.tcp().await;
    assert_eq!(ask(&mut admin, &["REPLICAOF", "127.0.0.1", port]).await, b"+OK\r\n");
    primary.wait_for_log("set dual-channel-replication-enabled to no").await;
    for words in [
        &["CONFIG", "SET", "dual-channel-replication-enabled", "no"][..],
        &["REPLICAOF", "NO", "ONE"],
        &["REPLICAOF", "127.0.0.1", port],
    ] {
        assert_eq!(ask(&mut admin, words).await, b"+OK\r\n");
    }
    replica.wait_for("master_link_status:up").await;
}
