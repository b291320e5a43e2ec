// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS library's parts, each with a clock: key exchange, key schedule, signatures and
//! certificates.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, hmac};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CipherSuiteCommon, DigitallySignedStruct, DistinguishedName, Error, NamedGroup,
    SignatureAlgorithm, SignatureScheme, SupportedCipherSuite, Tls13CipherSuite,
};

use super::clock::{Operation, timed};

/// TLS_AES_128_GCM_SHA256 and secp256r1, as in the paper.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(&SUITE)],
        kx_groups: vec![&TimedGroup],
        ..default_provider()
    }
}

static SUITE: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    let inner = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().expect("its name says so");
    Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: inner.common.suite,
            hash_provider: inner.common.hash_provider,
            confidentiality_limit: inner.common.confidentiality_limit,
        },
        hkdf_provider: Box::leak(Box::new(TimedHkdf(inner.hkdf_provider))),
        aead_alg: inner.aead_alg,
        quic: None,
    }
});

#[derive(Debug)]
struct TimedGroup;

impl SupportedKxGroup for TimedGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let active = timed(Operation::KeyGeneration, || kx_group::SECP256R1.start())?;
        Ok(Box::new(TimedExchange(active)))
    }

    fn name(&self) -> NamedGroup {
        kx_group::SECP256R1.name()
    }
}

struct TimedExchange(Box<dyn ActiveKeyExchange>);

impl ActiveKeyExchange for TimedExchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        timed(Operation::Agreement, || self.0.complete(peer_pub_key))
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}

struct TimedHkdf(&'static dyn Hkdf);

impl Hkdf for TimedHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        expander(|| self.0.extract_from_zero_ikm(salt))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        expander(|| self.0.extract_from_secret(salt, secret))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        expander(|| self.0.expander_for_okm(okm))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        timed(Operation::Derivation, || self.0.hmac_sign(key, message))
    }
}

fn expander(make: impl FnOnce() -> Box<dyn HkdfExpander>) -> Box<dyn HkdfExpander> {
    Box::new(TimedExpander(timed(Operation::Derivation, make)))
}

struct TimedExpander(Box<dyn HkdfExpander>);

impl HkdfExpander for TimedExpander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        timed(Operation::Derivation, || self.0.expand_slice(info, output))
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        timed(Operation::Derivation, || self.0.expand_block(info))
    }

    fn hash_len(&self) -> usize {
        self.0.hash_len()
    }
}

/// A side's certificate with its key.
#[derive(Debug)]
pub(super) struct TimedIdentity(Arc<CertifiedKey>);

impl TimedIdentity {
    pub(super) fn new(chain: Vec<CertificateDer<'static>>, key: Arc<dyn SigningKey>) -> Self {
        Self(Arc::new(CertifiedKey::new(chain, Arc::new(TimedKey(key)))))
    }
}

impl ResolvesServerCert for TimedIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        timed(Operation::Resolution, || Some(Arc::clone(&self.0)))
    }
}

impl rustls::client::ResolvesClientCert for TimedIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct TimedKey(Arc<dyn SigningKey>);

impl SigningKey for TimedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.0.choose_scheme(offered)?;
        Some(Box::new(TimedSigner(signer)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Debug)]
struct TimedSigner(Box<dyn Signer>);

impl Signer for TimedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        timed(Operation::Signing, || self.0.sign(message))
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}

/// A judge of certificates and of signatures by their keys.
#[derive(Debug)]
pub(super) struct Timed<V>(pub(super) V);

impl ServerCertVerifier for Timed<Arc<dyn ServerCertVerifier>> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        decode(end_entity)?;
        timed(Operation::ChainVerification, || {
            let inner = &self.0;
            inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        })
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
        timed(Operation::SignatureVerification, || {
            self.0.verify_tls13_signature(message, cert, dss)
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

impl ClientCertVerifier for Timed<Arc<dyn ClientCertVerifier>> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        timed(Operation::ChainVerification, || {
            self.0.verify_client_cert(end_entity, intermediates, now)
        })
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
        timed(Operation::SignatureVerification, || {
            self.0.verify_tls13_signature(message, cert, dss)
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Reads a certificate once more, for its cost alone: the verification reads it by itself.
fn decode(certificate: &CertificateDer<'_>) -> Result<(), Error> {
    timed(Operation::Decoding, || ParsedCertificate::try_from(certificate).map(|_| ()))
}
