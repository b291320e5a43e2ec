// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepts certificate chains by their issuers, and tells two bad signatures apart: one in a chain,
//! and the peer's own over the handshake.
//!
//! TLS's library gives one error for both, yet they mean different things: a bad signature in a
//! chain is an issuer that is not trusted, and one over the handshake is a peer without the
//! private key of the certificate that it shows.
//! Flow: 1. webpki judges the chain  2. a bad signature found there becomes [`ChainSignature`]
//! 3. [`CertificateError::BadSignature`] is left for the handshake, with the alert of RFC 8446
//! §4.4.3. Not here: pinned certificates, whose chains nobody judges (`verify_pinned.rs`).

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, DistinguishedName, Error, OtherError};
use rustls_pki_types::{ServerName, UnixTime};

use crate::tls::verify::{ClientCheck, ServerCheck, Shown};

/// A certificate of a chain is not signed by the issuer that it names.
#[derive(Debug)]
pub(crate) struct ChainSignature;

impl ChainSignature {
    pub(crate) fn is_in(error: &OtherError) -> bool {
        error.0.is::<Self>()
    }

    /// Marks a bad signature as one of the chain.
    pub(crate) fn mark(error: Error) -> Error {
        match error {
            Error::InvalidCertificate(CertificateError::BadSignature) => {
                CertificateError::Other(OtherError(Arc::new(Self))).into()
            }
            other => other,
        }
    }
}

impl fmt::Display for ChainSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a certificate is not signed by the issuer that it names")
    }
}

impl std::error::Error for ChainSignature {}

/// Accepts the servers that webpki accepts.
#[derive(Debug)]
pub(crate) struct ServerChains(pub(crate) Arc<dyn ServerCertVerifier>);

impl ServerCheck for ServerChains {
    fn check_server(
        &self,
        shown: Shown<'_>,
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<(), Error> {
        let Shown { leaf, intermediates } = shown;
        self.0
            .verify_server_cert(leaf, intermediates, name, ocsp_response, now)
            .map(|_| ())
            .map_err(ChainSignature::mark)
    }
}

/// Accepts the clients that webpki accepts.
#[derive(Debug)]
pub(crate) struct ClientChains(pub(crate) Arc<dyn ClientCertVerifier>);

impl ClientCheck for ClientChains {
    fn check_client(&self, shown: Shown<'_>, now: UnixTime) -> Result<(), Error> {
        self.0
            .verify_client_cert(shown.leaf, shown.intermediates, now)
            .map(|_| ())
            .map_err(ChainSignature::mark)
    }

    fn is_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hints(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }
}
