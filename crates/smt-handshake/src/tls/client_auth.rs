// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whom a server asks for a certificate.

use crate::tls::verify::Form;
use crate::trust::Trust;

/// Whether a server asks its clients who they are.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// Not asked.
    None,
    /// Asked; a client without a certificate is let in, one with a bad one is not. Not with public
    /// keys alone: the client's hello says whether it shows one, and TLS's library refuses those
    /// that do not.
    Optional(Trust),
    /// Only clients with a certificate that this trust accepts are let in. Providers of other kinds
    /// beside TLS (`SeveralKinds` of `smt-handshake`) judge their own clients.
    Required(Trust),
}

impl ClientAuth {
    /// Whether dates of client certificates matter.
    pub(crate) fn judges_dates(&self) -> bool {
        match self {
            Self::None => false,
            Self::Optional(trust) | Self::Required(trust) => trust.judges_dates(),
        }
    }

    /// The last second in which the revocation lists of clients count, if there are some.
    pub(super) fn last_second(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Optional(trust) | Self::Required(trust) => trust.last_second(),
        }
    }

    pub(super) fn sessions_memory(&self, wanted: usize) -> usize {
        match self {
            Self::None => wanted,
            Self::Optional(trust) | Self::Required(trust) => trust.sessions_memory(wanted),
        }
    }

    /// The form that clients are asked for.
    pub(crate) fn form(&self) -> Form {
        match self {
            Self::None => Form::Certificate,
            Self::Optional(trust) | Self::Required(trust) => trust.form(),
        }
    }
}
