// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers whose certificates or algorithms do not fit.

use std::time::{Duration, SystemTime};

use smt::Fault::{Caller, Peer};
use smt::pki::{CertificatePlan, EphemeralCa, Validity};
use smt::{ClientAuth, Group, Suite, Trust};

use crate::bystander::{ANY, Bystander};
use crate::misuse::{Misuse, Told, misuse};

/// The answer of a server with this plan's certificate.
fn shown(by: &Bystander, plan: &CertificatePlan) -> Told {
    let server = smt::server(by.authority.identity(plan).unwrap());
    let server = server.bind_blocking(ANY).unwrap();
    by.connecting(by.client_builder(), server.local_address())
}

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = servers();
    all.extend(clients());
    all
}

fn servers() -> Vec<Misuse> {
    vec![
        misuse("a server of another authority", Peer, "issuer", |by| {
            let stranger = EphemeralCa::new().unwrap().server(&["localhost"]).unwrap();
            let server = smt::server(stranger).bind_blocking(ANY).unwrap();
            by.connecting(by.client_builder(), server.local_address())
        }),
        misuse("a server of another name", Peer, "\"db8\"", |by| {
            let server = by.server.local_address();
            by.connecting(by.client_builder().server_name("db8"), server)
        }),
        misuse("a server by its address instead of its name", Peer, "127.0.0.1", |by| {
            let client = smt::client(by.authority.trust().unwrap());
            by.connecting(client, by.server.local_address())
        }),
        misuse("a server whose certificate has expired", Peer, "expired", |by| {
            let (now, day) = (SystemTime::now(), Duration::from_secs(86_400));
            let mut plan = CertificatePlan::server(&["localhost"]).unwrap();
            plan.validity = Validity::between(now - 3 * day, now - day).unwrap();
            shown(by, &plan)
        }),
        misuse("a server whose certificate is not valid yet", Peer, "clock", |by| {
            let (now, day) = (SystemTime::now(), Duration::from_secs(86_400));
            let mut plan = CertificatePlan::server(&["localhost"]).unwrap();
            plan.validity = Validity::between(now + day, now + 3 * day).unwrap();
            shown(by, &plan)
        }),
        misuse("a server with a client's certificate", Peer, "", |by| {
            shown(by, &CertificatePlan::client("localhost").unwrap())
        }),
        misuse("a server that is not the pinned one", Peer, "pin", |by| {
            let plan = CertificatePlan::server(&["localhost"]).unwrap();
            let other = by.authority.authority().issue(&plan).unwrap();
            let pinned = Trust::pinned_from_pem(other.certificate_pem.as_bytes()).unwrap();
            let client = smt::client(pinned).server_name("localhost");
            by.connecting(client, by.server.local_address())
        }),
        misuse("a name that no host can have", Caller, "name", |by| {
            let server = by.server.local_address();
            by.connecting(by.client_builder().server_name("not a name"), server)
        }),
        misuse("no name", Caller, "name", |by| {
            let server = by.server.local_address();
            by.connecting(by.client_builder().server_name(""), server)
        }),
        misuse("no suite in common", Caller, "allow one that it has", |by| {
            let server = by.server_builder().suites([Suite::Aes256Gcm]);
            let server = server.bind_blocking(ANY).unwrap();
            let client = by.client_builder().suites([Suite::ChaCha20Poly1305]);
            by.connecting(client, server.local_address())
        }),
        misuse("no group in common", Caller, "allow one that it has", |by| {
            let server = by.server_builder().groups([Group::P256]);
            let server = server.bind_blocking(ANY).unwrap();
            let client = by.client_builder().groups([Group::X25519]);
            by.connecting(client, server.local_address())
        }),
    ]
}

fn clients() -> Vec<Misuse> {
    vec![
        misuse(
            "a client without the certificate that it needs",
            Caller,
            "give it an identity",
            |by| met(by, None),
        ),
        misuse("a client of another authority", Caller, "certificate", |by| {
            let stranger = EphemeralCa::new().unwrap();
            met(by, Some(stranger.client("a").unwrap()))
        }),
        misuse("a client with a server's certificate", Caller, "certificate", |by| {
            met(by, Some(by.identity.clone()))
        }),
    ]
}

/// The answer to a client at a server that demands a certificate.
fn met(by: &Bystander, identity: Option<smt::Identity>) -> Told {
    let trust = by.authority.trust().unwrap();
    let server = by.server_builder().client_auth(ClientAuth::Required(trust));
    let server = server.bind_blocking(ANY).unwrap();
    let mut client = by.client_builder();
    if let Some(identity) = identity {
        client = client.identity(identity);
    }
    by.connecting(client, server.local_address())
}
