// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service of a run: one of the two.

use crate::service::{Counter, KeyValue, Service};
use crate::sim::scenario::ServiceKind;

/// Both services.
#[derive(Clone, Debug)]
pub(crate) enum AnyService {
    Counter(Counter),
    KeyValue(KeyValue),
}

impl Default for AnyService {
    fn default() -> Self {
        Self::Counter(Counter::default())
    }
}

impl AnyService {
    pub(super) fn new(kind: ServiceKind) -> Self {
        match kind {
            ServiceKind::Counter => Self::Counter(Counter::default()),
            ServiceKind::KeyValue => Self::KeyValue(KeyValue::default()),
        }
    }
}

impl Service for AnyService {
    fn execute(&mut self, operation: &[u8]) -> Vec<u8> {
        match self {
            Self::Counter(it) => it.execute(operation),
            Self::KeyValue(it) => it.execute(operation),
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        match self {
            Self::Counter(it) => it.snapshot(),
            Self::KeyValue(it) => it.snapshot(),
        }
    }

    fn restore(&mut self, snapshot: &[u8]) -> bool {
        match self {
            Self::Counter(it) => it.restore(snapshot),
            Self::KeyValue(it) => it.restore(snapshot),
        }
    }
}
