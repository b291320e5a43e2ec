// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ephemeral certificates: an authority and a server's leaf, both P-256, in files that all peers
//! read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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

/// A directory for this user alone, which goes with this value.
#[derive(Debug)]
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    /// Makes the directory and the certificates.
    pub(crate) fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("smt-bench-{}", std::process::id()));
        let mut builder = DirBuilder::new();
        builder.mode(0o700).create(&path).doing("making a directory for certificates")?;
        let directory = Self(path);
        directory.guard().doing("catching signals")?;
        directory.fill().doing("making certificates")?;
        Ok(directory)
    }

    /// SIGINT and SIGTERM remove it too before they end the process: a run of hours is often ended
    /// so. Processes and namespaces end with their input.
    fn guard(&self) -> Result<(), Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let path = self.0.clone();
        std::thread::spawn(move || {
            signals.forever().next();
            // It is gone already if the run was about to end.
            let _ = fs::remove_dir_all(path);
            std::process::exit(INTERRUPTED);
        });
        Ok(())
    }

    fn fill(&self) -> Result<(), Failure> {
        let authority_key = KeyPair::generate()?;
        let mut plan = CertificateParams::new(Vec::new())?;
        plan.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        plan.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        plan.distinguished_name.push(DnType::CommonName, "smt-bench authority");
        let authority_certificate = plan.self_signed(&authority_key)?;
        let issuer = Issuer::new(plan, authority_key);
        let server_key = KeyPair::generate()?;
        let mut plan = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        plan.distinguished_name.push(DnType::CommonName, "smt-bench server");
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

/// 128 and the number of SIGINT, as shells say it.
const INTERRUPTED: i32 = 130;
