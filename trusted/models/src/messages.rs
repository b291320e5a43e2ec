// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes by number, so that states are small.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The number of a message in a [`Messages`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(u32);

/// All messages of a model.
#[derive(Clone, Default)]
pub struct Messages(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    bytes: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, MessageId>,
}

impl Messages {
    /// The number of these bytes.
    pub fn number(&self, bytes: &[u8]) -> MessageId {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(bytes) {
            return *number;
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let next = MessageId(u32::try_from(known.bytes.len()).unwrap_or(u32::MAX));
        let bytes: Arc<[u8]> = bytes.into();
        let number = *known.numbers.entry(bytes.clone()).or_insert(next);
        if number == next {
            known.bytes.push(bytes);
        }
        number
    }

    /// The bytes of a number that [`Messages::number`] gave.
    pub fn bytes(&self, number: MessageId) -> Arc<[u8]> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.bytes[number.0 as usize].clone()
    }
}
