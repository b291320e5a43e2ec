// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients, and replies to them.

use smt_replica::{Proof, Refusal, Reply, Request, Service, Standing};

use crate::configuration::Configuration;
use crate::log::Log;
use crate::message::Message;
use crate::node::{Node, Output};

impl<S: Service + Clone> Node<S> {
    /// Takes a client's request, which waits then.
    pub(crate) fn take_request(&mut self, request: Request) {
        // Others may have come since it was found to be new.
        if !self.is_done(&request) && self.is_wanted(&request) {
            self.forward(request.clone());
            self.pending.push(request);
        }
    }

    /// The word on a request by what was answered here. Nothing of one that may be executed.
    pub(crate) fn standing(&self, request: &Request) -> Option<Standing<'_, u64>> {
        let standing = self.answered.standing(request);
        (standing != Standing::New).then_some(standing)
    }

    /// Whether a request was answered here, or is not executed any more.
    pub(crate) fn is_done(&self, request: &Request) -> bool {
        !self.answered.is_new(request)
    }

    /// Drops requests that were answered meanwhile. They would be late for ever, since no head
    /// orders them again.
    pub(crate) fn drop_done(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|it| !self.is_done(it));
        self.pending = pending;
    }

    /// Whether a request does not wait yet, and may.
    pub(crate) fn is_wanted(&self, request: &Request) -> bool {
        self.pending.has_room_for(request)
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
        if self.pending.has(request) {
            return true;
        }
        let key = self.group.clients.get(&request.client);
        request.operation.len() <= self.group.options.operation
            && key.is_some_and(|key| request.is_signed_by(key, &self.known))
    }

    /// The reply to a request that was answered before, or is not executed any more.
    pub(crate) fn repeated_reply(&self, request: &Request) -> Option<Output> {
        let result = match self.standing(request)? {
            Standing::Answered(place) => Ok(self.committed_log()?.answer(*place)?.to_vec()),
            Standing::Refused(refusal) => Err(refusal),
            Standing::New => return None,
        };
        Some(self.signed_reply(self.reply_to(request, result)))
    }

    pub(crate) fn signed_reply(&self, reply: Reply) -> Output {
        reply_output(reply.sign(&self.reply_key))
    }

    /// Answers all requests that are committed, which wait no longer.
    pub(crate) fn reply_to_committed(&mut self) {
        let mut replies = Vec::new();
        while self.replied < self.committed.1 {
            let entry = self.committed_log().and_then(|it| it.entry(self.replied + 1));
            let Some(entry) = entry.cloned() else {
                break;
            };
            self.replied += 1;
            self.answered.note(&entry.request, self.replied, entry.answer.len());
            replies.push(self.reply_to(&entry.request, Ok(entry.answer.clone())));
            #[cfg(feature = "sim")]
            if self.group.keeps_history {
                self.history.insert(self.replied, entry.clone());
            }
            self.pending.execute(entry.request.client, entry.request.number);
        }
        let replies = Reply::sign_all(replies, &self.reply_key);
        self.outputs.extend(replies.into_iter().map(reply_output));
    }

    fn committed_log(&self) -> Option<&Log<S>> {
        self.logs.get(&self.committed.0)
    }

    /// A reply that is not signed yet.
    pub(crate) fn reply_to(&self, request: &Request, result: Result<Vec<u8>, Refusal>) -> Reply {
        let (client, number, request) = (request.client, request.number, request.digest());
        let (replica, view) = (self.own, self.own_track().at.0);
        Reply { replica, view, client, number, request, result, proof: Proof::default() }
    }
}

fn reply_output(reply: Reply) -> Output {
    Output::Client(reply.client, Message::Reply(reply).encode())
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use crate::configuration::Configuration;
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
        request.into_iter().for_each(|it| node.pending.push(it));
        assert_eq!(node.pending.iter().count(), 1);
        nodes.tick();
        assert!(nodes.nodes[0].pending.is_empty());
    }
}
