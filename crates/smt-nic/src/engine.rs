// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Engines: what protects packets inline, by contexts that the host creates.
//!
//! An engine is stateless but for its contexts, which the NIC keeps for it
//! ([`crate::context_memory`]). Two engines in one device are a pair, which is an engine too.

use thiserror::Error;
use zeroize::Zeroize;

/// Bytes of a context block, from which a context is made.
pub const CONTEXT_BLOCK_BYTES: usize = 64;

/// The block of which a context is made, as the host has written it. Byte 0 names the engine; the
/// rest is that engine's. It is erased when it is dropped, for it has keys.
pub struct ContextBlock(pub(crate) [u8; CONTEXT_BLOCK_BYTES]);

impl ContextBlock {
    /// The block's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; CONTEXT_BLOCK_BYTES] {
        &self.0
    }
}

impl Drop for ContextBlock {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// An engine: it protects packets inline.
pub trait Engine {
    /// The state of one flow: keys and numbers. Its `Debug` shows no key.
    type Context: Clone + core::fmt::Debug;

    /// Makes a context.
    ///
    /// # Errors
    /// The block is another engine's, or of no suite that this one has.
    fn create(&self, block: &ContextBlock) -> Result<Self::Context, BadContextBlock>;

    /// Sets the number of the context's next record.
    fn resync(&self, context: &mut Self::Context, number: u64);

    /// Protects the payload of a segment in place, before it is cut into packets. After an error
    /// the context is as before, and the payload is not sent.
    ///
    /// # Errors
    /// The payload is not what the engine protects, or the numbers are used up.
    fn protect(
        &self,
        context: &mut Self::Context,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError>;
}

/// The work that was done on a payload.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Protected {
    /// Records that were sealed.
    pub records: u64,
    /// Bytes of their plaintexts.
    pub bytes: u64,
}

/// A context block of which no context can be made.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum BadContextBlock {
    /// Byte 0 names another engine.
    #[error("the context block is of another engine")]
    OtherEngine,
    /// The engine has no such suite.
    #[error("the engine has no such suite")]
    UnknownSuite,
}

/// A payload that an engine does not protect.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum EngineError {
    /// The payload is not what the engine protects.
    #[error("the payload is not what the engine protects")]
    BadPayload,
    /// The context's numbers are used up.
    #[error("the context's numbers are used up")]
    NumbersUsedUp,
}

/// The context of one of two engines.
#[derive(Clone, Debug)]
pub enum Either<A, B> {
    /// The first engine's.
    First(A),
    /// The second engine's.
    Second(B),
}

/// Two engines in one device: the context block's first byte tells them apart.
impl<A: Engine, B: Engine> Engine for (A, B) {
    type Context = Either<A::Context, B::Context>;

    fn create(&self, block: &ContextBlock) -> Result<Self::Context, BadContextBlock> {
        match self.0.create(block) {
            Err(BadContextBlock::OtherEngine) => self.1.create(block).map(Either::Second),
            first => first.map(Either::First),
        }
    }

    fn resync(&self, context: &mut Self::Context, number: u64) {
        match context {
            Either::First(context) => self.0.resync(context, number),
            Either::Second(context) => self.1.resync(context, number),
        }
    }

    fn protect(
        &self,
        context: &mut Self::Context,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError> {
        match context {
            Either::First(context) => self.0.protect(context, payload),
            Either::Second(context) => self.1.protect(context, payload),
        }
    }
}
