// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Revocation lists decide beside authorities, at servers and at clients.

use std::time::{Duration, SystemTime};

use smt::pki::{
    CertificateAuthority, CertificatePlan, IssuedCertificate, KeyKind, RevokedCertificates,
    Validity,
};
use smt::{ClientAuth, Identity, Pem, RevocationLists, Trust, blocking};

use crate::support::{assert_echo, echo, serve};

/// An authority with a server and two clients.
pub(crate) struct Fleet {
    authority: CertificateAuthority,
    pub(crate) server: IssuedCertificate,
    pub(crate) server_of_localhost: IssuedCertificate,
    pub(crate) clients: [IssuedCertificate; 2],
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let validity = Validity::days(800).unwrap();
        let authority = CertificateAuthority::new("fleet", validity, KeyKind::default()).unwrap();
        let issue = |plan: CertificatePlan| authority.issue(&plan).unwrap();
        let client = |name| issue(CertificatePlan::client(name).unwrap());
        Self {
            server: issue(CertificatePlan::server(&["127.0.0.1"]).unwrap()),
            server_of_localhost: issue(CertificatePlan::server(&["localhost"]).unwrap()),
            clients: [client("alice"), client("bob")],
            authority,
        }
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::roots_from_pem(self.authority.certificate_pem().as_bytes()).unwrap()
    }

    /// A list of these, for a week.
    pub(crate) fn list(&self, revoked: &[&IssuedCertificate]) -> RevocationLists {
        self.list_of(revoked, Validity::days(7).unwrap())
    }

    fn list_of(&self, revoked: &[&IssuedCertificate], validity: Validity) -> RevocationLists {
        let mut all = RevokedCertificates::default();
        for issued in revoked {
            let pem = Pem::text("it", issued.certificate_pem.as_bytes());
            self.authority.revoke(&pem, &mut all).unwrap();
        }
        let list = self.authority.revocation_list(&all, validity).unwrap();
        RevocationLists::from_bytes(list.as_bytes()).unwrap()
    }

    /// Trust in clients by this list.
    pub(crate) fn clients_by(&self, lists: RevocationLists) -> ClientAuth {
        ClientAuth::Required(self.trust().with_revocation_lists(lists))
    }

    fn serve(&self, lists: RevocationLists) -> blocking::Server {
        let server = smt::server(identity(&self.server)).client_auth(self.clients_by(lists));
        let server = server.bind_blocking("127.0.0.1:0").unwrap();
        serve(&server, 2, echo);
        server
    }

    pub(crate) fn connect(
        &self,
        server: &blocking::Server,
        client: usize,
    ) -> Result<blocking::Client, String> {
        let client = smt::client(self.trust()).identity(identity(&self.clients[client]));
        let connected = client.connect_blocking(server.local_address());
        connected.map_err(|error| error.to_string())
    }
}

pub(crate) fn identity(issued: &IssuedCertificate) -> Identity {
    let (certificate, key) = (&issued.certificate_pem, &issued.key_pem);
    Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
}

// SMT [6.1-26]
#[test]
fn a_client_that_is_revoked_is_refused_and_learns_it() {
    let fleet = Fleet::new();
    let server = fleet.serve(fleet.list(&[]));
    assert_echo(&fleet.connect(&server, 0).unwrap(), "hi");
    let revoked = fleet.list(&[&fleet.clients[0]]);
    server.set_client_auth(fleet.clients_by(revoked)).unwrap();
    let error = fleet.connect(&server, 0).unwrap_err();
    assert!(error.contains("refused this client's certificate: revoked"), "{error}");
    assert_echo(&fleet.connect(&server, 1).unwrap(), "hi");
}

// SMT [6.1-26]
#[test]
fn a_server_that_is_revoked_is_not_believed_any_more() {
    let fleet = Fleet::new();
    let server = fleet.serve(fleet.list(&[]));
    let client = |lists| {
        let client = smt::client(fleet.trust().with_revocation_lists(lists));
        let client = client.identity(identity(&fleet.clients[1]));
        client.connect_blocking(server.local_address())
    };
    let before = client(fleet.list(&[])).unwrap();
    let error = client(fleet.list(&[&fleet.server])).unwrap_err().to_string();
    assert!(error.contains("the server's certificate is revoked"), "{error}");
    let revoked = fleet.list(&[&fleet.server]);
    before.set_trust(fleet.trust().with_revocation_lists(revoked)).unwrap();
    let error = before.call("hi").wait().unwrap_err().to_string();
    assert!(error.contains("the server's certificate is revoked"), "{error}");
}

// SMT [6.1-26]
#[test]
fn a_list_that_has_expired_and_one_of_another_authority_accept_nobody() {
    let (fleet, other) = (Fleet::new(), Fleet::new());
    let server = fleet.serve(fleet.list(&[]));
    let client = |lists| {
        let client = smt::client(fleet.trust().with_revocation_lists(lists));
        let client = client.identity(identity(&fleet.clients[0]));
        let connected = client.connect_blocking(server.local_address());
        connected.map(drop).map_err(|error| error.to_string())
    };
    let ago = |days: u64| SystemTime::now() - Duration::from_secs(days * 86_400);
    let expired = fleet.list_of(&[], Validity::between(ago(9), ago(2)).unwrap());
    let error = client(expired.clone()).unwrap_err();
    assert!(
        error.contains("the revocation list") && error.contains("expired 2 days ago"),
        "{error}"
    );
    // It is expired whatever is said of other authorities.
    assert!(client(expired.accepting_unknown_status()).is_err());
    let issuer = Validity::days(800).unwrap();
    let unknown = CertificateAuthority::new("unknown", issuer, KeyKind::default()).unwrap();
    let list = unknown
        .revocation_list(&RevokedCertificates::default(), Validity::days(7).unwrap())
        .unwrap();
    let list = RevocationLists::from_bytes(list.as_bytes()).unwrap();
    let error = client(list.clone()).unwrap_err();
    assert!(error.contains("no revocation list here tells of the server's certificate"), "{error}");
    client(list.accepting_unknown_status()).unwrap();
    // Another authority with the same name made this one.
    let error = client(other.list(&[])).unwrap_err();
    assert!(error.contains("is not signed by the authority that it names"), "{error}");
}

#[test]
fn pinned_certificates_take_no_revocation_lists() {
    let fleet = Fleet::new();
    let pinned = Trust::pinned_from_pem(fleet.server.certificate_pem.as_bytes()).unwrap();
    let pinned = pinned.with_revocation_lists(fleet.list(&[]));
    let error = smt::client(pinned).open_blocking("127.0.0.1:0").unwrap_err().to_string();
    assert!(error.contains("pinned certificates and public keys have no authority"), "{error}");
}
