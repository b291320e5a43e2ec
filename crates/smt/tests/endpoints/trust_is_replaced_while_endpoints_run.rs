// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client gets another trust in servers, or another identity, and a server another trust in
//! //! clients: sessions that begin go by it.

use smt::pki::{CertificatePlan, EphemeralCa};
use smt::{ClientAuth, Distrusted, Identity, Trust, blocking};

use crate::support::{assert_echo, echo, serve};

/// An authority and a server's identity of it.
fn authority() -> (EphemeralCa, Identity) {
    let authority = EphemeralCa::new().unwrap();
    let identity = authority.server(&["127.0.0.1"]).unwrap();
    (authority, identity)
}

fn echo_server(builder: smt::Builder<smt::TlsServer>) -> blocking::Server {
    let server = builder.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    server
}

#[test]
fn a_client_believes_by_its_new_trust_in_its_next_session() {
    let [(old, old_identity), (new, new_identity)] = [authority(), authority()];
    let one = echo_server(smt::server(old_identity));
    let other = echo_server(smt::server(new_identity));
    let endpoint = smt::client(old.trust().unwrap()).distrusted(Distrusted::Keep);
    let endpoint = endpoint.open_blocking("127.0.0.1:0").unwrap();
    let of_old = endpoint.client(one.local_address()).unwrap();
    let of_new = endpoint.client(other.local_address()).unwrap();
    assert_echo(&of_old, "hi");
    let error = of_new.connect().unwrap_err().to_string();
    assert!(error.contains("unknown issuer"), "{error}");
    let session = of_old.connect().unwrap();
    endpoint.set_trust(new.trust().unwrap()).unwrap();
    assert_echo(&of_old, "its session lives");
    assert_eq!(of_old.connect().unwrap(), session);
    of_new.connect().unwrap();
    assert_echo(&of_new, "hi");
    session.close();
    let error = of_old.connect().unwrap_err().to_string();
    assert!(error.contains("unknown issuer"), "{error}");
}

#[tokio::test]
async fn a_client_of_tasks_shows_its_new_identity_in_its_next_session() {
    let (authority, identity) = authority();
    let required = ClientAuth::Required(authority.trust().unwrap());
    let server = smt::server(identity).client_auth(required);
    let server = server.bind("127.0.0.1:0").await.unwrap();
    let serving = server.clone();
    tokio::spawn(async move {
        while let Some(request) = serving.accept_request().await {
            let certificate = request.peer().certificate().unwrap();
            let name = certificate.common_name.clone().unwrap();
            request.reply(name).unwrap();
        }
    });
    let client = smt::client(authority.trust().unwrap());
    let client = client.identity(authority.client("old").unwrap());
    let client = client.connect(server.local_address()).await.unwrap();
    assert_eq!(client.call("who am I?").await.unwrap(), "old");
    let renewed = authority.client("new").unwrap();
    client.set_client_identity(Some(renewed)).unwrap();
    assert_eq!(client.call("who am I?").await.unwrap(), "old");
    client.connect().await.unwrap().close();
    assert_eq!(client.call("who am I?").await.unwrap(), "new");
    client.set_client_identity(None).unwrap();
    client.connect().await.unwrap().close();
    let error = client.call("who am I?").await.unwrap_err().to_string();
    assert!(error.contains("requires a certificate"), "{error}");
}

#[test]
fn pinned_clients_are_replaced() {
    let (authority, identity) = authority();
    let [alice, bob] = ["alice", "bob"].map(|name| {
        let plan = CertificatePlan::client(name).unwrap();
        let issued = authority.authority().issue(&plan).unwrap();
        let (certificate, key) = (issued.certificate_pem, issued.key_pem);
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let pinned = Trust::pinned_from_pem(certificate.as_bytes()).unwrap();
        (identity, ClientAuth::Required(pinned))
    });
    let server = echo_server(smt::server(identity).client_auth(alice.1));
    let connect = |identity: &Identity| {
        let client = smt::client(authority.trust().unwrap()).identity(identity.clone());
        client.connect_blocking(server.local_address())
    };
    let before = connect(&alice.0).unwrap();
    assert!(connect(&bob.0).is_err());
    server.set_client_auth(bob.1).unwrap();
    assert!(before.call("hi").wait().is_err(), "its session has ended");
    assert_echo(&connect(&bob.0).unwrap(), "hi");
    let error = connect(&alice.0).unwrap_err().to_string();
    assert!(error.contains("none of those that the server has pinned"), "{error}");
}

#[test]
fn an_endpoint_that_calls_nobody_has_no_trust_in_servers_to_replace() {
    let (authority, identity) = authority();
    let polled = smt::server(identity).bind_polled("127.0.0.1:0").unwrap();
    let error = polled.set_trust(authority.trust().unwrap()).unwrap_err().to_string();
    assert!(error.contains("calls no servers by TLS"), "{error}");
    let client = smt::client(authority.trust().unwrap());
    let client = client.open_polled("127.0.0.1:0").unwrap();
    client.set_trust(authority.trust().unwrap()).unwrap();
    client.set_client_identity(None).unwrap();
}
