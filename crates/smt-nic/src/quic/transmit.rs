// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets from the host: sealed, header protection on.
//!
//! The host has built the packets, with their headers and numbers: it alone knows which frames a
//! number stands for. Each has 16 bytes of room behind its frames, and all but the last are of one
//! length, so that the device cuts a large buffer by a stride. The key is found by the connection's
//! handle: two peers may have chosen equal ids.

use thiserror::Error;

use super::connection::TransmitKey;
use super::header_key::SAMPLE;
use super::packet_key::TAG;
use super::packet_number::is_number;
use super::receive::{KEY_PHASE, LONG, NUMBER_BYTES, SHORT_MASKED};
use super::{Handle, QuicEngine};

/// Packets that the host has built, one behind the other.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The packets.
    pub packets: &'a mut [u8],
    /// Bytes of each but the last, which may be shorter.
    pub stride: usize,
    /// Bytes of the destination's connection id, which the peer has chosen.
    pub id_length: usize,
    /// The whole number of each.
    pub numbers: &'a [u64],
}

/// Why packets were not sealed. Nothing of the batch was changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NotSealed {
    /// There is no such connection, or none any more.
    #[error("the device has no such connection")]
    UnknownConnection,
    /// A packet is none that the engine seals: it has a long header, is too short for a sample, or
    /// its header says another number or key phase than the host.
    #[error("packet {0} of the batch is none that the engine seals")]
    BadPacket(usize),
    /// The key may seal fewer packets than these (RFC 9001 §6.6): the host updates it first.
    #[error("the key may seal no more packets; update it")]
    ConfidentialityLimit,
}

impl QuicEngine {
    /// Seals the packets of a batch in place.
    ///
    /// # Errors
    /// [`NotSealed`]; then all of them are as they were, and the host seals them itself.
    pub fn seal(&mut self, connection: Handle, batch: &mut Batch<'_>) -> Result<(), NotSealed> {
        let entry = self.connections.get_mut(connection);
        let key = &mut entry.ok_or(NotSealed::UnknownConnection)?.transmit;
        batch.check(key.generation)?;
        let packets = batch.numbers.len() as u64;
        key.left = key.left.checked_sub(packets).ok_or(NotSealed::ConfidentialityLimit)?;
        let number_at = 1 + batch.id_length;
        for (packet, number) in batch.packets.chunks_mut(batch.stride).zip(batch.numbers) {
            key.seal(packet, number_at, *number);
        }
        self.counters.sealed += packets;
        self.connections.touch(connection);
        Ok(())
    }
}

impl Batch<'_> {
    /// Looks at all packets before any is changed.
    fn check(&self, generation: u64) -> Result<(), NotSealed> {
        let count = match self.stride {
            0 => 0,
            stride => self.packets.len().div_ceil(stride),
        };
        if count == 0 || count != self.numbers.len() {
            return Err(NotSealed::BadPacket(count));
        }
        let packets = self.packets.chunks(self.stride);
        for (place, (packet, number)) in packets.zip(self.numbers).enumerate() {
            if !self.is_good(packet, *number, generation) {
                return Err(NotSealed::BadPacket(place));
            }
        }
        Ok(())
    }

    fn is_good(&self, packet: &[u8], number: u64, generation: u64) -> bool {
        let number_at = 1 + self.id_length;
        let Some(first) = packet.first() else {
            return false;
        };
        let number_bytes = usize::from(first & NUMBER_BYTES) + 1;
        let Some(truncated) = packet.get(number_at..number_at + number_bytes) else {
            return false;
        };
        let truncated = truncated.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mask = (1 << (8 * number_bytes)) - 1;
        let has_sample = packet.len() >= number_at + 4 + SAMPLE
            && packet.len() >= number_at + number_bytes + TAG;
        let has_phase = (first & KEY_PHASE != 0) == (generation & 1 == 1);
        has_sample
            && has_phase
            && first & LONG == 0
            && is_number(number)
            && number & mask == truncated
    }
}

impl TransmitKey {
    fn seal(&self, packet: &mut [u8], number_at: usize, number: u64) {
        let number_bytes = usize::from(packet[0] & NUMBER_BYTES) + 1;
        let (header, payload) = packet.split_at_mut(number_at + number_bytes);
        self.key.seal(number, header, payload);
        let sample = packet[number_at + 4..].first_chunk::<SAMPLE>();
        let mask = self.header.mask(sample.expect("the batch was checked"));
        packet[0] ^= mask[0] & SHORT_MASKED;
        let protected = &mut packet[number_at..number_at + number_bytes];
        for (byte, mask) in protected.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
    }
}
