// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service that a configuration names.

use smt_bft::{Counter, KeyValue, Service};

use crate::source::ServiceName;

/// One of the services.
#[derive(Clone)]
pub(crate) enum Served {
    Counter(Counter),
    KeyValue(KeyValue),
}

impl Served {
    pub(crate) fn new(name: ServiceName) -> Self {
        match name {
            ServiceName::Counter => Self::Counter(Counter::default()),
            ServiceName::KeyValue => Self::KeyValue(KeyValue::default()),
        }
    }
}

impl Service for Served {
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
