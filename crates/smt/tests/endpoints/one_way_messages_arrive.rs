// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-way messages: delivered once each, and the sender knows.

use std::collections::HashSet;
use std::sync::mpsc;

use crate::support::payload::{number_of, payload};
use crate::support::{Credentials, connect, echo, eventually, on_every_runtime};

#[test]
fn each_one_way_message_is_delivered_once() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let (delivered, deliveries) = mpsc::channel();
    let accepting = server.clone();
    std::thread::spawn(move || {
        while let Some(message) = accepting.accept() {
            let message = message.into_message().unwrap();
            let body = message.body();
            assert!(*body == payload(number_of(body), body.len()));
            delivered.send(number_of(body)).unwrap();
        }
    });
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..250 {
                    let number = thread << 32 | round;
                    client.send(payload(number, 8 + round as usize * 300)).wait().unwrap();
                }
            });
        }
    });
    let numbers: Vec<u64> = deliveries.try_iter().chain(deliveries.iter()).take(1_000).collect();
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 1_000);
    assert!(deliveries.try_recv().is_err());
}

#[test]
fn one_way_messages_arrive_with_tokio() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let client = credentials.client().connect(server.local_address()).await.unwrap();
        let sending = client.clone();
        let sender = tokio::spawn(async move {
            for number in 0..100 {
                sending.send(payload(number, 70_000)).await.unwrap();
            }
        });
        for number in 0..100 {
            let message = server.accept().await.unwrap();
            assert!(*message.body() == payload(number, 70_000));
        }
        sender.await.unwrap();
    });
}

#[test]
fn one_way_messages_are_dropped_where_requests_alone_are_accepted_and_counted() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve_requests(&server);
    let client = connect(&credentials, server.local_address());
    for _ in 0..3 {
        client.send("news").wait().unwrap();
    }
    assert_eq!(client.call("hello").wait().unwrap(), "hello");
    eventually("all were dropped", || server.statistics().messages_dropped == 3);
}

fn serve_requests(server: &smt::blocking::Server) {
    let server = server.clone();
    std::thread::spawn(move || {
        while let Some(request) = server.accept_request() {
            echo(request);
        }
    });
}
