// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates for one run.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

/// A directory with the certificates and keys of an authority's server, a writer and a reader, and
/// of a stranger whom another authority knows.
#[derive(Debug)]
pub struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    /// Makes them in this directory.
    #[must_use]
    pub fn make(directory: &Path) -> Self {
        fs::create_dir_all(directory).expect("a directory is made");
        let made = Self { directory: directory.to_owned() };
        let authority = authority();
        fs::write(made.path("ca.pem"), authority.pem()).expect("a file is written");
        for name in ["server", "writer", "reader"] {
            made.issue(&authority, name);
        }
        made.issue(&self::authority(), "stranger");
        made
    }

    /// The path of one of the files.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// The options by which a process has the certificate of this name.
    #[must_use]
    pub fn options(&self, name: &str) -> Vec<String> {
        let files = [
            ("--ca", "ca.pem".to_owned()),
            ("--cert", format!("{name}.pem")),
            ("--key", format!("{name}.key")),
        ];
        let option = |(option, file): (&str, String)| {
            [option.to_owned(), self.path(&file).display().to_string()]
        };
        files.into_iter().flat_map(option).collect()
    }

    fn issue(&self, authority: &CertifiedIssuer<'static, KeyPair>, name: &str) {
        let names = ["localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("the name is one");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = match name {
            "server" => vec![ExtendedKeyUsagePurpose::ServerAuth],
            _ => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        let key = KeyPair::generate().expect("keys are made");
        let certificate = params.signed_by(&key, authority).expect("it is signed");
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).expect("it is written");
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).expect("it is written");
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let key = KeyPair::generate().expect("keys are made");
    CertifiedIssuer::self_signed(params, key).expect("it is signed")
}
