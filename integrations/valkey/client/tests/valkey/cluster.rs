// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node of a cluster, which sends clients on to TCP ports.

use std::net::TcpListener;

use crate::server::{Server, ask};

/// Words that make a server a node. Its port of the bus is its own.
fn node() -> String {
    let bus = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let bus = bus.local_addr().expect("its address").port();
    format!("--cluster-enabled yes --cluster-port {bus}")
}

#[test]
fn a_node_of_a_cluster_does_not_start_unless_tcp_is_allowed() {
    for module in ["", "cluster-by-tcp no"] {
        let log = Server::refused(module, &node());
        let line = log.lines().find(|line| line.contains("caller: with cluster-enabled"));
        assert!(line.is_some_and(|line| line.contains("`cluster-by-tcp yes`")), "{log}");
    }
}

#[tokio::test]
async fn a_node_whose_clients_may_go_on_by_tcp_starts_and_says_what_that_means() {
    let server = Server::start_with("cluster-by-tcp yes", &node()).await;
    let mut stream = server.smt().await;
    assert_eq!(ask(&mut stream, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await, b"+OK\r\n");
    server.wait_for("cluster_enabled:1").await;
    let slots = ask(&mut stream, &["CLUSTER", "SLOTS"]).await;
    let port = format!(":{}\r\n", server.tcp);
    assert!(String::from_utf8_lossy(&slots).contains(&port), "redirections name TCP's port");
    assert!(server.log().contains("clients of SMT are sent on to TCP ports"), "{}", server.log());
}
