// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The senders and readers of parts whose call is over, and readers that follow each other.

use std::time::Duration;

use smt::{Client, Error, ErrorKind, Execution, Fault, PartSender, Refused, Request, Server};

use crate::support::{Credentials, on_every_runtime};

async fn pair(credentials: &Credentials) -> (Server, Client) {
    let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
    let client = credentials.client().connect(server.local_address()).await;
    (server, client.unwrap())
}

/// Sends parts until one is not accepted. The call ends meanwhile, or has ended.
async fn failure(sender: &mut PartSender) -> Error {
    loop {
        if let Err(error) = sender.send("part").await {
            return error;
        }
    }
}

/// Runs a call in parts which the server ends so, and gives the failure of its sender and the
/// outcome of its reader.
async fn ended_by(end: impl AsyncFnOnce(&Server, Request)) -> (Error, Result<smt::Reply, Error>) {
    let credentials = Credentials::new();
    let (server, client) = pair(&credentials).await;
    let (mut sender, reply) = client.call("upload").in_parts().await.unwrap();
    end(&server, server.accept_request().await.unwrap()).await;
    (failure(&mut sender).await, reply.reply().await)
}

/// The sender and the reader of a call are told the same.
fn assert_same(sent: &Error, reply: Result<smt::Reply, Error>) {
    let read = reply.unwrap_err();
    assert_eq!((sent.kind(), sent.phase()), (read.kind(), read.phase()));
    assert_eq!(sent.to_string(), read.to_string());
}

#[test]
fn a_sender_whose_call_has_failed_gets_the_error_of_the_call() {
    on_every_runtime(async || {
        let (sent, reply) = ended_by(async |_, request| request.fail(500, "half of it")).await;
        assert_eq!(sent.execution(), Execution::MayHaveRun, "{sent}");
        assert_eq!(sent.answer().unwrap().text, "half of it");
        assert_same(&sent, reply);
        let (sent, reply) = ended_by(async |_, request| request.refuse(403, "not you")).await;
        assert_eq!(sent.execution(), Execution::DidNotRun, "{sent}");
        assert_eq!(sent.refusal().unwrap().code, 403);
        assert_same(&sent, reply);
        let (sent, reply) = ended_by(async |_, request| drop(request)).await;
        assert_eq!(sent.execution(), Execution::MayHaveRun, "{sent}");
        assert_same(&sent, reply);
        let (sent, reply) = ended_by(async |server, request| {
            server.close(Duration::ZERO).await;
            drop(request);
        })
        .await;
        assert_eq!(sent.execution(), Execution::MayHaveRun, "{sent}");
        assert_same(&sent, reply);
    });
}

#[test]
fn a_sender_whose_call_has_its_reply_may_have_run_and_has_nothing_to_finish() {
    on_every_runtime(async || {
        let (sent, reply) = ended_by(async |_, request| request.reply("enough").unwrap()).await;
        assert_eq!(sent.execution(), Execution::MayHaveRun, "{sent}");
        assert_eq!(sent.kind(), &ErrorKind::CallOver);
        assert!(sent.to_string().starts_with("part of the call with 127.0.0.1:"), "{sent}");
        assert_eq!(reply.unwrap().body, "enough");

        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let (sender, reply) = client.call("upload").in_parts().await.unwrap();
        server.accept_request().await.unwrap().reply("enough").unwrap();
        while client.statistics().protocol.messages_delivered < 1 {
            tokio::task::yield_now().await;
        }
        sender.finish().await.unwrap();
        assert_eq!(reply.reply().await.unwrap().body, "enough");
    });
}

#[test]
fn a_part_that_is_too_long_does_not_make_a_request_one_that_did_not_run() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let (mut sender, _reply) = client.call("upload").in_parts().await.unwrap();
        let _request = server.accept_request().await.unwrap();
        let error = sender.send(vec![0; sender.part_max() + 1]).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused(Refused::TooLarge { .. })), "{error}");
        assert_eq!(error.execution(), Execution::MayHaveRun);
    });
}

#[test]
fn a_handler_whose_caller_has_given_up_is_told_that_the_peer_has() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let (sender, reply) = client.call("upload").in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        drop((sender, reply));
        let error = request.parts().next_part().await.unwrap_err();
        assert_eq!(error.fault(), Fault::Peer, "{error}");
        assert!(error.to_string().contains("answered or given up"), "{error}");
        let error = request.reply("late").unwrap_err();
        assert_eq!(error.fault(), Fault::Peer, "{error}");
    });
}

#[test]
fn parts_for_a_caller_that_wants_a_whole_reply_are_refused_with_that_reason() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let call = tokio::spawn(async move { client.call("whole").await });
        let request = server.accept_request().await.unwrap();
        let error = request.part_sender().send("part").await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Refused(Refused::NoParts), "{error}");
        request.reply("whole").unwrap();
        assert_eq!(call.await.unwrap().unwrap(), "whole");
    });
}

#[test]
fn a_reader_goes_on_where_the_one_before_was_dropped() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let (mut sender, reply) = client.call("upload").in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        let sending = tokio::spawn(async move {
            for number in 0..100_u8 {
                sender.send(vec![number]).await.unwrap();
            }
            sender.finish().await.unwrap();
        });
        assert_eq!(request.parts().next_part().await.unwrap().unwrap(), vec![0]);
        // The others are there, so that a reader takes many at once.
        while server.statistics().protocol.parts_delivered < 100 {
            tokio::task::yield_now().await;
        }
        for number in 1..100_u8 {
            assert_eq!(request.parts().next_part().await.unwrap().unwrap(), vec![number]);
        }
        sending.await.unwrap();
        assert_eq!(request.parts().next_part().await.unwrap(), None);
        request.reply("all").unwrap();
        assert_eq!(reply.reply().await.unwrap().body, "all");
    });
}

#[test]
fn a_second_reader_beside_the_first_is_told_so_and_takes_nothing() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let (mut sender, _reply) = client.call("upload").in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        let (mut first, mut second) = (request.parts(), request.parts());
        let error = second.next_part().await.unwrap_err();
        assert_eq!((error.kind(), error.fault()), (&ErrorKind::PartsAreRead, Fault::Caller));
        let (sent, part) = tokio::join!(sender.send("part"), first.next_part());
        assert_eq!((sent.is_ok(), part.unwrap().unwrap()), (true, "part".into()));
        drop(first);
        sender.send("another").await.unwrap();
        assert_eq!(second.next_part().await.unwrap().unwrap(), "another");
    });
}
