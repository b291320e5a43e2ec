// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells two bad signatures apart: one in a certificate chain, and the peer's own over the
//! handshake.
//!
//! TLS's library gives one error for both, yet they mean different things: a bad signature in a
//! chain is an issuer that is not trusted, and one over the handshake is a peer without the
//! private key of the certificate that it shows.
//! Flow: 1. webpki judges the chain  2. a bad signature found there becomes [`ChainSignature`]
//! 3. [`CertificateError::BadSignature`] is left for the handshake, with the alert of RFC 8446
//! §4.4.3. Not here: pinned certificates, whose chains nobody judges (`pinned.rs`).

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// A certificate of a chain is not signed by the issuer that it names.
#[derive(Debug)]
pub(crate) struct ChainSignature;

impl ChainSignature {
    pub(crate) fn is_in(error: &OtherError) -> bool {
        error.0.is::<Self>()
    }

    /// Marks a bad signature as one of the chain.
    fn mark(error: Error) -> Error {
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

/// Judges servers as the verifier inside does.
#[derive(Debug)]
pub(crate) struct ServerChains(pub(crate) Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for ServerChains {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map_err(ChainSignature::mark)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Judges clients as the verifier inside does.
#[derive(Debug)]
pub(crate) struct ClientChains(pub(crate) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for ClientChains {
    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0
            .verify_client_cert(end_entity, intermediates, now)
            .map_err(ChainSignature::mark)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
