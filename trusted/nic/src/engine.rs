// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine of the transmit side.

use std::cell::RefCell;
use std::rc::Rc;

use smt_attestation::{ATTESTATION_LEN, Misuse, StreamId};
use smt_device_client::{Device, DeviceError};
use smt_nic::engine::{
    BadContextBlock, CONTEXT_BLOCK_BYTES, ContextBlock, Engine, EngineError, Protected,
};

/// The engine's name in byte 0 of a context block.
pub const ENGINE: u8 = 3;

/// Attests the payload of each segment. Clones share one device, so no counter is given twice.
pub struct AttestationEngine<D> {
    device: Rc<RefCell<D>>,
}

impl<D: Device> AttestationEngine<D> {
    /// An engine by a device, which its receiver shares.
    #[must_use]
    pub fn new(device: Rc<RefCell<D>>) -> Self {
        Self { device }
    }
}

impl<D> Clone for AttestationEngine<D> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone() }
    }
}

/// The context of a flow: the stream under which its messages are attested. The counter is the
/// kernel's alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AttestedFlow {
    stream: StreamId,
}

/// The block of which a context is made: byte 0 names the engine, bytes 4 to 7 the stream
/// (big-endian), and all others are zero.
#[must_use]
pub fn context_block(stream: StreamId) -> [u8; CONTEXT_BLOCK_BYTES] {
    let mut block = [0; CONTEXT_BLOCK_BYTES];
    block[0] = ENGINE;
    block[4..8].copy_from_slice(&stream.0.to_be_bytes());
    block
}

impl<D: Device> Engine for AttestationEngine<D> {
    type Context = AttestedFlow;

    fn create(&self, block: &ContextBlock) -> Result<AttestedFlow, BadContextBlock> {
        let bytes = block.bytes();
        let [ENGINE, _, _, _, a, b, c, d, ..] = *bytes else {
            return Err(BadContextBlock::OtherEngine);
        };
        let stream = StreamId(u32::from_be_bytes([a, b, c, d]));
        let is_open = matches!(self.device.borrow().sent(stream), Ok(Some(_)));
        let is_known = *bytes == context_block(stream) && is_open;
        is_known.then_some(AttestedFlow { stream }).ok_or(BadContextBlock::UnknownSuite)
    }

    /// Changes nothing: a host that could set a counter could have it given twice.
    fn resync(&self, _: &mut AttestedFlow, _: u64) {}

    fn protect(
        &self,
        context: &mut AttestedFlow,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError> {
        let parts = payload.split_last_chunk_mut::<ATTESTATION_LEN>();
        let (message, room) = parts.ok_or(EngineError::BadPayload)?;
        let attested = self.device.borrow_mut().attest(context.stream, message);
        let attestation = attested.map_err(|why| match why {
            DeviceError::Misuse(Misuse::EpochEnded) => EngineError::NumbersUsedUp,
            _ => EngineError::BadPayload,
        })?;
        *room = attestation.0;
        Ok(Protected { records: 1, bytes: message.len() as u64 })
    }
}
