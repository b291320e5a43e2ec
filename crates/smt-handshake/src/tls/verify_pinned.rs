// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepts certificates or public keys (RFC 7250) that are known one by one, of servers or of
//! clients.
//!
//! The leaf that a peer shows must equal a known one, byte for byte. Not here: names, dates
//! and issuers. The one who pins a certificate has checked them, and a public key has none.

use std::sync::Arc;

use rustls::{CertificateError, DistinguishedName, Error};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::tls::verify::{ClientCheck, Form, ServerCheck, Shown};

/// The known leaves, all of one form.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) form: Form,
    /// Certificates, or SubjectPublicKeyInfo in their place, as TLS carries both (RFC 7250 §3).
    pub(crate) leaves: Arc<[CertificateDer<'static>]>,
}

/// Accepts the peers of known leaves.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) known: Known,
    /// As a server: refuse clients that send no certificate.
    pub(crate) is_mandatory: bool,
}

impl Pinned {
    /// Accepts servers, which always show a leaf.
    pub(crate) fn servers(known: Known) -> Self {
        Self { known, is_mandatory: true }
    }

    /// Leaves are public: the comparison need not be constant in time.
    fn check(&self, leaf: &CertificateDer<'_>) -> Result<(), Error> {
        let mut known = self.known.leaves.iter();
        if known.any(|known| known.as_ref() == leaf.as_ref()) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

impl ServerCheck for Pinned {
    fn form(&self) -> Form {
        self.known.form
    }

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
    fn form(&self) -> Form {
        self.known.form
    }

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
