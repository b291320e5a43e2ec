// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of a node as bytes, but for its device and what the group's configuration says.

use smt_attestor::AttestorError;

use super::{Host, Node};
use crate::application::Application;
use crate::audited::Audited;
use crate::message::{decode, encode};
use crate::state::State;

/// The bytes of a state.
type StateBytes = Vec<u8>;

impl<A: Application> Node<A> {
    /// The node as bytes, between two inputs.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let audits = self.audits.iter();
        let audits: Vec<_> = audits.map(|(node, it)| (node, &it.0, it.1.encode())).collect();
        encode(&(&self.host, self.state.encode(), audits))
    }

    /// Takes over all that a snapshot has, and goes on behind the entries that the device has
    /// attested before. False, and nothing is changed, if it is none of this node.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<bool, AttestorError> {
        type Snapshot = (Host, StateBytes, Vec<(u32, Audited, StateBytes)>);
        let nodes = self.group.nodes();
        let Some((host, state, audits)) = decode::<Snapshot>(bytes) else {
            return Ok(false);
        };
        let audits = audits.into_iter().map(|(node, audited, state)| {
            let state = State::decode(&self.reference.start(node), &state, nodes)?;
            Some((node, (audited, state)))
        });
        let state = State::decode(&self.reference, &state, nodes);
        let (Some(state), Some(audits)) = (state, audits.collect()) else {
            return Ok(false);
        };
        self.device.begin_at(host.log.last())?;
        (self.host, self.state, self.audits) = (host, state, audits);
        Ok(true)
    }
}
