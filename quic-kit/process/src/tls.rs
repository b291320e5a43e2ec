// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS by rustls, for the stacks that take it: one cipher suite, X25519, full handshakes.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::crypto::{CryptoProvider, aws_lc_rs::kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};

use crate::failure::{Doing, Failure};
use crate::{ALPN, Cipher};

/// aws-lc with one cipher suite, and AES-128-GCM, which QUIC's first packets have.
#[must_use]
pub fn provider(cipher: Cipher) -> CryptoProvider {
    let first = match cipher {
        Cipher::Aes128 => cipher_suite::TLS13_AES_128_GCM_SHA256,
        Cipher::Aes256 => cipher_suite::TLS13_AES_256_GCM_SHA384,
        Cipher::Chacha20 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    };
    CryptoProvider {
        cipher_suites: suites(first),
        kx_groups: vec![kx_group::X25519],
        ..aws_lc_rs::default_provider()
    }
}

/// A client prefers the first. Both ends have it, so that the second is never agreed on.
fn suites(first: SupportedCipherSuite) -> Vec<SupportedCipherSuite> {
    let mut suites = vec![first];
    if first != cipher_suite::TLS13_AES_128_GCM_SHA256 {
        suites.push(cipher_suite::TLS13_AES_128_GCM_SHA256);
    }
    suites
}

/// A client that trusts this authority.
///
/// # Errors
/// The file cannot be read, or is none of certificates.
pub fn client_config(provider: CryptoProvider, authority: &Path) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).doing("trusting the authority")?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .doing("configuring TLS")?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

/// A server with this certificate. It gives no tickets: each handshake is a full one.
///
/// # Errors
/// A file cannot be read, or is not what it should be.
pub fn server_config(
    provider: CryptoProvider,
    certificate: &Path,
    key: &Path,
) -> Result<ServerConfig, Failure> {
    let key = PrivateKeyDer::from_pem_file(key).doing("reading the private key")?;
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .doing("configuring TLS")?;
    let mut config = config
        .with_no_client_auth()
        .with_single_cert(certificates(certificate)?, key)
        .doing("taking the certificate")?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .doing(&format!("reading {}", path.display()))
}
