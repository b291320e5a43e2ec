// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS engine of a NIC, watched as a host's cipher library is.

use std::fmt;
use std::sync::Arc;

use smt_nic::engine::{BadContextBlock, ContextBlock, Engine, EngineError, Protected};
use smt_nic::tls::{TlsContext, TlsEngine};
use smt_record::Suite;
use smt_testkit::{CipherWatch, KeyWatch};
use smt_wire::{RECORD_HEADER_LEN, TAG_LEN};

/// The TLS engine. A watch is told all that it is about to seal.
pub struct WatchedEngine {
    watch: Box<dyn CipherWatch>,
}

impl WatchedEngine {
    /// Tells all of it to `watch`.
    pub fn new(watch: Box<dyn CipherWatch>) -> Self {
        Self { watch }
    }
}

/// A flow context, and the watch of its key.
#[derive(Clone)]
pub struct WatchedContext {
    inner: TlsContext,
    watch: Arc<dyn KeyWatch>,
}

impl fmt::Debug for WatchedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Engine for WatchedEngine {
    type Context = WatchedContext;

    fn create(&self, block: &ContextBlock) -> Result<WatchedContext, BadContextBlock> {
        let inner = TlsEngine.create(block)?;
        let bytes = block.bytes();
        let suite = Suite::from_code(u16::from_be_bytes([bytes[2], bytes[3]]));
        let suite = suite.ok_or(BadContextBlock::UnknownSuite)?;
        let iv = bytes[36..48].first_chunk().expect("an IV has 12 bytes");
        let watch = self.watch.key(&bytes[4..4 + suite.key_len()], iv);
        Ok(WatchedContext { inner, watch: watch.into() })
    }

    fn resync(&self, context: &mut WatchedContext, number: u64) {
        TlsEngine.resync(&mut context.inner, number);
    }

    fn protect(
        &self,
        context: &mut WatchedContext,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError> {
        let first = context.inner.number().ok_or(EngineError::NumbersUsedUp)?;
        let mut rest = &*payload;
        for number in first.. {
            let Some((header, behind)) = rest.split_at_checked(RECORD_HEADER_LEN) else {
                break;
            };
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            let Some((record, behind)) = behind.split_at_checked(length) else {
                break;
            };
            let plaintext = &record[..length.saturating_sub(TAG_LEN)];
            context.watch.sealing(number, header, &[plaintext]);
            rest = behind;
        }
        TlsEngine.protect(&mut context.inner, payload)
    }
}
