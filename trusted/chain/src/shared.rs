// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that several logs have, each once in a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Values in the order in which they were numbered.
pub(crate) struct Shared<T> {
    all: Vec<Arc<T>>,
    /// The number of each, by its address.
    numbers: BTreeMap<usize, u32>,
}

impl<T> Shared<T> {
    /// No values.
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), numbers: BTreeMap::new() }
    }

    /// The number of a value.
    pub(crate) fn number(&mut self, value: &Arc<T>) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(Arc::as_ptr(value).addr()).or_insert(next);
        if number == next {
            self.all.push(value.clone());
        }
        number
    }

    /// All of them.
    pub(crate) fn into_all(self) -> Vec<Arc<T>> {
        self.all
    }
}
