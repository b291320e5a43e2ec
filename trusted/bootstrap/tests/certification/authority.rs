// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Vendors of TPMs.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams,
    SubjectPublicKeyInfo, date_time_ymd,
};
use smt_bootstrap::Authorities;

/// Endorsement keys of two TPMs in software.
pub(crate) const RSA: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArvWIZNhlJOnTPztHxfY2
6e5sVOG+lbnTjFoUSJUuxH0rZSP86/yv/K9hwfzwsMJurYHrbvNXSFFMbxkMtxZh
nDdb9NsBLHdwpXozudLwW6/yJsugJOks8jaoIDXIHDyniJGnBEQyi2aATdB/urUH
8QYhky7k6MiChyUlMUqjzcOFcj80hhke2PoR+74T1Bw5dyyEDTeultaUxREGDsLE
fCArtcW2g5uRjP9Rov0JcuyxEM99mlQv/kSz98R1RcunEaXYlG1fUfD/xDIBCE7w
QNMSwi3mKJBlqgqI0VzIT3tXpfJH97QcLLaFTTPUMp4cLI3nSlhJrn94Qebtx6Gs
XwIDAQAB
-----END PUBLIC KEY-----
";
pub(crate) const ECC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqcwYMyi+rR+Vthav8b8KH8SFSh0I
29lLTR6bsDJCNO8PZBk8vAMnKqEeMe7+w4UZAgvkbcSJpF5XUtp/Z8dinw==
-----END PUBLIC KEY-----
";

/// The purpose of certificates of endorsement keys.
pub(crate) const PURPOSE: &[u64] = &[2, 23, 133, 8, 1];

/// The number of a certificate between a root and TPMs.
pub(crate) const ISSUER_SERIAL: u64 = 77;

/// An authority that certifies TPMs.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let (params, key) = Self::params(name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// An authority that this one has certified.
    pub(crate) fn certify_authority(&self, name: &str) -> Self {
        let (mut params, key) = Self::params(name);
        params.serial_number = Some(ISSUER_SERIAL.into());
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    fn params(name: &str) -> (CertificateParams, KeyPair) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params, KeyPair::generate().unwrap())
    }

    /// The certificate of a key in PEM, as a vendor makes it.
    pub(crate) fn certify(&self, key: &str) -> Vec<u8> {
        self.certify_with(key, |_| ())
    }

    pub(crate) fn certify_with(
        &self,
        key: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::ExplicitNoCa;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Other(PURPOSE.to_vec())];
        change(&mut params);
        let key = SubjectPublicKeyInfo::from_pem(key).unwrap();
        params.signed_by(&key, &self.issuer).unwrap().der().to_vec()
    }

    /// The list, in PEM, of what this authority has withdrawn: certificates with this number.
    pub(crate) fn withdraw(&self, serial: u64, next_update: i32) -> String {
        let revocation_time = date_time_ymd(2020, 1, 1);
        let revoked = RevokedCertParams {
            serial_number: serial.into(),
            revocation_time,
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: revocation_time,
            next_update: date_time_ymd(next_update, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// This authority alone.
    pub(crate) fn alone(&self) -> Authorities {
        let mut authorities = Authorities::default();
        authorities.add_roots(self.pem.as_bytes()).unwrap();
        authorities
    }
}
