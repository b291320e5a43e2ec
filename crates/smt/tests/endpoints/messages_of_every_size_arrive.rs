// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of 0 bytes to 64 MiB, both ways, with every kind of endpoint.

use smt::UdpOptions;

use crate::support::payload::payload;
use crate::support::polled_pair::{PolledClient, PolledServer};
use crate::support::{
    Credentials, assert_echo, connect, echo, echo_pair, echo_server, on_every_runtime, serve,
};

/// The edges of record 0, of the unscheduled bytes, and of records.
const SIZES: [usize; 16] = [
    0, 1, 7, 1_101, 1_102, 1_103, 1_142, 1_200, 16_384, 17_485, 17_486, 17_487, 59_000, 60_001,
    1_000_003, 5_000_000,
];
const LARGEST: usize = 64 << 20;

#[test]
fn messages_between_blocking_endpoints_arrive() {
    let (client, _server) = echo_pair();
    for size in SIZES {
        assert_echo(&client, payload(1, size));
    }
}

#[test]
fn the_largest_messages_arrive_both_ways() {
    let (client, server) = echo_pair();
    assert_echo(&client, payload(1, LARGEST));
    assert_eq!(client.statistics().memory, 0);
    assert_eq!(server.statistics().memory, 0);
}

#[test]
fn sizes_of_request_and_reply_are_independent() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| {
        let wanted: [u8; 4] = request.body()[..4].try_into().unwrap();
        let size = u32::from_be_bytes(wanted) as usize;
        request.reply(payload(2, size)).unwrap();
    });
    let client = connect(&credentials, server.local_address());
    for (ask, answer) in [(4, 3_000_000), (3_000_000, 0), (4, LARGEST), (LARGEST, 4)] {
        let mut body = payload(1, ask);
        body[..4].copy_from_slice(&(answer as u32).to_be_bytes());
        let reply = client.call(body).wait().unwrap();
        assert!(reply == payload(2, answer), "{ask} {answer}");
    }
}

#[tokio::test]
async fn messages_between_tasks_on_one_thread_arrive() {
    tokio_echoes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_between_tasks_on_many_threads_arrive() {
    tokio_echoes().await;
}

async fn tokio_echoes() {
    let credentials = Credentials::new();
    let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            echo(request);
        }
    });
    let client = credentials.client().connect(address).await.unwrap();
    for size in SIZES.into_iter().chain([LARGEST]) {
        let body = payload(1, size);
        let reply = client.call(body.clone()).await.unwrap();
        assert!(reply == body, "{size}");
    }
}

#[test]
fn messages_between_polled_endpoints_arrive() {
    let credentials = Credentials::new();
    let server = PolledServer::echoing(credentials.server().bind_polled("127.0.0.1:0").unwrap());
    let endpoint = credentials.client().open_polled("127.0.0.1:0").unwrap();
    let mut client = PolledClient::new(endpoint, server.address);
    for size in SIZES.into_iter().chain([LARGEST]) {
        let body = payload(1, size);
        assert!(client.call(body.clone()).unwrap() == body, "{size}");
    }
}

#[test]
fn every_kind_of_client_is_served_by_every_kind_of_server() {
    let credentials = Credentials::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let for_threads = echo_server(&credentials);
    let for_tasks = runtime.block_on(credentials.server().bind("127.0.0.1:0")).unwrap();
    let polled = PolledServer::echoing(credentials.server().bind_polled("127.0.0.1:0").unwrap());
    let addresses = [for_threads.local_address(), for_tasks.local_address(), polled.address];
    runtime.spawn(async move {
        while let Some(request) = for_tasks.accept_request().await {
            echo(request);
        }
    });
    for address in addresses {
        assert_echo(&connect(&credentials, address), payload(1, 100_000));
        let reply = runtime.block_on(async {
            let client = credentials.client().connect(address).await.unwrap();
            client.call(payload(2, 100_000)).await.unwrap()
        });
        assert!(reply == payload(2, 100_000));
        let endpoint = credentials.client().open_polled("127.0.0.1:0").unwrap();
        let mut client = PolledClient::new(endpoint, address);
        assert!(client.call(payload(3, 100_000)).unwrap() == payload(3, 100_000));
    }
}

#[test]
fn messages_arrive_without_offloads() {
    let plain = || UdpOptions::new().segmentation_offload(false).receive_offload(false);
    let with = UdpOptions::new;
    let credentials = Credentials::new();
    for (ours, theirs) in [(plain(), plain()), (plain(), with()), (with(), plain())] {
        let server = credentials.server().udp(theirs).bind_blocking("127.0.0.1:0").unwrap();
        serve(&server, 2, echo);
        let client =
            credentials.client().udp(ours).connect_blocking(server.local_address()).unwrap();
        for size in [0, 1_142, 60_001, 5_000_000] {
            assert_echo(&client, payload(1, size));
        }
    }
}

#[test]
fn a_body_may_be_a_chain_of_buffers_and_has_metadata_beside_it() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, |request| {
        let method = request.metadata().get("method").map(<[u8]>::to_vec);
        let header = smt::Bytes::from(method.unwrap_or_default());
        let body = request.body().clone();
        request.reply([header, body]).unwrap();
    });
    let client = connect(&credentials, server.local_address());
    let mut metadata = smt::Metadata::new();
    metadata.push("method", b"put").unwrap();
    metadata.push("trace", &[0; 16]).unwrap();
    let chain = ["a header, ", "a payload"].map(smt::Bytes::from);
    let call = client.call(chain).metadata(metadata);
    assert_eq!(call.wait().unwrap(), "puta header, a payload");
    let number = client.call(7_u16.to_be_bytes()).wait().unwrap();
    assert_eq!(number, [0, 7].as_slice());
}

/// Answers with metadata of its own: the request's, and how long the request was.
fn reply_with_metadata(request: smt::Request) {
    let mut metadata = request.metadata().clone();
    let length = request.body().len().to_string();
    metadata.push("length", length.as_bytes()).unwrap();
    let reply = smt::OutgoingMessage::new("done").with_metadata(metadata);
    request.reply(reply).unwrap();
}

fn trace() -> smt::Metadata {
    let mut metadata = smt::Metadata::new();
    metadata.push("trace", b"7").unwrap();
    metadata
}

fn assert_has_metadata(reply: &smt::Reply) {
    assert_eq!(reply.body, "done");
    let entries: Vec<_> = reply.metadata.iter().collect();
    let expected = [("trace", b"7".as_slice()), ("length", b"5")];
    assert_eq!(entries, expected);
}

#[test]
fn the_metadata_of_a_reply_reaches_a_thread() {
    let credentials = Credentials::new();
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, reply_with_metadata);
    let client = connect(&credentials, server.local_address());
    let call = client.call("hello").metadata(trace());
    assert_has_metadata(&call.wait_reply().unwrap());
    assert_eq!(client.call("hello").wait().unwrap(), "done");
}

#[test]
fn the_metadata_of_a_reply_reaches_a_task() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                reply_with_metadata(request);
            }
        });
        let client = credentials.client().connect(address).await.unwrap();
        let call = client.call("hello").metadata(trace());
        assert_has_metadata(&call.reply().await.unwrap());
        assert_eq!(client.call("hello").await.unwrap(), "done");
    });
}
