// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of a few seconds: a client goes on in another session, and none of its calls fails.

use std::time::{Duration, SystemTime};

use smt::pki::{CertificatePlan, EphemeralCa, Validity};
use smt::{ClientAuth, Identity};

use crate::support::{assert_echo, echo, eventually, serve};

/// An identity that is valid for so many seconds more.
fn valid_for(authority: &EphemeralCa, mut plan: CertificatePlan, seconds: u64) -> Identity {
    let now = SystemTime::now();
    let span = |seconds| Duration::from_secs(seconds);
    plan.validity = Validity::between(now - span(60), now + span(seconds)).unwrap();
    authority.identity(&plan).unwrap()
}

#[test]
fn a_client_leaves_a_session_before_its_servers_certificate_ends() {
    let authority = EphemeralCa::new().unwrap();
    let plan = CertificatePlan::server(&["127.0.0.1"]).unwrap();
    let server = smt::server(valid_for(&authority, plan, 6));
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    let client = smt::client(authority.trust().unwrap());
    let client = client.connect_blocking(server.local_address()).unwrap();
    let first = client.connect().unwrap();
    assert_echo(&client, "hi");
    server.set_identity(authority.server(&["127.0.0.1"]).unwrap()).unwrap();
    eventually("another session is used", || {
        assert_echo(&client, "no call fails");
        client.connect().unwrap() != first
    });
    eventually("the first session is closed at both sides", || {
        first.facts().is_none() && server.statistics().sessions == 1
    });
}

#[tokio::test]
async fn a_client_shows_its_renewed_certificate_before_the_one_before_ends() {
    let authority = EphemeralCa::new().unwrap();
    let server = smt::server(authority.server(&["127.0.0.1"]).unwrap());
    let required = ClientAuth::Required(authority.trust().unwrap());
    let server = server.client_auth(required).bind("127.0.0.1:0").await.unwrap();
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(request) = server.accept_request().await {
            let certificate = request.peer().certificate().unwrap();
            let name = certificate.common_name.clone().unwrap();
            request.reply(name).unwrap();
        }
    });
    let plan = CertificatePlan::client("first").unwrap();
    let client = smt::client(authority.trust().unwrap());
    let client = client.identity(valid_for(&authority, plan, 6));
    let client = client.connect(address).await.unwrap();
    assert_eq!(client.call("who am I?").await.unwrap(), "first");
    let renewed = authority.client("renewed").unwrap();
    client.set_client_identity(Some(renewed)).unwrap();
    let began = SystemTime::now();
    while client.call("who am I?").await.unwrap() == "first" {
        assert!(began.elapsed().unwrap() < Duration::from_secs(60), "never renewed");
    }
}
