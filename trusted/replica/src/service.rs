// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The replicated service: a deterministic state machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::encoding::{decode, encode};

/// A deterministic state machine: the same operations in the same order give the same answers.
pub trait Service {
    /// Executes an operation. Clients may send any bytes.
    fn execute(&mut self, operation: &[u8]) -> Vec<u8>;
    /// The whole state as bytes, the same for the same state.
    fn snapshot(&self) -> Vec<u8>;
    /// Takes the state of a snapshot. Nothing has changed if the bytes are none.
    fn restore(&mut self, snapshot: &[u8]) -> bool;
}

/// A counter (paper §7). An operation is the big-endian number to add; the answer is the sum.
#[derive(Clone, Debug, Default)]
pub struct Counter(u64);

impl Service for Counter {
    fn execute(&mut self, operation: &[u8]) -> Vec<u8> {
        let Ok(bytes) = operation.try_into() else {
            return Vec::new();
        };
        self.0 = self.0.wrapping_add(u64::from_be_bytes(bytes));
        self.0.to_be_bytes().to_vec()
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn restore(&mut self, snapshot: &[u8]) -> bool {
        snapshot.try_into().map(|bytes| self.0 = u64::from_be_bytes(bytes)).is_ok()
    }
}

/// An operation of the key-value store.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum KeyValueOperation {
    /// The answer is the value.
    Get(Vec<u8>),
    /// The answer is the value before.
    Put(Vec<u8>, Vec<u8>),
    /// The answer is the value before.
    Delete(Vec<u8>),
}

impl KeyValueOperation {
    /// The operation as bytes of a request.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads an answer of the store: the value, if the key has or had one. Nothing if the bytes are
    /// no answer.
    pub fn decode_answer(answer: &[u8]) -> Option<Option<Vec<u8>>> {
        decode(answer)
    }
}

/// A key-value store.
#[derive(Clone, Debug, Default)]
pub struct KeyValue(BTreeMap<Vec<u8>, Vec<u8>>);

impl Service for KeyValue {
    fn execute(&mut self, operation: &[u8]) -> Vec<u8> {
        let answer = match decode(operation) {
            None => return Vec::new(),
            Some(KeyValueOperation::Get(key)) => self.0.get(&key).cloned(),
            Some(KeyValueOperation::Put(key, value)) => self.0.insert(key, value),
            Some(KeyValueOperation::Delete(key)) => self.0.remove(&key),
        };
        encode(&answer)
    }

    fn snapshot(&self) -> Vec<u8> {
        encode(&self.0)
    }

    fn restore(&mut self, snapshot: &[u8]) -> bool {
        decode(snapshot).map(|values| self.0 = values).is_some()
    }
}
