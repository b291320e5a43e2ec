// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Judges a peer by a list of certificates that are known one by one.
//!
//! Flow: 1. the peer's leaf must equal a pinned certificate, byte for byte 2. its signature over
//! the handshake must verify with the key in it. Not here: names, dates and issuers. The one who
//! pins a certificate has checked them.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Accepts exactly the pinned certificates, of servers or of clients.
#[derive(Debug)]
pub(crate) struct PinnedVerifier {
    pinned: Arc<[CertificateDer<'static>]>,
    algorithms: WebPkiSupportedAlgorithms,
    /// As a server: refuse clients that send no certificate.
    mandatory: bool,
}

impl PinnedVerifier {
    pub(crate) fn new(
        pinned: Arc<[CertificateDer<'static>]>,
        algorithms: WebPkiSupportedAlgorithms,
        mandatory: bool,
    ) -> Self {
        Self {
            pinned,
            algorithms,
            mandatory,
        }
    }

    /// Certificates are public: the comparison need not be constant in time.
    fn check(&self, leaf: &CertificateDer<'_>) -> Result<(), Error> {
        if !self
            .pinned
            .iter()
            .any(|pinned| pinned.as_ref() == leaf.as_ref())
        {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(())
    }
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PinnedVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
