// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An authority of a test, and its files as a server reads them: they may be replaced.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use smt::pki::{
    CertificateAuthority, CertificatePlan, IssuedCertificate, KeyKind, RevokedCertificates,
    Validity,
};
use smt::{Identity, Pem, Trust};
use smt_valkey::{Options, Stream};

use crate::server::{HANGS_AFTER, Server};

/// An authority, a server and two clients.
pub(crate) struct Fleet {
    folder: PathBuf,
    authority: CertificateAuthority,
    pub(crate) alice: IssuedCertificate,
    pub(crate) bob: IssuedCertificate,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-valkey-fleet-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(&folder).expect("a folder");
        let validity = Validity::days(800).expect("a validity");
        let authority = CertificateAuthority::new(&name, validity, KeyKind::default());
        let authority = authority.expect("an authority");
        let client = |name| {
            let plan = CertificatePlan::client(name).expect("a plan");
            authority.issue(&plan).expect("a certificate")
        };
        let fleet = Self { folder, alice: client("alice"), bob: client("bob"), authority };
        fleet.write("ca.pem", fleet.authority.certificate_pem());
        fleet.renew_server();
        fleet.revoke(&[]);
        fleet
    }

    /// Arguments of the module.
    pub(crate) fn arguments(&self) -> String {
        let [cert, key, ca, crl] = ["server.pem", "server.key", "ca.pem", "ca.crl"]
            .map(|name| self.path(name).display().to_string());
        format!("cert {cert} key {key} ca {ca} crl {crl}")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it is written");
    }

    /// Puts another certificate in the place of the server's.
    pub(crate) fn renew_server(&self) -> IssuedCertificate {
        let plan = CertificatePlan::server(&["127.0.0.1"]).expect("a plan");
        let issued = self.authority.issue(&plan).expect("a certificate");
        self.write("server.pem", &issued.certificate_pem);
        self.write("server.key", &issued.key_pem);
        issued
    }

    /// Makes these the only ones of the revocation list.
    pub(crate) fn revoke(&self, clients: &[&IssuedCertificate]) {
        let mut revoked = RevokedCertificates::default();
        for client in clients {
            let pem = Pem::text("it", client.certificate_pem.as_bytes());
            self.authority.revoke(&pem, &mut revoked).expect("it is the authority's");
        }
        let week = Validity::days(7).expect("a validity");
        let list = self.authority.revocation_list(&revoked, week).expect("a list");
        self.write("ca.crl", &list);
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::roots_from_pem(self.authority.certificate_pem().as_bytes()).expect("an authority")
    }

    /// A connection of a client.
    pub(crate) async fn connect(&self, server: &Server, client: &IssuedCertificate) -> Stream {
        let stream = self.options(client).stream(("127.0.0.1", server.smt)).await;
        stream.unwrap_or_else(|error| panic!("{error}\n{}", server.log()))
    }

    /// Why a client gets no connection.
    pub(crate) async fn refusal(&self, server: &Server, client: &IssuedCertificate) -> String {
        let stream = self.options(client).stream(("127.0.0.1", server.smt)).await;
        stream.expect_err("no connection").to_string()
    }

    fn options(&self, client: &IssuedCertificate) -> Options {
        let (certificate, key) = (client.certificate_pem.as_bytes(), client.key_pem.as_bytes());
        let identity = Identity::from_pem(certificate, key).expect("an identity");
        Options::new(self.trust()).silence_max(HANGS_AFTER).identity(identity)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).expect("the folder is ours");
    }
}
