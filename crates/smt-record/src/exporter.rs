// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The exporter of a session (SPEC §7.4): secrets for other uses than SMT's, bound to the key
//! exchange that the session came from.
//!
//! Both ends derive the same bytes for a label and a context. No other session, label, context or
//! length gives bytes that have anything to do with them. Key updates change nothing in it.

use core::fmt;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::hash::{HashProvider, Prk};
use crate::limits::{EXPORT_LABEL_MAX, EXPORT_LEN_MAX};
use crate::secret::{SECRET_LEN_MAX, Secret};
use crate::suite::Suite;

/// The secret from which a session's exported secrets come. Cleared when dropped, never printed,
/// and never in a key log.
#[derive(PartialEq, Eq)]
pub struct Exporter {
    suite: Suite,
    secret: Secret,
}

impl Exporter {
    pub(crate) fn new(suite: Suite, secret: Secret) -> Self {
        Self { suite, secret }
    }

    /// Fills `out` with the secret of this label and context (SPEC §7.4). The context may be empty,
    /// and as long as the caller likes.
    ///
    /// # Errors
    /// [`ExportError`]; `out` is as it was.
    pub fn export(
        &self,
        hash: &dyn HashProvider,
        label: &str,
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        if self.secret.is_plaintext() {
            return Err(ExportError::Plaintext);
        }
        if !(1..=EXPORT_LABEL_MAX).contains(&label.len()) {
            return Err(ExportError::Label { len: label.len() });
        }
        if !(1..=EXPORT_LEN_MAX).contains(&out.len()) {
            return Err(ExportError::Length { len: out.len() });
        }
        let context = hash.sha256(&[context]);
        let mut derived = Zeroizing::new([0; SECRET_LEN_MAX]);
        let derived = &mut derived[..self.suite.hash_len()];
        Prk::new(hash, self.suite, self.secret.as_bytes()).expand_label(label, b"", derived);
        Prk::new(hash, self.suite, derived).expand_label("exporter", &context, out);
        Ok(())
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// Why no secret is exported.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ExportError {
    /// The label is empty or too long.
    #[error(
        "caller: the label of an exported secret has {len} bytes; give 1 to {EXPORT_LABEL_MAX}"
    )]
    Label {
        /// Bytes given.
        len: usize,
    },
    /// The exported secret would be empty or too long.
    #[error(
        "caller: {len} bytes of an exported secret were asked for; ask for 1 to {EXPORT_LEN_MAX}"
    )]
    Length {
        /// Bytes asked for.
        len: usize,
    },
    /// The session has no secrets.
    #[error("caller: a session of the plaintext measurement version has no secrets to export")]
    Plaintext,
}

#[cfg(test)]
mod tests;
