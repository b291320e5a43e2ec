// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP in software, and the packets of tests.

use std::time::Duration;

use smt_esp::{
    Carried, HEADROOM, InboundAssociation, KeyMaterial, Mode, OpenError, OutboundAssociation,
    PacketBuffer, Parameters, Suite, TAILROOM,
};
use smt_nic::descriptor::ContextId;
use smt_nic::engine::CONTEXT_BLOCK_BYTES;
use smt_nic::esp::{Association, ENGINE, EXTENDED, EspSuite};

const NOW: Duration = Duration::ZERO;
const LONGEST: usize = 65_535;

/// An association, as both readers are told of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    pub(super) suite: EspSuite,
    pub(super) spi: u32,
    pub(super) is_extended: bool,
    pub(super) first: u64,
}

impl Agreed {
    pub(super) fn new(suite: EspSuite) -> Self {
        Self { suite, spi: 0x1001, is_extended: true, first: 1 }
    }

    /// The keying material: no two associations of a test have the same.
    fn material(&self) -> Vec<u8> {
        let first = (self.spi as u8).wrapping_mul(17);
        let bytes = (0..self.suite.key_material_bytes()).map(|at| first.wrapping_add(at as u8));
        bytes.collect()
    }

    pub(super) fn block(&self) -> [u8; CONTEXT_BLOCK_BYTES] {
        let mut block = [0; CONTEXT_BLOCK_BYTES];
        block[0] = ENGINE;
        block[1] = if self.is_extended { EXTENDED } else { 0 };
        block[2..4].copy_from_slice(&(self.suite as u16).to_be_bytes());
        let material = self.material();
        block[4..4 + material.len()].copy_from_slice(&material);
        block[40..44].copy_from_slice(&self.spi.to_be_bytes());
        block[44..52].copy_from_slice(&self.first.to_be_bytes());
        block
    }

    pub(super) fn context(&self) -> ContextId {
        ContextId(self.spi)
    }

    /// Hands the association to a device.
    pub(super) fn with_inbound<T>(&self, give: impl FnOnce(&Association<'_>) -> T) -> T {
        let material = self.material();
        give(&Association {
            spi: self.spi,
            suite: self.suite,
            material: &material,
            is_extended: self.is_extended,
            first_number: self.first,
            replay_window: 64,
        })
    }

    fn parameters(&self) -> Parameters {
        let suite = match self.suite {
            EspSuite::Aes128Gcm16 => Suite::Aes128Gcm16,
            EspSuite::Aes256Gcm16 => Suite::Aes256Gcm16,
            EspSuite::Aes128Ccm8 => Suite::Aes128Ccm8,
            EspSuite::NullHmacSha256 => Suite::NullHmacSha256,
        };
        let key = KeyMaterial::new(suite, &self.material()).unwrap();
        let mut parameters = Parameters::new(self.spi, key, Mode::Transport);
        parameters.extended_numbers = self.is_extended;
        parameters.first_number = self.first;
        parameters.replay_window = 64;
        parameters
    }

    pub(super) fn sealer(&self) -> Sealer {
        Sealer(OutboundAssociation::new(self.parameters(), NOW).unwrap())
    }

    pub(super) fn opener(&self) -> Opener {
        Opener(InboundAssociation::new(self.parameters(), NOW).unwrap())
    }
}

/// The sending end in software.
pub(super) struct Sealer(OutboundAssociation);

impl Sealer {
    pub(super) fn seal(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut memory = vec![0; HEADROOM + LONGEST + TAILROOM];
        let mut buffer = PacketBuffer::with_copy(&mut memory, packet).unwrap();
        self.0.seal(&mut buffer, NOW).unwrap();
        buffer.packet().to_vec()
    }

    pub(super) fn seal_dummy(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut memory = vec![0; HEADROOM + LONGEST + TAILROOM];
        let mut buffer = PacketBuffer::with_copy(&mut memory, packet).unwrap();
        self.0.seal_dummy(&mut buffer, NOW).unwrap();
        buffer.packet().to_vec()
    }
}

/// The receiving end in software.
pub(super) struct Opener(InboundAssociation);

impl Opener {
    pub(super) fn open(&mut self, packet: &[u8]) -> Result<Vec<u8>, OpenError> {
        let mut memory = vec![0; HEADROOM + LONGEST + TAILROOM];
        let mut buffer = PacketBuffer::with_copy(&mut memory, packet).unwrap();
        let Carried::Esp(place) = Carried::find(buffer.packet(), None)? else {
            return Err(OpenError::Malformed);
        };
        self.0.open(&mut buffer, &place, NOW)?;
        Ok(buffer.packet().to_vec())
    }
}

/// Headers of a segment: of IPv4 or IPv6, and of TCP or UDP behind. The sequence number of TCP is
/// `sequence`, and the port tells streams apart.
pub(super) fn header(is_v4: bool, is_tcp: bool, port: u16, sequence: u32) -> Vec<u8> {
    let protocol = if is_tcp { 6 } else { 17 };
    let mut header = if is_v4 {
        let mut ip = vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
        ip.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        ip
    } else {
        let mut ip = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
        ip.extend((0..32).map(|at| 0x20 + at));
        ip
    };
    header.extend(port.to_be_bytes());
    header.extend(5201_u16.to_be_bytes());
    if is_tcp {
        header.extend(sequence.to_be_bytes());
        // Acknowledgement, data offset, ACK and PSH, window, checksum, urgent pointer.
        header.extend([0, 0, 0, 9, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    } else {
        header.extend([0; 4]);
    }
    header
}

/// Any payload.
pub(super) fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 256) as u8).collect()
}
