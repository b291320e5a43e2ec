// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contexts of the receive side: bounded, and found by what is clear in a packet.

use alloc::collections::BTreeMap;

use crate::context_memory::NotAdded;
use crate::descriptor::ContextId;
use crate::tls::receive::{ReceiveContext, ReceiveFlow};

/// Contexts by their flows. No context gives way to another: a flow without one is the software's.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveContexts {
    contexts_max: usize,
    by_flow: BTreeMap<ReceiveFlow, (ContextId, ReceiveContext)>,
    flows: BTreeMap<ContextId, ReceiveFlow>,
}

impl ReceiveContexts {
    pub(crate) fn new(contexts_max: usize) -> Self {
        Self { contexts_max, by_flow: BTreeMap::new(), flows: BTreeMap::new() }
    }

    /// Adds a context. Neither its name nor its flow may be in use.
    pub(crate) fn add(&mut self, id: ContextId, context: ReceiveContext) -> Result<(), NotAdded> {
        let flow = context.flow();
        if self.flows.contains_key(&id) || self.by_flow.contains_key(&flow) {
            return Err(NotAdded::Exists);
        }
        if self.flows.len() >= self.contexts_max {
            return Err(NotAdded::NoRoom);
        }
        self.flows.insert(id, flow);
        self.by_flow.insert(flow, (id, context));
        Ok(())
    }

    /// Whether there was such a context.
    pub(crate) fn remove(&mut self, id: ContextId) -> bool {
        let flow = self.flows.remove(&id);
        flow.and_then(|flow| self.by_flow.remove(&flow)).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.flows.clear();
        self.by_flow.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn get_mut(
        &mut self,
        flow: ReceiveFlow,
    ) -> Option<(ContextId, &mut ReceiveContext)> {
        let (id, context) = self.by_flow.get_mut(&flow)?;
        Some((*id, context))
    }
}
