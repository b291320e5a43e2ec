// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One traffic secret: at most 48 bytes, cleared when dropped, never printed.
//!
//! A secret of the plaintext version has no bytes. Nothing outside this crate can make one.

use core::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::suite::Suite;

/// A traffic secret of one direction and purpose; keys and later secrets come from it.
pub struct Secret {
    bytes: Zeroizing<[u8; SECRET_LEN_MAX]>,
    /// Bytes in use: the suite's hash length, or 0 in the plaintext version.
    len: u8,
}

impl Secret {
    /// A secret of the suite's length, written by `fill`.
    pub(crate) fn fill<E>(
        suite: Suite,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut bytes = Zeroizing::new([0; SECRET_LEN_MAX]);
        let len = suite.hash_len();
        fill(&mut bytes[..len])?;
        let len = len as u8;
        Ok(Self { bytes, len })
    }

    pub(crate) fn plaintext() -> Self {
        Self { bytes: Zeroizing::new([0; SECRET_LEN_MAX]), len: 0 }
    }

    pub(crate) fn is_plaintext(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// In constant time.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The longest hash is SHA-384's.
pub(crate) const SECRET_LEN_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn of(byte: u8) -> Secret {
        Secret::fill(Suite::Aes128Gcm, |out| {
            out.fill(byte);
            Ok::<(), ()>(())
        })
        .unwrap()
    }

    mod fmt {
        use super::*;

        #[test]
        fn shows_no_byte() {
            assert_eq!(format!("{:?}", of(0xA5)), "Secret(..)");
        }
    }

    mod eq {
        use super::*;

        #[test]
        fn compares_the_bytes() {
            assert_eq!(of(1), of(1));
            assert_ne!(of(1), of(2));
            assert_ne!(of(0), Secret::plaintext());
        }
    }
}
