// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients, and replies to them.

use std::sync::Arc;

use smt_replica::{Reply, ReplyProof, Request, Service};

use crate::configuration::Configuration;
use crate::log::Entry;
use crate::message::Message;
use crate::node::{Node, Output, Pending};
use crate::rule::Rule;

impl<S: Service + Clone> Node<S> {
    /// Takes a client's request, which waits then.
    pub(crate) fn take_request(&mut self, request: Request) {
        // Others may have come since it was found to be new.
        if !self.is_done(&request) && self.is_wanted(&request) {
            self.forward(request.clone());
            self.pending.insert(request.client, Pending { request, age: 0 });
        }
    }

    /// Whether a request was answered here, or one of its client with a higher number.
    pub(crate) fn is_done(&self, request: &Request) -> bool {
        let committed = self.logs.get(&self.committed.0);
        committed.is_some_and(|log| {
            let place = log.place_of(request);
            !log.is_new(request) && place.is_none_or(|place| place <= self.replied)
        })
    }

    /// Drops requests that were answered meanwhile. They would be late for ever, since no head
    /// orders them again.
    pub(crate) fn drop_done(&mut self) {
        let done = self.pending.values().filter(|it| self.is_done(&it.request));
        let done: Vec<u32> = done.map(|it| it.request.client).collect();
        for client in done {
            self.pending.remove(&client);
        }
    }

    /// Whether a request is newer than the one of its client that waits.
    pub(crate) fn is_wanted(&self, request: &Request) -> bool {
        let known = self.pending.get(&request.client);
        known.is_none_or(|it| it.request.number < request.number)
    }

    /// Sends a request to the head, who may not have heard of it.
    pub(crate) fn forward(&mut self, request: Request) {
        let head = self.current().and_then(Configuration::head);
        if let Some(head) = head.filter(|head| *head != self.own) {
            self.outputs.push(Output::Node(head, Message::Request(request).encode()));
        }
    }

    /// Whether a client of the group has signed this request.
    pub(crate) fn is_genuine(&self, request: &Request) -> bool {
        let known = self.pending.get(&request.client);
        let is_known = known.is_some_and(|it| it.request == *request);
        if is_known || self.broken.lacks(Rule::ClientSignature) {
            return true;
        }
        let key = self.group.clients.get(&request.client);
        request.operation.len() <= self.group.options.operation
            && key.is_some_and(|key| request.is_signed_by(key))
    }

    /// The place at which a request was answered here. Its signature was verified before.
    pub(crate) fn answered_at(&self, request: &Request) -> Option<u64> {
        let log = self.logs.get(&self.committed.0)?;
        let place = log.place_of(request).filter(|place| *place <= self.replied)?;
        (log.entry(place)?.request == *request).then_some(place)
    }

    /// The reply to a request that was answered before.
    pub(crate) fn repeated_reply(&self, request: &Request) -> Option<Output> {
        let entry = self.committed_entry(self.answered_at(request)?)?;
        Some(self.reply_of(&entry))
    }

    /// Answers the request at a committed place, which waits no longer.
    pub(crate) fn reply(&mut self, place: u64) {
        let Some(entry) = self.committed_entry(place) else {
            return;
        };
        let reply = self.reply_of(&entry);
        self.outputs.push(reply);
        #[cfg(feature = "sim")]
        if self.group.keeps_history {
            self.history.insert(place, entry.clone());
        }
        let (client, number) = (entry.request.client, entry.request.number);
        let is_done = |it: &Pending| it.request.number <= number;
        if self.pending.get(&client).is_some_and(is_done) {
            self.pending.remove(&client);
        }
    }

    fn committed_entry(&self, place: u64) -> Option<Arc<Entry>> {
        self.logs.get(&self.committed.0)?.entry(place).cloned()
    }

    fn reply_of(&self, entry: &Entry) -> Output {
        let (client, number) = (entry.request.client, entry.request.number);
        let (replica, view) = (self.own, self.own_track().at.0);
        let (request, result) = (entry.request.digest(), entry.answer.clone());
        let proof = ReplyProof::default();
        let reply = Reply { replica, view, client, number, request, result, proof };
        Output::Client(client, Message::Reply(reply.sign(&self.reply_key)).encode())
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use crate::configuration::Configuration;
    use crate::node::Pending;
    use crate::sim::together::Together;

    // Once, the log with the answer was forgotten. The request then waited for ever: each head had
    // executed it, and ordered it no more.
    #[test]
    fn an_answered_request_is_answered_again_when_all_nodes_have_left_its_configuration() {
        let mut nodes = Together::new(3);
        nodes.request(1, 3);
        let replies = nodes.replies.len();
        let node = &mut nodes.nodes[0];
        assert_eq!(node.metrics().committed, 1);
        for number in 1..=70 {
            let configuration = Configuration::of_number(number, 3);
            let next = node.logs[&0].begin(configuration, 1);
            node.logs.extend(next.map(|it| (number, it)));
        }
        for (number, stream) in (70..).zip(&mut node.streams) {
            stream.track.at = (number, 1);
        }
        node.forget_logs();
        assert_eq!(node.logs.len(), 64);
        nodes.request(1, 1);
        assert_eq!(nodes.replies.len(), replies + 1);
        assert!(nodes.nodes[0].pending.is_empty());
    }

    #[test]
    fn an_answered_request_that_waits_all_the_same_is_dropped() {
        let mut nodes = Together::new(3);
        nodes.request(1, 3);
        let node = &mut nodes.nodes[0];
        let request = node.logs[&0].entry(1).map(|it| it.request.clone());
        let pending = request.map(|request| (1, Pending { request, age: 0 }));
        node.pending.extend(pending);
        assert_eq!(node.pending.len(), 1);
        nodes.tick();
        assert!(nodes.nodes[0].pending.is_empty());
    }
}
