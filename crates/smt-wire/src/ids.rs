// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The numbers that name things: sessions, messages, control packets.
//!
//! They are bare u64 on the wire and newtypes here, since all three are easily confused. The layout
//! of a message id (counter, initiator, stripe; SPEC §4.1) depends on the session's agreement and
//! is not known here.

use core::fmt;

/// A session, as chosen by the receiver of the packets that carry it (SPEC §6.3).
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionIndex(pub u64);

impl SessionIndex {
    /// Joins a boot number (high) and a serial within it (low; 1 is the first).
    pub const fn new(boot: u32, serial: u32) -> Self {
        Self((boot as u64) << 32 | serial as u64)
    }

    /// The host's boot number.
    pub const fn boot(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The serial within the boot number.
    pub const fn serial(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for SessionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionIndex({self})")
    }
}

impl fmt::Display for SessionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A message's id; a reply has its request's (SPEC §4.1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A control packet's number, used once in a session's life (SPEC §3.4, §4.3).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ControlNumber {
    /// The stripe that counts.
    pub stripe: u16,
    /// Control packets of the stripe before this one; below 2^48.
    pub counter: u64,
}

impl ControlNumber {
    /// Bits of the counter.
    pub const COUNTER_BITS: u32 = 48;

    /// The number as it stands in the header and in the nonce.
    ///
    /// # Panics
    /// If the counter has more than 48 bits: it would repeat another stripe's nonce.
    pub const fn to_u64(self) -> u64 {
        assert!(self.counter >> Self::COUNTER_BITS == 0, "control counter above 48 bits");
        (self.stripe as u64) << Self::COUNTER_BITS | self.counter
    }

    /// Splits a header's number.
    pub const fn from_u64(number: u64) -> Self {
        Self {
            stripe: (number >> Self::COUNTER_BITS) as u16,
            counter: number & ((1 << Self::COUNTER_BITS) - 1),
        }
    }
}

impl fmt::Display for ControlNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.stripe, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    mod session_index {
        use super::*;

        #[test]
        fn boot_is_high_and_serial_low() {
            let index = SessionIndex::new(0x0102_0304, 0x0506_0708);
            assert_eq!(index.0, 0x0102_0304_0506_0708);
            assert_eq!((index.boot(), index.serial()), (0x0102_0304, 0x0506_0708));
        }

        #[test]
        fn is_shown_as_sixteen_digits() {
            let index = SessionIndex::new(1, 1);
            assert_eq!(format!("{index}"), "0000000100000001");
            assert_eq!(format!("{index:?}"), "SessionIndex(0000000100000001)");
        }
    }

    mod control_number {
        use super::*;

        #[test]
        fn stripe_is_high_and_counter_low() {
            let number = ControlNumber { stripe: 0xABCD, counter: 0x0102_0304_0506 };
            assert_eq!(number.to_u64(), 0xABCD_0102_0304_0506);
            assert_eq!(ControlNumber::from_u64(number.to_u64()), number);
        }

        #[test]
        fn every_u64_survives() {
            for number in [0, 1, u64::MAX, 1 << 48, (1 << 48) - 1] {
                assert_eq!(ControlNumber::from_u64(number).to_u64(), number);
            }
        }

        #[test]
        #[should_panic(expected = "above 48 bits")]
        fn counter_never_reaches_into_the_stripe() {
            let _ = ControlNumber { stripe: 0, counter: 1 << 48 }.to_u64();
        }
    }
}
