// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A P-256 authority and a server's certificate, made for one run.

use std::fs;
use std::path::{Path, PathBuf};

use kit_process::{Doing, Failure, SERVER_NAME};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// The files.
#[derive(Clone, Debug)]
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    /// Writes new ones into this folder.
    pub(crate) fn make(folder: &Path) -> Result<Self, Failure> {
        let files = Self {
            authority: folder.join("authority.pem"),
            certificate: folder.join("server.pem"),
            key: folder.join("server-key.pem"),
        };
        let what = "making certificates";
        let mut of_authority = CertificateParams::new(Vec::new()).doing(what)?;
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Under the name that the server's has by itself, it would count as signed by itself.
        of_authority.distinguished_name.push(DnType::CommonName, "authority of the kit");
        let key = KeyPair::generate().doing(what)?;
        let authority = CertifiedIssuer::self_signed(of_authority, key).doing(what)?;
        let key = KeyPair::generate().doing(what)?;
        let of_server = CertificateParams::new(vec![SERVER_NAME.to_owned()]).doing(what)?;
        let server = of_server.signed_by(&key, &authority).doing(what)?;
        fs::write(&files.authority, authority.pem()).doing(what)?;
        fs::write(&files.certificate, server.pem()).doing(what)?;
        fs::write(&files.key, key.serialize_pem()).doing(what)?;
        Ok(files)
    }
}
