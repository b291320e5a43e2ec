// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Engines: what protects packets inline, by contexts that the host creates.
//!
//! An engine is stateless but for its contexts, which the NIC keeps for it
//! ([`crate::context_memory`]). Two engines in one device are a pair, which is an engine too.

use alloc::vec::Vec;

use thiserror::Error;
use zeroize::Zeroize;

use crate::headers::Headers;

/// Bytes of a context block, from which a context is made.
pub const CONTEXT_BLOCK_BYTES: usize = 64;

/// The block of which a context is made, as the host has written it. Byte 0 names the engine; the
/// rest is that engine's. It is erased when it is dropped, for it has keys.
pub struct ContextBlock(pub(crate) [u8; CONTEXT_BLOCK_BYTES]);

impl ContextBlock {
    /// A block of these bytes, for software that seals as an engine does.
    #[must_use]
    pub fn new(bytes: [u8; CONTEXT_BLOCK_BYTES]) -> Self {
        Self(bytes)
    }

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

    /// Whether a context protects segments before they are cut, or packets afterwards.
    fn stage(&self, _context: &Self::Context) -> Stage {
        Stage::Segment
    }

    /// Whether the packets of a segment may be transformed. Without this nothing of it leaves.
    ///
    /// # Errors
    /// The numbers do not suffice, or a packet would be too long or is none that the engine takes.
    fn permits(
        &self,
        _context: &Self::Context,
        _headers: &Headers,
        _planned: PlannedPackets<'_>,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Protects one packet with these headers, after its segment was cut ([`Stage::Packet`]).
    ///
    /// # Errors
    /// The packet is not what the engine protects: neither it nor the rest of its segment leaves.
    fn transform(
        &self,
        _context: &mut Self::Context,
        _headers: &Headers,
        _packet: &mut Vec<u8>,
    ) -> Result<Protected, EngineError> {
        Err(EngineError::BadPayload)
    }

    /// Protects the payload of a segment in place, before it is cut into packets. After an error
    /// the device erases the context, and the payload is not sent.
    ///
    /// # Errors
    /// The payload is not what the engine protects, or the numbers are used up.
    fn protect(
        &self,
        context: &mut Self::Context,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError>;
}

/// The packets that a segment will be cut to.
#[derive(Clone, Copy, Debug)]
pub struct PlannedPackets<'a> {
    /// The segment's headers, of which each packet gets a copy.
    pub header: &'a [u8],
    /// How many packets there will be.
    pub packets: u64,
    /// Bytes of the longest, before it is transformed.
    pub longest: usize,
}

/// When a context protects what is sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stage {
    /// A segment, before it is cut.
    Segment,
    /// Each packet, after its segment was cut.
    Packet,
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
    /// Record sizes or index bits are out of range (SPEC §6.3).
    #[error("record sizes or index bits are out of range")]
    BadSizes,
    /// The association has a reserved SPI, or a first number that is none.
    #[error("the association has a reserved SPI, or a first number that is none")]
    BadAssociation,
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

    fn stage(&self, context: &Self::Context) -> Stage {
        match context {
            Either::First(context) => self.0.stage(context),
            Either::Second(context) => self.1.stage(context),
        }
    }

    fn permits(
        &self,
        context: &Self::Context,
        headers: &Headers,
        planned: PlannedPackets<'_>,
    ) -> Result<(), EngineError> {
        match context {
            Either::First(context) => self.0.permits(context, headers, planned),
            Either::Second(context) => self.1.permits(context, headers, planned),
        }
    }

    fn transform(
        &self,
        context: &mut Self::Context,
        headers: &Headers,
        packet: &mut Vec<u8>,
    ) -> Result<Protected, EngineError> {
        match context {
            Either::First(context) => self.0.transform(context, headers, packet),
            Either::Second(context) => self.1.transform(context, headers, packet),
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
