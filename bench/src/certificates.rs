// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Throw-away certificates: an authority and a server's leaf, both P-256, in files that all peers read.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::failure::{Doing, Failure};

/// The name in the server's certificate.
pub(crate) const SERVER_NAME: &str = "localhost";

/// Files in the run's directory.
pub(crate) fn authority(directory: &Path) -> PathBuf {
    directory.join("authority.pem")
}

/// The server's chain: the leaf alone, signed by the authority.
pub(crate) fn certificate(directory: &Path) -> PathBuf {
    directory.join("server.pem")
}

/// The server's key.
pub(crate) fn key(directory: &Path) -> PathBuf {
    directory.join("server.key")
}

/// A directory that goes with this value.
#[derive(Debug)]
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    /// Makes the directory and the certificates.
    pub(crate) fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("smt-bench-{}", std::process::id()));
        fs::create_dir_all(&path).doing("making a directory for certificates")?;
        let directory = Self(path);
        directory.fill().doing("making certificates")?;
        Ok(directory)
    }

    fn fill(&self) -> Result<(), Failure> {
        let authority_key = KeyPair::generate()?;
        let mut plan = CertificateParams::new(Vec::new())?;
        plan.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        plan.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        plan.distinguished_name
            .push(DnType::CommonName, "smt-bench authority");
        let authority_certificate = plan.self_signed(&authority_key)?;
        let issuer = Issuer::new(plan, authority_key);
        let server_key = KeyPair::generate()?;
        let mut plan = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        plan.distinguished_name
            .push(DnType::CommonName, "smt-bench server");
        let server_certificate = plan.signed_by(&server_key, &issuer)?;
        fs::write(authority(&self.0), authority_certificate.pem())?;
        fs::write(certificate(&self.0), server_certificate.pem())?;
        fs::write(key(&self.0), server_key.serialize_pem())?;
        Ok(())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {error}", self.0.display());
        }
    }
}
