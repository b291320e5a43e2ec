// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service itself: keys and values in memory, and who may write.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::{Refusal, ServerArguments};

/// Keys and values in memory.
#[derive(Debug)]
pub struct Storage {
    values: Mutex<BTreeMap<String, Bytes>>,
    writers: Vec<String>,
    hold: Option<PathBuf>,
}

impl Storage {
    /// Nothing is stored.
    #[must_use]
    pub fn new(arguments: &ServerArguments) -> Self {
        Self {
            values: Mutex::default(),
            writers: arguments.writer.clone(),
            hold: arguments.hold.clone(),
        }
    }

    /// The value of a key.
    pub async fn get(&self, key: &str) -> Option<Bytes> {
        self.held(key).await;
        self.values().get(key).cloned()
    }

    /// Stores a value.
    ///
    /// # Errors
    /// The caller may not write, or the value has more than 16 MB.
    pub async fn set(&self, caller: &str, key: String, value: Bytes) -> Result<(), Refusal> {
        self.check_writer(caller)?;
        if value.len() > Self::VALUE_MAX {
            let text = format!("a value has at most {} bytes", Self::VALUE_MAX);
            return Err(Refusal { code: Refusal::INVALID_ARGUMENT, text });
        }
        self.held(&key).await;
        self.values().insert(key, value);
        Ok(())
    }

    /// Removes a key; whether there was one.
    ///
    /// # Errors
    /// The caller may not write.
    pub async fn delete(&self, caller: &str, key: &str) -> Result<bool, Refusal> {
        self.check_writer(caller)?;
        self.held(key).await;
        Ok(self.values().remove(key).is_some())
    }

    /// The keys that begin so, in order.
    pub async fn list(&self, prefix: &str) -> Vec<String> {
        self.held(prefix).await;
        let values = self.values();
        values.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    fn check_writer(&self, caller: &str) -> Result<(), Refusal> {
        if self.writers.iter().any(|writer| writer == caller) {
            return Ok(());
        }
        let text = format!("{caller:?} may not write");
        Err(Refusal { code: Refusal::PERMISSION_DENIED, text })
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands for an operation that takes long.
    async fn held(&self, key: &str) {
        let Some(file) = self.hold.as_ref().filter(|_| key.starts_with("held/")) else {
            return;
        };
        println!("holding {key}");
        let mut holding = Holding { key, is_released: false };
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        holding.is_released = true;
    }

    /// The largest value.
    pub const VALUE_MAX: usize = 16_000_000;
    /// The largest message: a value and what stands around it. The storage tells callers what is
    /// wrong with values that are a little larger than they may be.
    pub const MESSAGE_MAX: usize = 20_000_000;
}

/// Tells when an operation is dropped before its end.
struct Holding<'a> {
    key: &'a str,
    is_released: bool,
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        if !self.is_released {
            println!("cancelled {}", self.key);
        }
    }
}
