// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepts certificates that are known one by one, of servers or of clients.
//!
//! The peer's leaf must equal a pinned certificate, byte for byte. Not here: names, dates and
//! issuers. The one who pins a certificate has checked them.

use std::sync::Arc;

use rustls::{CertificateError, DistinguishedName, Error};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::tls::verify::{ClientCheck, ServerCheck, Shown};

/// The pinned certificates.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
    /// As a server: refuse clients that send no certificate.
    pub(crate) is_mandatory: bool,
}

impl Pinned {
    /// Certificates are public: the comparison need not be constant in time.
    fn check(&self, leaf: &CertificateDer<'_>) -> Result<(), Error> {
        let mut pinned = self.certificates.iter();
        if pinned.any(|pinned| pinned.as_ref() == leaf.as_ref()) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

impl ServerCheck for Pinned {
    fn check_server(
        &self,
        shown: Shown<'_>,
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<(), Error> {
        self.check(shown.leaf)
    }
}

impl ClientCheck for Pinned {
    fn check_client(&self, shown: Shown<'_>, _: UnixTime) -> Result<(), Error> {
        self.check(shown.leaf)
    }

    fn is_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hints(&self) -> &[DistinguishedName] {
        &[]
    }
}
