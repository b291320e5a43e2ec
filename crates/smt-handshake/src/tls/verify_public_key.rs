// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepts peers whose public keys are known one by one (RFC 7250), of servers or of clients.
//!
//! A peer shows its key in the place of a certificate, and the key must equal one that is known,
//! byte for byte. Not here: names and dates. A public key has none.

use std::sync::Arc;

use rustls::{CertificateError, DistinguishedName, Error};
use rustls_pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};

use crate::tls::verify::{ClientCheck, Form, ServerCheck, Shown};

/// The known keys.
#[derive(Debug)]
pub(crate) struct PublicKeys {
    pub(crate) keys: Arc<[SubjectPublicKeyInfoDer<'static>]>,
}

impl PublicKeys {
    /// Keys are public: the comparison need not be constant in time.
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let mut keys = self.keys.iter();
        if keys.any(|key| key.as_ref() == shown.as_ref()) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

impl ServerCheck for PublicKeys {
    fn form(&self) -> Form {
        Form::RawPublicKey
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

impl ClientCheck for PublicKeys {
    fn form(&self) -> Form {
        Form::RawPublicKey
    }

    fn check_client(&self, shown: Shown<'_>, _: UnixTime) -> Result<(), Error> {
        self.check(shown.leaf)
    }

    fn is_mandatory(&self) -> bool {
        true
    }

    fn root_hints(&self) -> &[DistinguishedName] {
        &[]
    }
}
