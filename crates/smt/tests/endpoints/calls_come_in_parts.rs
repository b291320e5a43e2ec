// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and replies in parts, for tasks and for threads.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use smt::{Bytes, Client, Error, Request, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::forwarder::Forwarder;
use crate::support::lossy::lossy;
use crate::support::payload;
use crate::support::random::seed;
use crate::support::{Credentials, connect, eventually, on_every_runtime, serve};

/// A server and a client of it, for tasks.
async fn pair(credentials: &Credentials) -> (Server, Client) {
    let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
    let client = credentials.client().connect(server.local_address()).await;
    (server, client.unwrap())
}

fn parts(count: u64) -> impl Iterator<Item = Bytes> {
    (0..count).map(|number| payload::payload(number, 8 + (number as usize * 7_919) % 60_000).into())
}

/// Answers a request by so many parts, and then by their number.
async fn answer_in_parts(request: Request, count: u64) -> Result<(), Error> {
    let mut sender = request.part_sender();
    for part in parts(count) {
        sender.send(part).await?;
    }
    request.reply(count.to_be_bytes())
}

/// Sends a request's parts back, as they come.
async fn echo_parts(request: Request) -> Result<(), Error> {
    let (mut asked, mut answered) = (request.parts(), request.part_sender());
    while let Some(part) = asked.next_part().await? {
        answered.send(part).await?;
    }
    request.reply("end")
}

/// Answers every request by a task of its own.
fn serve_with<F>(server: &Server, answer: impl Fn(Request) -> F + Send + 'static)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            tokio::spawn(answer(request));
        }
    });
}

#[test]
fn a_reply_of_many_parts_is_read_in_order() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        serve_with(&server, |request| answer_in_parts(request, 200));
        let mut reply = client.call("list").reply_in_parts().await.unwrap();
        for part in parts(200) {
            assert!(reply.next_part().await.unwrap().unwrap() == part);
        }
        assert_eq!(reply.next_part().await.unwrap(), None);
        assert_eq!(reply.next_part().await.unwrap(), None, "the end stays");
        assert_eq!(reply.reply().await.unwrap().body, 200_u64.to_be_bytes()[..]);
    });
}

#[test]
fn many_calls_in_parts_go_both_ways_side_by_side() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        serve_with(&server, echo_parts);
        let calls = (0..50).map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let (mut sender, mut reply) = client.call("echo").in_parts().await.unwrap();
                for part in parts(20) {
                    sender.send(part.clone()).await.unwrap();
                    assert!(reply.next_part().await.unwrap().unwrap() == part);
                }
                sender.finish().await.unwrap();
                assert_eq!(reply.reply().await.unwrap().body, "end");
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
}

#[test]
fn threads_send_and_read_parts() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, |request| {
        let (mut asked, mut answered) = (request.parts(), request.part_sender());
        while let Some(part) = asked.blocking_next_part().unwrap() {
            answered.blocking_send(part).unwrap();
        }
        request.reply("end").unwrap();
    });
    let client = connect(&credentials, server.local_address());
    let (mut sender, mut reply) = client.call("echo").in_parts().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            parts(300).for_each(|part| sender.blocking_send(part).unwrap());
            sender.blocking_finish().unwrap();
        });
        for part in parts(300) {
            assert!(reply.blocking_next_part().unwrap().unwrap() == part);
        }
        assert_eq!(reply.blocking_reply().unwrap().body, "end");
    });
}

/// The bytes of a long file, computed as they are read.
struct File {
    at: u64,
    length: u64,
}

impl tokio::io::AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let most = buffer.remaining().min(65_536).min((self.length - self.at) as usize);
        let bytes: Vec<u8> = (self.at..).take(most).map(byte_at).collect();
        buffer.put_slice(&bytes);
        self.at += most as u64;
        Poll::Ready(Ok(()))
    }
}

fn byte_at(at: u64) -> u8 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// To read no bytes means the end.
#[test]
fn an_empty_part_is_not_the_end_of_a_stream_of_bytes() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        serve_with(&server, async |request: Request| {
            let mut read = String::new();
            request.parts().into_reader().read_to_string(&mut read).await.unwrap();
            request.reply(read)
        });
        let (mut sender, reply) = client.call("join").in_parts().await.unwrap();
        for part in ["one ", "", "two"] {
            sender.send(part).await.unwrap();
        }
        sender.finish().await.unwrap();
        assert_eq!(reply.reply().await.unwrap().body, "one two");
    });
}

/// A file of any length goes up, and down again, in bounded memory.
#[test]
fn a_file_is_copied_through_in_bounded_memory() {
    const LENGTH: u64 = 40_000_000;
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        serve_with(&server, async |request: Request| {
            let mut asked = request.parts().into_reader();
            let mut answered = request.part_sender();
            let copied = tokio::io::copy(&mut asked, &mut answered).await.unwrap();
            request.reply(copied.to_be_bytes())
        });
        let (mut sender, reply) = client.call("copy").in_parts().await.unwrap();
        let sending = tokio::spawn(async move {
            let mut file = File { at: 0, length: LENGTH };
            tokio::io::copy(&mut file, &mut sender).await.unwrap();
            sender.shutdown().await.unwrap();
        });
        let mut reader = reply.into_reader();
        let (mut at, mut most) = (0, 0);
        let mut buffer = vec![0; 100_000];
        loop {
            let length = reader.read(&mut buffer).await.unwrap();
            if length == 0 {
                break;
            }
            let is_same = (at..).zip(&buffer[..length]).all(|(at, byte)| byte_at(at) == *byte);
            assert!(is_same, "before byte {}", at + length as u64);
            at += length as u64;
            let memory = [client.statistics().memory, server.statistics().memory];
            most = most.max(memory[0]).max(memory[1]);
        }
        sending.await.unwrap();
        assert_eq!(at, LENGTH);
        let copied = reader.into_inner().reply().await.unwrap().body;
        assert_eq!(copied, LENGTH.to_be_bytes()[..]);
        // The window, and a part that comes beside it.
        assert!(most < 1_000_000, "{most} B");
    });
}

#[test]
fn parts_are_a_stream_and_a_sink() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        serve_with(&server, echo_parts);
        let (sender, mut reply) = client.call("echo").in_parts().await.unwrap();
        let sending = tokio::spawn(async move {
            let mut sink = sender.into_sink();
            for part in parts(100) {
                send(&mut sink, part).await.unwrap();
            }
            close(&mut sink).await.unwrap();
        });
        for part in parts(100) {
            assert!(next(&mut reply).await.unwrap().unwrap() == part);
        }
        assert!(next(&mut reply).await.is_none());
        sending.await.unwrap();
    });
}

async fn send(sink: &mut smt::parts::PartSink, part: Bytes) -> Result<(), Error> {
    use futures_sink::Sink;
    poll_fn(|context| Sink::<Bytes>::poll_ready(Pin::new(sink), context)).await?;
    Sink::start_send(Pin::new(sink), part)
}

async fn close(sink: &mut smt::parts::PartSink) -> Result<(), Error> {
    use futures_sink::Sink;
    poll_fn(|context| Sink::<Bytes>::poll_close(Pin::new(sink), context)).await
}

async fn next(parts: &mut smt::ReplyParts) -> Option<Result<Bytes, Error>> {
    use futures_core::Stream;
    poll_fn(|context| Pin::new(&mut *parts).poll_next(context)).await
}

#[test]
fn a_reader_that_is_dropped_cancels_its_call() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let mut reply = client.call("list").reply_in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        let mut sender = request.part_sender();
        sender.send("part").await.unwrap();
        assert_eq!(reply.next_part().await.unwrap().unwrap(), "part");
        drop(reply);
        request.cancelled().await;
        let error = sender.send("part").await.unwrap_err();
        assert_eq!(error.phase(), smt::Phase::Part);
    });
}

#[test]
fn a_request_that_is_cut_short_does_not_look_whole() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let (mut sender, reply) = client.call("store").in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        let mut parts = request.parts();
        let (sent, part) = tokio::join!(sender.send("part"), parts.next_part());
        sent.unwrap();
        assert_eq!(part.unwrap().unwrap(), "part");
        drop(sender);
        parts.next_part().await.unwrap_err();
        reply.reply().await.unwrap_err();
    });
}

#[test]
fn a_call_whose_server_gives_up_fails_behind_what_has_come() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let mut reply = client.call("list").reply_in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        request.part_sender().send("part").await.unwrap();
        request.fail(7, "disk full");
        assert_eq!(reply.next_part().await.unwrap().unwrap(), "part");
        let error = reply.next_part().await.unwrap_err();
        assert!(error.to_string().contains("disk full"), "{error}");
    });
}

// SMT [5.9-20]
#[test]
fn parts_that_have_come_are_read_before_the_error_whatever_has_ended_the_call() {
    #[derive(Clone, Copy)]
    enum End {
        Dropped,
        Failed,
        Closed,
    }
    on_every_runtime(async || {
        let credentials = Credentials::new();
        for end in [End::Dropped, End::Failed, End::Closed] {
            let (server, client) = pair(&credentials).await;
            let mut reply = client.call("watch").reply_in_parts().await.unwrap();
            let request = server.accept_request().await.unwrap();
            let mut sender = request.part_sender();
            for part in parts(5) {
                sender.send(part).await.unwrap();
            }
            while client.statistics().protocol.parts_delivered < 5 {
                tokio::task::yield_now().await;
            }
            match end {
                End::Dropped => drop(request),
                End::Failed => request.fail(7, "disk full"),
                End::Closed => server.close(Duration::ZERO).await,
            }
            for part in parts(5) {
                assert!(reply.next_part().await.unwrap().unwrap() == part);
            }
            for _ in 0..2 {
                reply.next_part().await.unwrap_err();
            }
        }
    });
}

#[test]
fn a_failure_stays_however_often_a_reader_asks() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let mut reply = client.call("list").reply_in_parts().await.unwrap();
        let mut stream = client.call("list").reply_in_parts().await.unwrap();
        for _ in 0..2 {
            server.accept_request().await.unwrap().fail(7, "disk full");
        }
        for _ in 0..2 {
            let error = reply.next_part().await.unwrap_err();
            assert!(error.to_string().contains("disk full"), "{error}");
        }
        reply.reply().await.unwrap_err();
        next(&mut stream).await.unwrap().unwrap_err();
        assert!(next(&mut stream).await.is_none(), "the error is the last");
        stream.reply().await.unwrap_err();
    });
}

#[test]
fn parts_that_are_not_taken_are_refused_with_words() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let calling = client.clone();
        let call = tokio::spawn(async move { calling.call("whole").await });
        let request = server.accept_request().await.unwrap();
        assert!(!request.takes_parts());
        assert_eq!(request.parts().next_part().await.unwrap(), None);
        request.part_sender().send("part").await.unwrap_err();
        request.reply("whole").unwrap();
        assert_eq!(call.await.unwrap().unwrap(), "whole");

        let reply = client.call("list").reply_in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        let mut sender = request.part_sender();
        let error = sender.send(vec![0; sender.part_max() + 1]).await.unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
        request.reply("none").unwrap();
        assert_eq!(reply.reply().await.unwrap().body, "none");
    });
}

#[test]
fn a_server_without_parts_says_so_before_anything_is_sent() {
    let credentials = Credentials::new();
    let server = credentials.server().configure(|config| config.part_window = 0);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let error = client.call("list").reply_in_parts().unwrap_err();
    assert!(error.to_string().contains("takes no parts in this call"), "{error}");
    assert!(!error.is_transient());
}

#[test]
fn a_deadline_ends_a_reply_that_stops() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let (server, client) = pair(&credentials).await;
        let call = client.call("list").deadline(Duration::from_millis(50));
        let mut reply = call.reply_in_parts().await.unwrap();
        let request = server.accept_request().await.unwrap();
        request.part_sender().send("part").await.unwrap();
        assert_eq!(reply.next_part().await.unwrap().unwrap(), "part");
        let error = reply.next_part().await.unwrap_err();
        assert!(error.to_string().contains("deadline"), "{error}");
        request.cancelled().await;
    });
}

#[test]
fn an_end_of_the_endpoint_wakes_readers_and_senders() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let client = connect(&credentials, server.local_address());
    let (mut sender, mut reply) = client.call("echo").in_parts().unwrap();
    let reading = std::thread::spawn(move || reply.blocking_next_part().is_err());
    // The server never reads: no window opens.
    let sending = std::thread::spawn(move || sender.blocking_send("part").is_err());
    eventually("the request has come", || server.statistics().protocol.messages_delivered > 0);
    drop(server.accept());
    client.close(Duration::ZERO);
    assert!(reading.join().unwrap() && sending.join().unwrap());
}

#[test]
fn parts_arrive_in_order_through_loss() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| {
        let mut sender = request.part_sender();
        parts(200).for_each(|part| sender.blocking_send(part).unwrap());
        request.reply("end").unwrap();
    });
    let forwarder = Forwarder::new(server.local_address(), lossy(seed()));
    let client = connect(&credentials, forwarder.address());
    let mut reply = client.call("list").reply_in_parts().unwrap();
    for part in parts(200) {
        assert!(reply.blocking_next_part().unwrap().unwrap() == part);
    }
    assert_eq!(reply.blocking_reply().unwrap().body, "end");
}
