// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that are answered badly, or not at all.

use std::time::Duration;

use smt::Fault::{Caller, Limit, Peer};
use smt::{CallFailure, ErrorKind, Request};

use crate::bystander::Bystander;
use crate::misuse::{Misuse, Told, failed, misuse, observed};

/// The caller learns this if its request is dealt with so.
fn answered(by: &Bystander, answer: impl FnOnce(Request) + Send + 'static) -> Told {
    let (server, client) = by.pair();
    let serving = std::thread::spawn(move || {
        answer(server.accept_request().unwrap());
        // Until the client is gone, the server is there.
        while server.statistics().sessions > 0 {
            std::thread::yield_now();
        }
    });
    let told = failed(client.call("a").wait());
    drop(client);
    serving.join().unwrap();
    told
}

/// The server learns this of a reply, where the client has so much time and takes so much.
fn replied(
    by: &Bystander,
    limit: u32,
    reply: impl FnOnce(Request) -> Result<(), smt::Error>,
) -> Told {
    let (server, client) =
        by.pair_of(by.server_builder(), by.client_builder().message_limit(limit));
    let calling = std::thread::spawn(move || {
        let _ = client.call("a").deadline(Duration::from_millis(100)).wait();
        client
    });
    let told = failed(reply(server.accept_request().unwrap()));
    calling.join().unwrap();
    told
}

pub(crate) fn table() -> Vec<Misuse> {
    vec![
        misuse("a request that is dropped", Peer, "without a reply; the request may have", |by| {
            answered(by, drop)
        }),
        misuse("a handler that panics", Peer, "MayHaveRun", |by| {
            answered(by, |request| {
                let handling = std::thread::Builder::new().spawn(move || {
                    let _request = request;
                    std::panic::resume_unwind(Box::new("the handler's fault"));
                });
                assert!(handling.unwrap().join().is_err());
            })
        }),
        misuse("a refusal", Peer, "no such key (code 7)", |by| {
            answered(by, |request| request.refuse(7, "no such key"))
        }),
        misuse("a refusal without words", Peer, "code 0", |by| {
            answered(by, |request| request.refuse(0, ""))
        }),
        misuse("a failure", Peer, "MayHaveRun", |by| {
            answered(by, |request| request.fail(9, "the disk is full"))
        }),
        misuse("a refusal of a page of text", None, "1024 bytes of text", |by| {
            let (server, client) = by.pair();
            let serving = std::thread::spawn(move || {
                let request = server.accept_request().unwrap();
                request.refuse(1, "x".repeat(5_000));
                while server.statistics().sessions > 0 {
                    std::thread::yield_now();
                }
            });
            let error = client.call("a").wait().unwrap_err();
            drop(client);
            serving.join().unwrap();
            let ErrorKind::Call(call) = error.kind() else {
                return error.into();
            };
            match &call.reason {
                CallFailure::Refused(refusal) => {
                    observed(format!("{} bytes of text", refusal.text.len()))
                }
                _ => error.into(),
            }
        }),
        misuse("a reply that its caller does not take", Limit, "at most 1000", |by| {
            replied(by, 1_000, |request| request.reply(vec![0; 1_001]))
        }),
        misuse("a reply to a caller that has given up", Peer, "answered or given up", |by| {
            replied(by, 1_000, |request| {
                while !request.is_cancelled() {
                    std::thread::yield_now();
                }
                request.reply("late")
            })
        }),
        misuse("a reply after the server was closed", Caller, "shut down", |by| {
            let (server, client) = by.pair();
            let calling = std::thread::spawn(move || drop(client.call("a").wait()));
            let request = server.accept_request().unwrap();
            server.close(Duration::ZERO);
            let told = failed(request.reply("late"));
            calling.join().unwrap();
            told
        }),
        misuse("a message where requests alone are taken", None, "1 dropped", |by| {
            let (server, client) = by.pair();
            let accepting = {
                let server = server.clone();
                std::thread::spawn(move || server.accept_request())
            };
            client.send("a").wait().unwrap();
            while server.statistics().messages_dropped == 0 {
                std::thread::yield_now();
            }
            let told = observed(format!("{} dropped", server.statistics().messages_dropped));
            server.close(Duration::ZERO);
            assert!(accepting.join().unwrap().is_none());
            told
        }),
        misuse("a message taken for a request", None, "no request", |by| {
            let (server, client) = by.pair();
            let accepting = std::thread::spawn(move || server.accept().unwrap().into_request());
            client.send("a").wait().unwrap();
            let request = accepting.join().unwrap();
            observed(if request.is_none() { "no request" } else { "a request" })
        }),
    ]
}
