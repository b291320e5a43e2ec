// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients: their requests, and the answers that they can take.

use std::collections::BTreeSet;
use std::sync::Arc;

use smt_bft::sim::observe;
use smt_bft::{Client, Message, Output};
use smt_replica::{Group, Reply, Request};

use super::Bft;
use crate::answers::{Taken, lies, takes};
use crate::{Cluster, MessageId, State};

/// The requests of so many shipped clients, which add 1, 2 and so on to the counter.
pub(super) fn requests(group: &Arc<Group>, count: usize) -> Vec<Request> {
    let request = |client: u32| {
        let mut it = observe::client(group, client);
        it.submit([client as u8; 16], u64::from(client).to_be_bytes().to_vec());
        first_request(&mut it)
    };
    (1..).take(count).filter_map(request).collect()
}

/// Several requests of the first client, each of which adds 1.
pub(super) fn row(group: &Arc<Group>, count: usize) -> Vec<Request> {
    let mut client = observe::client(group, 1);
    let next = |_| {
        let number = client.submit([1; 16], 1_u64.to_be_bytes().to_vec())?;
        let request = first_request(&mut client);
        client.give_up(number);
        request
    };
    (0..count).filter_map(next).collect()
}

fn first_request(client: &mut Client) -> Option<Request> {
    match client.outputs().pop()? {
        Output::Node(_, bytes) => match Message::decode(&bytes)? {
            Message::Request(request) => Some(request),
            _ => None,
        },
        _ => None,
    }
}

/// The answers that clients can take in a state.
pub(super) fn answers(of: &Cluster<Bft>, state: &State) -> Taken {
    let system = &of.system;
    let told = { of.see(state) }.iter().flat_map(|it| it.1.others.clone()).collect();
    system.answers.after(told, |told| {
        let reply = |it: &MessageId| match Message::decode(&of.messages.bytes(*it)) {
            Some(Message::Reply(reply)) => Some(reply),
            _ => None,
        };
        let mut replies: Vec<Reply> = told.iter().filter_map(reply).collect();
        let nodes = (system.bounds.replicas, of.liars.as_slice());
        replies.extend(lies(nodes, &system.requests, &replies, observe::host_key));
        system.requests.iter().flat_map(|it| answers_to(system, it, &replies)).collect()
    })
}

/// The client of a request, and each answer that it can take.
fn answers_to(system: &Bft, request: &Request, replies: &[Reply]) -> Vec<(u32, Vec<u8>)> {
    let start = || {
        let mut it = observe::client(&system.group, request.client);
        it.submit(request.nonce, request.operation.clone());
        it
    };
    let encoded = |it: &Reply| Message::Reply(it.clone()).encode();
    let take = |it: &mut Client, bytes: &[u8]| it.receive(bytes)?.result.ok();
    let client = request.client;
    let answers = if system.group.quorum() == 2 {
        takes(&replies.iter().map(encoded).collect::<Vec<_>>(), start, take)
    } else {
        // More replies make an answer. Those that say the same are all that can make it.
        let results: BTreeSet<_> = replies.iter().filter_map(|it| it.result.clone().ok()).collect();
        let answer = |result: Vec<u8>| {
            let same = replies.iter().filter(|it| it.result.as_ref() == Ok(&result));
            let mut client = start();
            same.filter_map(|it| take(&mut client, &encoded(it))).next()
        };
        results.into_iter().filter_map(answer).collect()
    };
    answers.into_iter().map(|it| (client, it)).collect()
}
