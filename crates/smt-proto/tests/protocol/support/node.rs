// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint with an application that answers requests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use smt_carrier::Opened;
use smt_proto::{Config, Endpoint, Event, Failure, Metadata, RpcId, Time, TransmitBuffer};
use smt_testkit::{FakeKeyExchange, FakeTokenMac, PacketSealer};
use smt_wire::AbortCode;

use super::{body, exchanges};

/// The application's answer to a request.
pub enum Answer {
    Reply(Bytes),
    Abort(AbortCode),
    Fail(Failure),
    /// Nothing yet: the test answers itself.
    Hold,
}

/// The application: a function from requests to answers.
pub type Application = Box<dyn FnMut(&Bytes) -> Answer>;

/// One endpoint, its address and its application.
pub struct Node {
    pub endpoint: Endpoint,
    pub address: SocketAddr,
    pub application: Application,
    /// Events that a test has not taken. Requests are in `requests`.
    pub events: VecDeque<Event>,
    /// Every request and one-way message that was delivered, in order.
    pub delivered: Vec<(RpcId, Bytes)>,
    /// How many of them came as early data.
    pub early: usize,
    /// The deadlines of those that were requests.
    pub deadlines: Vec<Option<Time>>,
    /// The metadata of all that was delivered.
    pub metadata: Vec<Metadata>,
    pub buffer: TransmitBuffer,
    /// A carrier that opens records of datagrams before the endpoint gets them.
    pub opener: Option<Opener>,
    /// A carrier that seals packets.
    pub sealer: Option<Arc<PacketSealer>>,
}

/// Opens records in a datagram, in place, and says which.
pub type Opener = Box<dyn FnMut(&mut Vec<u8>) -> Vec<Opened>>;

impl Node {
    pub fn new(number: usize, config: Config) -> Self {
        Self::with_exchanges(number, config, exchanges((number as u64) << 32))
    }

    pub fn with_exchanges(number: usize, config: Config, exchanges: FakeKeyExchange) -> Self {
        let mac = Arc::new(FakeTokenMac(number as u8 + 1));
        Self {
            endpoint: Endpoint::new(config, Arc::new(exchanges), mac),
            address: address_of(number),
            application: Box::new(|request| Answer::Reply(request.clone())),
            events: VecDeque::new(),
            delivered: Vec::new(),
            early: 0,
            deadlines: Vec::new(),
            metadata: Vec::new(),
            buffer: TransmitBuffer::default(),
            opener: None,
            sealer: None,
        }
    }

    /// Lets the node's carrier seal packets.
    pub fn seal_packets(&mut self, sealer: Arc<PacketSealer>) {
        self.endpoint.set_associations(Arc::<PacketSealer>::clone(&sealer));
        self.sealer = Some(sealer);
    }

    /// Takes the endpoint's events; the application answers requests. Whether there were any.
    pub fn take_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Request { rpc, body, metadata, deadline, is_early, .. } => {
                    self.early += usize::from(is_early);
                    self.metadata.push(metadata);
                    self.deadlines.push(deadline);
                    let answer = (self.application)(&body);
                    self.delivered.push((rpc, body));
                    match answer {
                        Answer::Reply(body) => self.endpoint.reply(now, rpc, body).unwrap(),
                        Answer::Abort(code) => self.endpoint.abort(now, rpc, code).unwrap(),
                        Answer::Fail(failure) => self.endpoint.fail(now, rpc, failure).unwrap(),
                        Answer::Hold => {}
                    }
                }
                Event::OneWay { rpc, body, metadata, deadline } => {
                    self.metadata.push(metadata.clone());
                    self.delivered.push((rpc, body.clone()));
                    self.events.push_back(Event::OneWay { rpc, body, metadata, deadline });
                }
                event => self.events.push_back(event),
            }
        }
        any
    }

    /// The first untaken event that fits, taken.
    pub fn event<T>(&mut self, fits: impl Fn(&Event) -> Option<T>) -> Option<T> {
        let (at, found) = self
            .events
            .iter()
            .enumerate()
            .find_map(|(at, event)| fits(event).map(|found| (at, found)))?;
        self.events.remove(at);
        Some(found)
    }
}

/// A request is a length: the reply has so many bytes.
pub fn replies_of_asked_length() -> Application {
    Box::new(|request| {
        let length = u32::from_be_bytes(request[..4].try_into().unwrap());
        Answer::Reply(body(u64::from(length), length as usize))
    })
}

/// The address of node `number`.
pub fn address_of(number: usize) -> SocketAddr {
    format!("192.0.{}.1:17379", number + 2).parse().unwrap()
}
