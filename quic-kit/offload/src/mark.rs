// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Marks in the tag room of a packet: the engine has opened it, or is still to seal it.
//!
//! A mark is a secret of the connection, one for each direction, with the key phase and the packet
//! number mixed in. It never leaves the host: a packet from the wire has one with a probability of
//! 2^-128.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of a mark: those of a tag.
pub const MARK_BYTES: usize = 16;

/// The secret of one direction.
pub struct MarkSecret(Zeroizing<[u8; MARK_BYTES]>);

/// The contents of a mark.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Marked {
    /// The key phase, counted from 0.
    pub generation: u64,
    /// The packet's whole number.
    pub number: u64,
}

impl MarkSecret {
    /// A new one.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; MARK_BYTES]);
        getrandom::fill(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// The mark of a packet.
    #[must_use]
    pub fn mark(&self, marked: Marked) -> [u8; MARK_BYTES] {
        let mut mark = *self.0;
        let plain = u128::from(marked.generation) << 64 | u128::from(marked.number);
        for (byte, of) in mark.iter_mut().zip(plain.to_be_bytes()) {
            *byte ^= of;
        }
        mark
    }

    /// Whether a packet ends with this mark. The time it takes says nothing of the secret.
    #[must_use]
    pub fn is_at_end(&self, packet: &[u8], marked: Marked) -> bool {
        let end = packet.last_chunk::<MARK_BYTES>();
        end.is_some_and(|end| bool::from(end.ct_eq(&self.mark(marked))))
    }

    /// The number that a mark at the end of a packet has, if it may be one: for header protection,
    /// which is asked before the number is known. It is compared with the number in the header; a
    /// packet from the wire that passes both by chance, one in 2^50, is dropped by
    /// [`Self::is_at_end`].
    #[must_use]
    pub fn plausible_number(&self, packet: &[u8]) -> Option<u64> {
        let end = packet.last_chunk::<MARK_BYTES>()?;
        let mut plain = *end;
        for (byte, of) in plain.iter_mut().zip(&*self.0) {
            *byte ^= of;
        }
        let plain = u128::from_be_bytes(plain);
        let (generation, number) = ((plain >> 64) as u64, plain as u64);
        (generation < GENERATIONS && number < NUMBERS).then_some(number)
    }
}

/// More key updates than a connection makes.
const GENERATIONS: u64 = 1 << 24;
/// Packet numbers (RFC 9000 §12.3).
const NUMBERS: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_mark_is_that_of_its_packet_alone() {
        let (secret, other) = (MarkSecret::random().unwrap(), MarkSecret::random().unwrap());
        let marked = Marked { generation: 3, number: 1 << 40 };
        let packet = [&[1, 2, 3][..], &secret.mark(marked)].concat();
        assert!(secret.is_at_end(&packet, marked));
        assert_eq!(secret.plausible_number(&packet), Some(1 << 40));
        assert!(!other.is_at_end(&packet, marked));
        for wrong in [Marked { generation: 2, ..marked }, Marked { number: 7, ..marked }] {
            assert!(!secret.is_at_end(&packet, wrong));
        }
        assert!(!secret.is_at_end(&packet[4..], marked));
        assert_eq!(other.plausible_number(&packet), None);
    }
}
