// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The verification of a peer's certificates and of its signature over the handshake, for both
//! sides of TLS.
//!
//! 1. A check accepts the chain or not: by its issuers (`verify_chain.rs`), or by a list of
//!    certificates or public keys that are known one by one (`verify_pinned.rs`).
//! 2. The signature over the handshake is verified with the key in the leaf, whatever the check.

use std::fmt::Debug;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};

/// The certificates that a peer shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) leaf: &'a CertificateDer<'a>,
    pub(crate) intermediates: &'a [CertificateDer<'a>],
}

/// The form in which a peer shows its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    Certificate,
    /// A key alone (RFC 7250).
    RawPublicKey,
}

/// Accepts servers, as a client does.
pub(crate) trait ServerCheck: Debug + Send + Sync {
    /// The form that servers are asked for.
    fn form(&self) -> Form {
        Form::Certificate
    }

    fn check_server(
        &self,
        shown: Shown<'_>,
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<(), Error>;
}

/// Accepts clients, as a server does.
pub(crate) trait ClientCheck: Debug + Send + Sync {
    /// The form that clients are asked for.
    fn form(&self) -> Form {
        Form::Certificate
    }

    fn check_client(&self, shown: Shown<'_>, now: UnixTime) -> Result<(), Error>;

    /// Whether clients that send no certificate are refused.
    fn is_mandatory(&self) -> bool;

    /// The names of authorities whose certificates clients are asked for.
    fn root_hints(&self) -> &[DistinguishedName];
}

/// A verifier of TLS by one check.
#[derive(Debug)]
pub(crate) struct Verifier<C> {
    check: C,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<C> Verifier<C> {
    pub(crate) fn new(check: C, algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { check, algorithms }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        form: Form,
    ) -> Result<HandshakeSignatureValid, Error> {
        match form {
            Form::Certificate => verify_tls13_signature(message, leaf, signed, &self.algorithms),
            Form::RawPublicKey => {
                let key = SubjectPublicKeyInfoDer::from(leaf.as_ref());
                verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
            }
        }
    }
}

impl<C: ServerCheck> ServerCertVerifier for Verifier<C> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Shown { leaf, intermediates };
        self.check.check_server(shown, name, ocsp_response, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, leaf, signed, self.check.form())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.check.form() == Form::RawPublicKey
    }
}

impl<C: ClientCheck> ClientCertVerifier for Verifier<C> {
    fn client_auth_mandatory(&self) -> bool {
        self.check.is_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.check.root_hints()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let shown = Shown { leaf, intermediates };
        self.check.check_client(shown, now)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, leaf, signed, self.check.form())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.check.form() == Form::RawPublicKey
    }
}
