// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files and texts that are no certificates, keys or authorities.

use smt::Fault::Caller;
use smt::pki::{CertificatePlan, IssuedCertificate};
use smt::{ClientAuth, Identity, Trust};

use crate::bystander::{ANY, Bystander};
use crate::misuse::{Misuse, failed, misuse};

fn issued(by: &Bystander) -> IssuedCertificate {
    let plan = CertificatePlan::server(&["localhost"]).unwrap();
    by.authority.authority().issue(&plan).unwrap()
}

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = identities();
    all.extend(trusts());
    all.extend(algorithms());
    all
}

fn identities() -> Vec<Misuse> {
    vec![
        misuse("certificate and key are swapped", None, "no certificate in", |by| {
            let made = issued(by);
            failed(Identity::from_pem(made.key_pem.as_bytes(), made.certificate_pem.as_bytes()))
        }),
        misuse("the key of another certificate", None, "does not belong to", |by| {
            let (one, other) = (issued(by), issued(by));
            failed(Identity::from_pem(one.certificate_pem.as_bytes(), other.key_pem.as_bytes()))
        }),
        misuse("a certificate file that is missing", None, "check the path", |by| {
            let key = by.file("server.key", issued(by).key_pem.as_bytes());
            failed(Identity::from_pem_files(by.directory.join("missing.pem"), key))
        }),
        misuse("a key file that is a directory", None, "cannot read", |by| {
            let certificate = by.file("server.pem", issued(by).certificate_pem.as_bytes());
            failed(Identity::from_pem_files(certificate, &by.directory))
        }),
        misuse("a key that is cut off", None, "broken PEM", |by| {
            let made = issued(by);
            let key = &made.key_pem.as_bytes()[..100];
            failed(Identity::from_pem(made.certificate_pem.as_bytes(), key))
        }),
        misuse("an empty key", None, "no private key in", |by| {
            failed(Identity::from_pem(issued(by).certificate_pem.as_bytes(), b""))
        }),
        misuse("a chain of 400 certificates", None, "leave out", |by| {
            let made = issued(by);
            let chain = made.certificate_pem.repeat(400);
            failed(Identity::from_pem(chain.as_bytes(), made.key_pem.as_bytes()))
        }),
        misuse("a key in DER where PEM is read", None, "no private key in", |by| {
            failed(Identity::from_pem(issued(by).certificate_pem.as_bytes(), &[0x30, 0x82]))
        }),
    ]
}

fn trusts() -> Vec<Misuse> {
    vec![
        misuse("an empty authority", None, "no certificate in", |_| {
            failed(Trust::roots_from_pem(b""))
        }),
        misuse("a key as authority", None, "it holds 1 PRIVATE KEY", |by| {
            failed(Trust::roots_from_pem(issued(by).key_pem.as_bytes()))
        }),
        misuse("a path instead of a certificate", None, "no certificate in", |_| {
            failed(Trust::roots_from_pem(b"/etc/smt/ca.pem"))
        }),
        misuse("no authority files at all", None, "", |_| {
            let none: [&str; 0] = [];
            failed(Trust::roots_from_pem_files(&none))
        }),
        misuse("a pinned file that is missing", None, "cannot read", |_| {
            failed(Trust::pinned_from_pem_file("/no/such/file.pem"))
        }),
        misuse("a server's certificate as authority of its clients", None, "", |by| {
            let leaf = issued(by);
            let trust = Trust::roots_from_pem(leaf.certificate_pem.as_bytes());
            let server = by.server_builder();
            let server = trust.map(|trust| server.client_auth(ClientAuth::Required(trust)));
            failed(server.map(|server| server.bind_blocking(ANY)))
        }),
    ]
}

fn algorithms() -> Vec<Misuse> {
    vec![
        misuse("a server without suites", Caller, "name at least one", |by| {
            failed(by.server_builder().suites([]).bind_blocking(ANY))
        }),
        misuse("a client without groups", Caller, "name at least one", |by| {
            let server = by.server.local_address();
            by.connecting(by.client_builder().groups([]), server)
        }),
    ]
}
