// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificate chains of some length, as the paper's Table I asks for.

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::super::NAME;
use crate::failure::Failure;

/// The keys of all certificates of a chain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ChainKeys {
    EcdsaP256,
    Rsa2048,
}

/// A chain that a peer shows, and the authority that it ends in.
#[derive(Debug)]
pub(super) struct Chain {
    /// The leaf first; the authority is not in it.
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) authority: CertificateDer<'static>,
}

impl Chain {
    /// A chain of so many certificates, at least one.
    pub(super) fn new(kind: ChainKeys, length: usize) -> Result<Self, Failure> {
        let key = kind.generate()?;
        let params = authority_params()?;
        let authority = params.self_signed(&key).map_err(not_made)?.der().clone();
        let mut issuer = Issuer::new(params, key);
        let mut certificates = Vec::new();
        for _ in 1..length {
            let key = kind.generate()?;
            let params = authority_params()?;
            let certificate = params.signed_by(&key, &issuer).map_err(not_made)?;
            certificates.insert(0, certificate.der().clone());
            issuer = Issuer::new(params, key);
        }
        let key = kind.generate()?;
        let leaf = leaf_params()?.signed_by(&key, &issuer).map_err(not_made)?;
        certificates.insert(0, leaf.der().clone());
        Ok(Self {
            certificates,
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            authority,
        })
    }
}

impl ChainKeys {
    fn generate(self) -> Result<KeyPair, Failure> {
        let pair = match self {
            Self::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            Self::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        };
        pair.map_err(not_made)
    }
}

fn authority_params() -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(Vec::new()).map_err(not_made)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(params)
}

fn leaf_params() -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).map_err(not_made)?;
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn not_made(error: rcgen::Error) -> Failure {
    Failure::new(format!("a certificate could not be made: {error}"))
}
