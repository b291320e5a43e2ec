// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key log (SPEC §13): one line per secret, and only if the application asks for it.
//!
//! [`crate::SealKeys`] and [`crate::OpenKeys`] log the secrets of epoch 0 and of every update
//! that took effect. TLS's own secrets are never logged, nor is the plaintext version.

use alloc::sync::Arc;
use core::fmt;

use smt_wire::SessionIndex;

use crate::key_schedule::{DirectionSecrets, Purpose, Side};
use crate::secret::Secret;
use crate::suite::Suite;

/// The destination of key log lines. A reader of the lines can read the session.
pub trait KeyLog: Send + Sync {
    /// Takes one secret; its `Display` is the line of SPEC §13, without a line break.
    fn log(&self, line: &KeyLogEntry<'_>);
}

/// One secret, as a line of the key log.
pub struct KeyLogEntry<'a> {
    /// The index in the clear headers of the packets that the secret protects.
    pub index: SessionIndex,
    /// The sending side.
    pub side: Side,
    /// The purpose of the secret: what it protects.
    pub purpose: Purpose,
    /// Key epoch.
    pub epoch: u32,
    /// The session's suite.
    pub suite: Suite,
    secret: &'a Secret,
}

/// The line of SPEC §13: it shows the secret.
impl fmt::Display for KeyLogEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, side, purpose, epoch, suite, secret } = self;
        write!(f, "SMT_SECRET {:016x} {side} {purpose} {epoch} {:04x} ", index.0, suite.code())?;
        secret.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Without the secret.
impl fmt::Debug for KeyLogEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, side, purpose, epoch, suite, secret } = self;
        f.debug_struct("KeyLogEntry")
            .field("index", index)
            .field("side", side)
            .field("purpose", purpose)
            .field("epoch", epoch)
            .field("suite", suite)
            .field("secret", secret)
            .finish()
    }
}

/// The context in which [`crate::SealKeys`] or [`crate::OpenKeys`] logs the secrets of its
/// direction.
#[derive(Clone)]
pub struct KeyLogContext {
    /// Where lines go.
    pub log: Arc<dyn KeyLog>,
    /// The receiving side's session index.
    pub index: SessionIndex,
    /// The sending side.
    pub side: Side,
}

impl KeyLogContext {
    pub(crate) fn log(&self, suite: Suite, epoch: u32, secrets: &DirectionSecrets) {
        let Self { ref log, index, side } = *self;
        for (purpose, secret) in
            [(Purpose::Data, &secrets.data), (Purpose::Control, &secrets.control)]
        {
            if !secret.is_plaintext() {
                log.log(&KeyLogEntry { index, side, purpose, epoch, suite, secret });
            }
        }
    }
}

impl fmt::Debug for KeyLogContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLogContext")
            .field("index", &self.index)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    mod display {
        use super::*;

        #[test]
        fn is_the_line_of_the_specification_and_debug_hides_the_secret() {
            let secret = Secret::fill(Suite::ChaCha20Poly1305, |out| {
                out.fill(0xAB);
                Ok::<(), ()>(())
            })
            .unwrap();
            let entry = KeyLogEntry {
                index: SessionIndex(0x0000_0001_0000_000F),
                side: Side::Server,
                purpose: Purpose::Control,
                epoch: 11,
                suite: Suite::ChaCha20Poly1305,
                secret: &secret,
            };
            let expected =
                format!("SMT_SECRET 000000010000000f server control 11 1303 {}", "ab".repeat(32));
            assert_eq!(format!("{entry}"), expected);
            assert!(!format!("{entry:?}").contains("abab"));
        }
    }
}
