// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a certificate could not be made.

use smt_handshake::CredentialError;

use std::fmt;

use crate::limits::CERTIFICATE_DAYS_MAX;
use crate::serial::CertificateSerial;

/// Why a certificate could not be made. All of it is local.
#[non_exhaustive]
#[derive(thiserror::Error)]
pub enum MakeCertificateError {
    /// A name is no DNS name, IP address or URI.
    #[error("{name:?} is no DNS name, IP address or URI")]
    BadName {
        /// The name.
        name: String,
    },
    /// The dates are impossible.
    #[error(
        "a certificate must be valid for 1 to {CERTIFICATE_DAYS_MAX} days, after 1970 and before \
        2500"
    )]
    BadValidity,
    /// A given certificate or key cannot be used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A server's certificate needs a name, or no client could call it.
    #[error("a server's certificate needs at least one name that clients call it by")]
    NoName,
    /// The given certificate may not sign others: give that of an authority.
    #[error(
        "the given certificate is not that of an authority, so nothing that it signs is accepted"
    )]
    NotAnAuthority,
    /// A revocation list of an authority does not revoke the authority.
    #[error(
        "{serial} is the serial number of the authority's own certificate, which its list cannot \
        revoke: let no host trust it"
    )]
    OwnSerial {
        /// The number.
        serial: CertificateSerial,
    },
    /// Peers stop accepting a leaf when its authority expires: ask for fewer days.
    #[error(
        "the certificate would outlive its authority, which is valid for {days} more days; ask \
        for at most that"
    )]
    OutlivesAuthority {
        /// Whole days that the authority is still valid.
        days: i64,
    },
    /// The library refused; the text says why.
    #[error("the certificate could not be made: {0}")]
    Refused(#[from] rcgen::Error),
}

/// Its text, since that is what a `main` shows that returns it.
impl fmt::Debug for MakeCertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
