// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::message::client_message::{Content, ExpectedReply};
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;
use core::time::Duration;
use smt_record::{IdAllocator, IdLayout, Side};
use smt_wire::Geometry;
use std::prelude::v1::*;

const LAYOUT: IdLayout = IdLayout { id_bits: 47, stripes_log2: 0 };

fn retry() -> RetryTimer {
    RetryTimer::new(Time::default(), Duration::from_millis(5))
}

/// Messages of a client, and the ids that they get.
struct Client {
    messages: ClientMessages,
    ids: IdAllocator,
}

impl Client {
    fn new() -> Self {
        Self {
            messages: ClientMessages::new(Salt(7)),
            ids: IdAllocator::new(LAYOUT, Side::Client, 0),
        }
    }

    fn insert(&mut self, content: Content) -> MessageId {
        let right = self.ids.next(100).unwrap();
        let (id, geometry) = (right.id(), Geometry::new(1_142, 1_400).unwrap());
        let outgoing = Outgoing::new(right, b"text".into(), 26, geometry, 60_000);
        let live = LiveMessage::new(content, outgoing, retry());
        self.messages.insert(id, live);
        id
    }

    fn request(&mut self) -> MessageId {
        self.insert(Content::Request(ExpectedReply { incoming: None, unscheduled: 60_000 }))
    }

    fn bundle(&mut self) -> MessageId {
        self.insert(Content::Bundle(Box::default()))
    }
}

#[test]
fn bundles_count_until_they_have_arrived_or_their_cancelling_is_answered() {
    let mut client = Client::new();
    let (first, second) = (client.bundle(), client.bundle());
    client.request();
    assert_eq!(client.messages.bundles(), 2);
    assert!(client.messages.remove_live(first).is_some());
    assert_eq!(client.messages.bundles(), 1);
    assert!(client.messages.cancel(second, Cancelling::new(retry())).is_some());
    assert_eq!(client.messages.bundles(), 1);
    client.messages.end_cancelling(second);
    assert_eq!((client.messages.bundles(), client.messages.len()), (0, 1));
}

#[test]
fn a_cancelled_message_is_not_live_and_is_cancelled_once() {
    let mut client = Client::new();
    let id = client.request();
    client.messages.end_cancelling(id);
    assert!(client.messages.live(id).is_some(), "it is not cancelled");
    assert!(client.messages.cancel(id, Cancelling::new(retry())).is_some());
    assert!(client.messages.cancel(id, Cancelling::new(retry())).is_none());
    assert!(client.messages.live(id).is_none() && client.messages.remove_live(id).is_none());
    assert!(client.messages.take_request(id, |_| Some(())).is_none());
    assert_eq!(client.messages.iter_live().count(), 0);
    assert_eq!(client.messages.drain_live().count(), 0);
}

#[test]
fn a_member_has_left_when_its_bundle_has() {
    let mut client = Client::new();
    let (member, bundle) = (client.request(), client.bundle());
    let live = client.messages.live_mut(member).unwrap();
    live.outgoing = None;
    live.bundle = Some(bundle);
    assert_eq!(client.messages.carrier_of(member), bundle);
    assert_eq!(client.messages.carrier_of(bundle), bundle);
    let has_left = |messages: &ClientMessages| messages.has_left(messages.live(member).unwrap());
    assert!(!has_left(&client.messages));
    client.messages.live_mut(bundle).unwrap().outgoing = None;
    assert!(has_left(&client.messages));
}

#[test]
fn a_reply_ends_a_request_and_no_other_message() {
    let mut client = Client::new();
    let (request, one_way) = (client.request(), client.insert(Content::OneWay));
    let bundle = client.bundle();
    for id in [one_way, bundle] {
        assert!(client.messages.take_request(id, |_| Some(())).is_none());
    }
    assert!(client.messages.take_request(request, |_| None::<()>).is_none());
    assert!(client.messages.take_request(request, |_| Some(())).is_some());
    assert!(client.messages.get_mut(request).is_none());
}
