// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The services of this crate as one type, for those that choose when they run.

use crate::service::{Counter, KeyValue, Service};

/// A service of this crate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServiceKind {
    /// [`Counter`].
    Counter,
    /// [`KeyValue`].
    KeyValue,
}

/// One of the services.
#[derive(Clone, Debug)]
pub enum AnyService {
    /// A counter.
    Counter(Counter),
    /// A key-value store.
    KeyValue(KeyValue),
}

impl Default for AnyService {
    fn default() -> Self {
        Self::Counter(Counter::default())
    }
}

impl AnyService {
    /// The service in its first state.
    #[must_use]
    pub fn new(kind: ServiceKind) -> Self {
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
