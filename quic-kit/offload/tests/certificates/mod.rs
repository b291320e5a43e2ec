// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates in a folder that goes with its test, for several tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kit_process::SERVER_NAME;

pub(crate) struct Files {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Files {
    pub(crate) fn make() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("kit-certificates-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        // A name of its own: one that is the server's too makes OpenSSL see a self-signed one.
        let name = rcgen::DnType::CommonName;
        params.distinguished_name.push(name, "authority");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        let names = vec![SERVER_NAME.to_owned(), "127.0.0.1".to_owned()];
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(names).unwrap();
        let server = params.signed_by(&key, &authority).unwrap();
        let files = Self {
            authority: folder.join("authority.pem"),
            certificate: folder.join("server.pem"),
            key: folder.join("key.pem"),
            folder,
        };
        std::fs::write(&files.authority, authority.pem()).unwrap();
        std::fs::write(&files.certificate, server.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
