// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates are judged by the wall time that an attempt is told, not by the host's clock.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::time::{Duration, SystemTime};

use harness::{NAME, Outcome, days, run, run_at};
use smt_handshake::{ClientAuth, ClientTls, Identity, ServerTls, TlsProvider, Trust};
use smt_pki::{CertificateAuthority, CertificatePlan, KeyKind, Validity};
use smt_proto::WallTime;
use smt_proto::key_exchange::{FailureKind, HandshakeFailure};

/// A client and a server of one authority, with certificates of these validities, by days from now.
struct Pair {
    client: TlsProvider,
    server: TlsProvider,
}

impl Pair {
    fn new(client: Validity, server: Validity) -> Self {
        let long = days(-900, 900);
        let authority = CertificateAuthority::new("root", long, KeyKind::EcdsaP256).unwrap();
        let identity = |plan: CertificatePlan, validity| {
            let pair = authority.issue(&CertificatePlan { validity, ..plan }).unwrap();
            Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes()).unwrap()
        };
        let trust = Trust::roots_from_pem(authority.certificate_pem().as_bytes()).unwrap();
        let own = identity(CertificatePlan::client("c").unwrap(), client);
        let client = ClientTls::new(trust.clone()).with_identity(own);
        let own = identity(CertificatePlan::server(&[NAME]).unwrap(), server);
        let server = ServerTls::new(own).with_client_auth(ClientAuth::Required(trust));
        Self { client: client.build().unwrap(), server: server.build().unwrap() }
    }

    fn at(&self, day: i64) -> Outcome {
        run_at(Some(wall(day)), &self.client, &self.server, |_| {})
    }
}

/// The wall time so many days from now, negative ones in the past.
fn wall(day: i64) -> WallTime {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let span = Duration::from_secs(day.unsigned_abs() * 86_400);
    let at = match day {
        ..0 => since_1970.unwrap() - span,
        _ => since_1970.unwrap() + span,
    };
    WallTime::from_secs(at.as_secs())
}

#[track_caller]
fn assert_refused(failure: &HandshakeFailure, text: &str) {
    assert_eq!(failure.kind, FailureKind::CertificateRefused, "{failure}");
    assert!(failure.text.contains(text), "{failure}");
}

#[test]
fn a_server_is_taken_inside_its_certificates_told_validity_alone() {
    // By the host's clock: over, to come, and in force.
    for (from, to) in [(-200, -100), (100, 200), (-50, 50)] {
        let pair = Pair::new(days(-900, 900), days(from, to));
        assert_refused(&pair.at(from - 2).client_failure(), "is not yet valid");
        pair.at(from + 2).both();
        pair.at(to - 2).both();
        assert_refused(&pair.at(to + 2).client_failure(), "expired 2 days ago");
    }
}

#[test]
fn a_client_is_let_in_inside_its_certificates_told_validity_alone() {
    for (from, to) in [(-200, -100), (100, 200), (-50, 50)] {
        let pair = Pair::new(days(from, to), days(-900, 900));
        assert_refused(&pair.at(from - 2).server_failure(), "is not yet valid");
        pair.at(from + 2).both();
        pair.at(to - 2).both();
        assert_refused(&pair.at(to + 2).server_failure(), "expired 2 days ago");
    }
}

#[test]
fn the_hosts_clock_decides_as_long_as_nothing_was_told() {
    let of = |from, to| Pair::new(days(-900, 900), days(from, to));
    let in_force = of(-50, 50);
    run(&in_force.client, &in_force.server).both();
    let over = of(-200, -100);
    let outcome = run(&over.client, &over.server);
    assert_refused(&outcome.client_failure(), "expired 100 days ago");
}
