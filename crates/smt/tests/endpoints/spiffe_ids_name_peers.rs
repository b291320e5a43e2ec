// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers prove SPIFFE IDs: a client calls a server by one, and a server serves by one.

use smt::pki::{CertificatePlan, EphemeralCa, SubjectName};
use smt::{ClientAuth, Failure, Identity, Peer, RevocationLists, SpiffeId, Trust, blocking};

use crate::support::{assert_echo, serve};

const DB: &str = "spiffe://prod.example/db";

/// A server's identity with these names and no other.
fn server_of(authority: &EphemeralCa, names: &[&str]) -> Identity {
    authority.server(names).unwrap()
}

fn start(authority: &EphemeralCa, names: &[&str]) -> blocking::Server {
    let server = smt::server(server_of(authority, names));
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 1, crate::support::echo);
    server
}

fn connect_by(
    trust: Trust,
    id: &str,
    server: &blocking::Server,
) -> Result<blocking::Client, String> {
    let id = SpiffeId::parse(id).unwrap();
    let connected = smt::client(trust).server_id(&id).connect_blocking(server.local_address());
    connected.map_err(|error| error.to_string())
}

// SMT [6.1-25]
#[test]
fn a_client_calls_a_server_by_its_spiffe_id_and_no_other() {
    let authority = EphemeralCa::new().unwrap();
    let trust = || authority.trust().unwrap();
    let server = start(&authority, &[DB]);
    let client = connect_by(trust(), DB, &server).unwrap();
    assert_echo(&client, "hi");
    assert_eq!(client.connect().unwrap().peer().spiffe_id(), Some(DB));
    let error = connect_by(trust(), "spiffe://prod.example/web", &server).unwrap_err();
    let says = "was called by the SPIFFE ID spiffe://prod.example/web, but its certificate does not have it: it has \"spiffe://prod.example/db\"";
    assert!(error.contains(says), "{error}");
    // A prefix of an ID is another ID.
    assert!(connect_by(trust(), "spiffe://prod.example", &server).is_err());
    let foreign = EphemeralCa::new().unwrap().trust().unwrap();
    let error = connect_by(foreign, DB, &server).unwrap_err();
    assert!(error.contains("unknown issuer"), "{error}");
}

// SMT [6.1-25]
#[test]
fn a_certificate_with_several_uris_or_for_clients_proves_no_id_of_a_server() {
    let authority = EphemeralCa::new().unwrap();
    let trust = || authority.trust().unwrap();
    let server = start(&authority, &[DB, "https://prod.example/db"]);
    let error = connect_by(trust(), DB, &server).unwrap_err();
    assert!(error.contains("and exactly one counts"), "{error}");
    let server = start(&authority, &["127.0.0.1"]);
    let error = connect_by(trust(), DB, &server).unwrap_err();
    assert!(error.contains("it has no URI at all"), "{error}");
    let client = authority.client(DB).unwrap();
    let server = smt::server(client).bind_blocking("127.0.0.1:0").unwrap();
    let error = connect_by(trust(), DB, &server).unwrap_err();
    assert!(error.contains("is not made for a server"), "{error}");
}

#[test]
fn a_server_that_is_called_by_its_id_is_looked_up_in_revocation_lists_too() {
    let authority = EphemeralCa::new().unwrap();
    let issued = authority.authority().issue(&CertificatePlan::server(&[DB]).unwrap()).unwrap();
    let (certificate, key) = (&issued.certificate_pem, &issued.key_pem);
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let server = smt::server(identity).bind_blocking("127.0.0.1:0").unwrap();
    let list = |revoked: &[smt::Pem]| {
        let week = smt::pki::Validity::days(7).unwrap();
        let mut all = smt::pki::RevokedCertificates::default();
        for pem in revoked {
            authority.authority().revoke(pem, &mut all).unwrap();
        }
        let list = authority.authority().revocation_list(&all, week).unwrap();
        let lists = RevocationLists::from_bytes(list.as_bytes()).unwrap();
        authority.trust().unwrap().with_revocation_lists(lists)
    };
    connect_by(list(&[]), DB, &server).unwrap();
    let revoked = [smt::Pem::text("db", certificate.as_bytes())];
    let error = connect_by(list(&revoked), DB, &server).unwrap_err();
    assert!(error.contains("the server's certificate is revoked"), "{error}");
    // A pinned certificate must have the ID too.
    let pinned = || Trust::pinned_from_pem(certificate.as_bytes()).unwrap();
    connect_by(pinned(), DB, &server).unwrap();
    assert!(connect_by(pinned(), "spiffe://prod.example/web", &server).is_err());
}

#[test]
fn a_text_that_is_no_id_is_refused_before_anything_is_sent() {
    let authority = EphemeralCa::new().unwrap();
    let client = smt::client(authority.trust().unwrap());
    let client = client.server_name("spiffe://Prod/db");
    let error = client.connect_blocking("127.0.0.1:9").unwrap_err().to_string();
    assert!(error.contains("the trust domain of a SPIFFE ID"), "{error}");
}

#[tokio::test]
async fn a_server_serves_by_the_spiffe_id_of_its_client() {
    let authority = EphemeralCa::new().unwrap();
    let billing_alone = |peer: &Peer| match peer.spiffe_id() {
        Some("spiffe://prod.example/billing") => Ok(()),
        id => Err(Failure::refusal(403, format!("{id:?} is not billing"))),
    };
    let server = smt::server(server_of(&authority, &["127.0.0.1"]))
        .client_auth(ClientAuth::Required(authority.trust().unwrap()))
        .authorize(billing_alone);
    let server = server.bind("127.0.0.1:0").await.unwrap();
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            let id = request.peer().spiffe_id().unwrap().to_owned();
            request.reply(id).unwrap();
        }
    });
    let call = async |names: &[&str]| {
        let mut plan = CertificatePlan::client("a client").unwrap();
        plan.names = names.iter().map(|name| SubjectName::parse(name).unwrap()).collect();
        let client = smt::client(authority.trust().unwrap());
        let client = client.identity(authority.identity(&plan).unwrap());
        let client = client.connect(address).await.unwrap();
        client.call("who am I?").await.map_err(|error| error.to_string())
    };
    let billing = "spiffe://prod.example/billing";
    assert_eq!(call(&[billing]).await.unwrap(), billing);
    let error = call(&["spiffe://prod.example/web"]).await.unwrap_err();
    assert!(error.contains("is not billing"), "{error}");
    let error = call(&[billing, "https://prod.example"]).await.unwrap_err();
    assert!(error.contains("None is not billing"), "{error}");
}
