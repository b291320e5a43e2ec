// SPDX-License-Identifier: Apache-2.0 OR MIT
use core::time::Duration;

use smt_record::{Body, OutgoingId};
use smt_wire::{AbortCode, Geometry, InnerHeader, Kind, PacketType};

use super::*;
use crate::config::Config;
use crate::memory::buffer_pool::BufferPool;
use crate::message::client_message::{Cancelling, Content, ExpectedReply, LiveMessage};
use crate::session::stripe::tests::stripes;
use crate::time::Time;

/// Ids that each side may use.
const IDS: u32 = 64;

fn geometry() -> Geometry {
    Geometry::new(1_142, 16_384).unwrap()
}

fn retry() -> RetryTimer {
    RetryTimer::new(Time::default(), Duration::from_millis(5))
}

fn working(right: OutgoingId) -> ServerRpcState {
    ServerRpcState::Working { right, is_delivered: true }
}

/// A message that waits, with this many inner bytes.
fn outgoing(right: OutgoingId, inner: u32) -> Outgoing {
    Outgoing::new(right, Body::new(), inner, geometry(), 60_000)
}

/// A message of several records, of which the first has opened.
fn incoming() -> Box<Incoming> {
    let header = InnerHeader {
        true_length: 5_000,
        padded_length: 5_000 + InnerHeader::LEN as u32,
        kind: Kind::Request,
        deadline_us: 0,
        reply_unscheduled: 0,
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
        window: 0,
        ack: None,
    };
    let body = [0; 1_142 - InnerHeader::LEN];
    Box::new(Incoming::new(header, geometry(), 1_164, &body, &BufferPool::new(0)))
}

/// A client's lane.
struct Client(Lane);

impl Client {
    fn new() -> Self {
        Self(Lane::new(stripes(0, IDS), Salt(7)))
    }

    /// A request of this many inner bytes, with this much of its reply.
    fn request(&mut self, inner: u32, reply: Option<Box<Incoming>>) -> MessageId {
        let right = self.0.stripes.next_id().unwrap();
        let id = right.id();
        let content = Content::Request(ExpectedReply { incoming: reply, unscheduled: 60_000 });
        let live = LiveMessage::new(content, outgoing(right, inner), retry());
        self.0.client.insert(id, live);
        id
    }

    /// A request of the server, in the state that follows from the right to its reply.
    fn served(
        &mut self,
        counter: u64,
        state: impl FnOnce(OutgoingId) -> ServerRpcState,
    ) -> MessageId {
        let first = self.0.stripes.at(0).window.mark_seen(counter).unwrap();
        let id = first.id();
        let served = ServerRpc {
            state: state(first.reply_right()),
            retry: retry(),
            reply_unscheduled: 60_000,
        };
        self.0.server.insert(id.0, served);
        id
    }
}

#[test]
fn a_lane_is_idle_when_neither_side_has_a_message() {
    let mut client = Client::new();
    assert!(client.0.is_idle() && client.0.len() == 0);
    let own = client.request(100, None);
    assert!(!client.0.is_idle() && client.0.len() == 1);
    let served = client.served(0, working);
    assert_eq!(client.0.len(), 2);
    client.0.client.remove_live(own);
    assert!(!client.0.is_idle() && client.0.len() == 1);
    client.0.server.remove(served.0);
    assert!(client.0.is_idle() && client.0.len() == 0);
}

#[test]
fn a_request_of_this_side_and_a_reply_to_the_peer_leave() {
    let mut client = Client::new();
    let own = client.request(100, None);
    let replied = client.served(0, |right| ServerRpcState::Replying(outgoing(right, 200)));
    let length = |lane: &mut Lane, id| lane.outgoing_mut(id).map(|outgoing| outgoing.length());
    let expected = [100, 200].map(|inner| Some(geometry().stream_length(inner)));
    let lane = &mut client.0;
    assert_eq!([length(lane, own), length(lane, replied)], expected);
}

#[test]
fn nothing_leaves_under_an_id_whose_answer_is_not_given_or_travels_otherwise() {
    let mut client = Client::new();
    let own = client.request(100, None);
    client.0.client.cancel(own, Cancelling::new(retry()));
    let others = [
        client.served(0, |right| ServerRpcState::Receiving {
            incoming: incoming(),
            right: Some(right),
            deadline: None,
        }),
        client.served(1, working),
        client.served(2, |_| ServerRpcState::Bundled(own)),
        client.served(3, |_| ServerRpcState::Aborted(AbortCode::Dropped)),
    ];
    for id in others.into_iter().chain([own, MessageId(1_000)]) {
        assert!(client.0.outgoing_mut(id).is_none(), "{id:?}");
    }
}

#[test]
fn a_request_of_the_peer_and_a_reply_to_this_side_arrive() {
    let mut client = Client::new();
    let own = client.request(100, Some(incoming()));
    let served = client.served(0, |right| ServerRpcState::Receiving {
        incoming: incoming(),
        right: Some(right),
        deadline: None,
    });
    assert!(client.0.incoming_mut(own).is_some() && client.0.incoming_mut(served).is_some());
}

#[test]
fn nothing_arrives_under_an_id_that_waits_for_its_record_0_or_is_whole() {
    let mut client = Client::new();
    let cancelled = client.request(100, Some(incoming()));
    client.0.client.cancel(cancelled, Cancelling::new(retry()));
    let others = [
        client.request(100, None),
        client.served(1, working),
        client.served(2, |right| ServerRpcState::Replying(outgoing(right, 200))),
    ];
    for id in others.into_iter().chain([cancelled, MessageId(1_000)]) {
        assert!(client.0.incoming_mut(id).is_none(), "{id:?}");
    }
}

#[test]
fn a_message_stands_in_the_send_queue_once() {
    let mut client = Client::new();
    let (long, short) = (client.request(5_000, None), client.request(100, None));
    for id in [long, short, long, short, MessageId(1_000)] {
        client.0.queue_sendable(id);
    }
    assert_eq!(client.0.sendable.len(), 2);
    let length = geometry().stream_length(100);
    assert_eq!(client.0.sendable.pop(), Some((length, short)));
    // The queue's reader says when a message has left it.
    client.0.queue_sendable(short);
    assert_eq!(client.0.sendable.len(), 1);
    client.0.outgoing_mut(short).unwrap().is_queued = false;
    client.0.queue_sendable(short);
    assert_eq!(client.0.sendable.len(), 2);
}

#[test]
fn requests_of_the_peer_count_in_its_memory_and_those_of_this_side_do_not() {
    let mut client = Client::new();
    let shared = Shared::new(Config::default());
    client.request(100, None);
    assert_eq!(client.0.memory(&shared).served, 0);
    client.served(0, working);
    let memory = client.0.memory(&shared);
    assert_eq!((memory.served, memory.max), (1, shared.config.memory_max));
}

#[test]
fn a_lane_that_shrinks_forgets_control_packets_and_no_id() {
    let mut client = Client::new();
    let own = client.request(100, None);
    client.0.client.remove_live(own);
    let served = client.served(0, working);
    client.0.server.remove(served.0);
    client.0.control.id(PacketType::Busy, served);
    client.0.shrink_to_fit();
    assert!(client.0.control.is_empty());
    assert!(client.0.stripes.of(served).window.is_seen(0));
    assert!(client.0.stripes.issued(own).is_some());
    assert_ne!(client.request(100, None), own);
}
