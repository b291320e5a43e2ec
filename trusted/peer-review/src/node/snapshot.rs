// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of a node as bytes, but for its device and what the group's configuration says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_attestor::AttestorError;

use super::{Asked, Host, Node};
use crate::application::Application;
use crate::audited::Audited;
use crate::authenticator::Authenticator;
use crate::evidence::Evidence;
use crate::message::{decode, encode};
use crate::state::State;

/// The bytes of a state.
type StateBytes = Vec<u8>;

#[derive(Deserialize, Serialize)]
struct Snapshot {
    host: Host<StateBytes>,
    asked: BTreeMap<u32, Asked>,
    audits: BTreeMap<u32, Audited<StateBytes>>,
    seen: BTreeMap<u32, Authenticator>,
    exposed: BTreeMap<u32, Evidence>,
    informed: BTreeMap<u32, u64>,
    challenged: BTreeMap<u32, u64>,
    nonces: u64,
    ticks: u64,
}

impl<A: Application> Node<A> {
    /// The node as bytes, between two inputs.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        encode(&Snapshot {
            host: self.host.with_state(self.host.state.encode()),
            asked: self.asked.clone(),
            audits: { self.audits.iter() }
                .map(|(node, it)| (*node, it.with_state(it.state.encode())))
                .collect(),
            seen: self.seen.clone(),
            exposed: self.exposed.clone(),
            informed: self.informed.clone(),
            challenged: self.challenged.clone(),
            nonces: self.nonces.1,
            ticks: self.ticks,
        })
    }

    /// Takes over all that a snapshot has, and goes on behind the entries that the device has
    /// attested before. False, and nothing is changed, if it is none of this node.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<bool, AttestorError> {
        let nodes = self.group.nodes();
        let Some(snapshot) = decode::<Snapshot>(bytes) else {
            return Ok(false);
        };
        let Some(state) = State::decode(&self.reference, &snapshot.host.state, nodes) else {
            return Ok(false);
        };
        let audits = { snapshot.audits.iter() }.map(|(number, it)| {
            let state = State::decode(&self.reference.start(*number), &it.state, nodes)?;
            Some((*number, it.with_state(state)))
        });
        let Some(audits) = audits.collect() else {
            return Ok(false);
        };
        self.device.begin_at(snapshot.host.log.last())?;
        self.audits = audits;
        self.host = snapshot.host.with_state(state);
        self.asked = snapshot.asked;
        self.seen = snapshot.seen;
        self.exposed = snapshot.exposed;
        self.informed = snapshot.informed;
        self.challenged = snapshot.challenged;
        self.nonces.1 = snapshot.nonces;
        self.ticks = snapshot.ticks;
        Ok(true)
    }
}

impl<S> Host<S> {
    /// The same with another form of its state.
    fn with_state<T>(&self, state: T) -> Host<T> {
        Host {
            state,
            log: self.log.clone(),
            outboxes: self.outboxes.clone(),
            receipts: self.receipts.clone(),
        }
    }
}
