// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each reason to refuse a peer has its own text and fault, and the peer learns it by an alert.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{NAME, Outcome, days, providers, run};
use smt_handshake::{Algorithms, ClientAuth, ClientTls, Group, Identity, ServerTls, Trust};
use smt_pki::{CertificateAuthority, CertificatePlan, EphemeralCa, KeyKind, Purpose, Validity};
use smt_proto::key_exchange::{FailureKind, Fault, HandshakeFailure};
use smt_record::Suite;

/// An authority valid for long before and after now, so that leaves may be too old or too young.
struct Authority(CertificateAuthority);

impl Authority {
    fn new() -> Self {
        Self::named("root")
    }

    fn named(name: &str) -> Self {
        Self(CertificateAuthority::new(name, days(-900, 900), KeyKind::EcdsaP256).unwrap())
    }

    fn identity(&self, plan: &CertificatePlan) -> Identity {
        let pair = self.0.issue(plan).unwrap();
        Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes()).unwrap()
    }

    fn trust(&self) -> Trust {
        Trust::roots_from_pem(self.0.certificate_pem().as_bytes()).unwrap()
    }

    fn server(&self, validity: Validity) -> CertificatePlan {
        let _ = self;
        CertificatePlan { validity, ..CertificatePlan::server(&[NAME]).unwrap() }
    }

    fn client(&self, validity: Validity) -> CertificatePlan {
        let _ = self;
        CertificatePlan { validity, ..CertificatePlan::client("c").unwrap() }
    }
}

#[track_caller]
fn assert_failure(failure: &HandshakeFailure, kind: FailureKind, fault: Fault, text: &[&str]) {
    assert_eq!((failure.kind, failure.fault), (kind, fault), "{failure}");
    for part in text {
        assert!(failure.text.contains(part), "{part:?} is not in {:?}", failure.text);
    }
    assert_eq!(failure.text.lines().count(), 1);
}

mod server_certificate {
    use super::*;

    fn run_server(authority: &Authority, plan: &CertificatePlan) -> Outcome {
        let client = ClientTls::new(authority.trust()).build().unwrap();
        let server = ServerTls::new(authority.identity(plan)).build().unwrap();
        run(&client, &server)
    }

    #[track_caller]
    fn assert_refused(outcome: &Outcome, at_client: &[&str], at_server: &str) {
        let (client, server) = (outcome.client_failure(), outcome.server_failure());
        assert_failure(&client, FailureKind::CertificateRefused, Fault::Peer, at_client);
        let refused = ["the client refused this server's certificate: ", at_server].concat();
        assert_failure(&server, FailureKind::AlertReceived, Fault::Caller, &[&refused]);
    }

    #[test]
    fn expired() {
        let authority = Authority::new();
        let outcome = run_server(&authority, &authority.server(days(-20, -3)));
        let text = ["the server's certificate expired 3 days ago", "renew it"];
        assert_refused(&outcome, &text, "expired");
    }

    #[test]
    fn not_yet_valid() {
        let authority = Authority::new();
        let outcome = run_server(&authority, &authority.server(days(3, 20)));
        let text =
            ["the server's certificate is not yet valid: it begins in", "set this host's clock"];
        assert_refused(&outcome, &text, "expired, or not yet valid");
    }

    // SMT [6.1-15]
    #[test]
    fn wrong_name() {
        let authority = Authority::new();
        let names = ["b.example", "10.0.0.1"];
        let outcome = run_server(&authority, &CertificatePlan::server(&names).unwrap());
        let text = ["called by the name \"a.example\"", "is for \"b.example\", 10.0.0.1;"];
        assert_refused(&outcome, &text, "bad certificate");
    }

    #[test]
    fn unknown_issuer() {
        let client = ClientTls::new(Authority::new().trust()).build().unwrap();
        let other = Authority::named("other");
        let server = ServerTls::new(other.identity(&other.server(days(-1, 1)))).build().unwrap();
        let outcome = run(&client, &server);
        let text = ["the server's certificate comes from an unknown issuer", "trust its authority"];
        assert_refused(&outcome, &text, "unknown ca");
    }

    #[test]
    fn issuer_of_a_trusted_ones_name() {
        let client = ClientTls::new(Authority::new().trust()).build().unwrap();
        let other = Authority::new();
        let server = ServerTls::new(other.identity(&other.server(days(-1, 1)))).build().unwrap();
        let text = [
            "is not signed by the trusted authority that it names",
            "another authority of the same name issued it",
        ];
        assert_refused(
            &run(&client, &server),
            &text,
            "the client gives no reason but in its log; it may be an authority's certificate",
        );
    }

    #[test]
    fn made_for_clients() {
        let authority = Authority::new();
        let plan = CertificatePlan { purpose: Purpose::Client, ..authority.server(days(-1, 1)) };
        let outcome = run_server(&authority, &plan);
        assert_refused(&outcome, &["is not made for a server"], "not made for a server");
    }

    #[test]
    fn not_the_pinned_one() {
        let authority = Authority::new();
        let pinned = authority.0.issue(&authority.server(days(-1, 1))).unwrap();
        let trust = Trust::pinned_from_pem(pinned.certificate_pem.as_bytes()).unwrap();
        let client = ClientTls::new(trust).build().unwrap();
        let identity = authority.identity(&authority.server(days(-1, 1)));
        let outcome = run(&client, &ServerTls::new(identity).build().unwrap());
        assert_refused(&outcome, &["is none of the pinned ones"], "access denied");
    }
}

mod client_certificate {
    use super::*;

    fn run_client(
        authority: &Authority,
        client: Option<Identity>,
        auth: impl Fn(Trust) -> ClientAuth,
    ) -> Outcome {
        let mut client_tls = ClientTls::new(authority.trust());
        if let Some(identity) = client {
            client_tls = client_tls.with_identity(identity);
        }
        let identity = authority.identity(&authority.server(days(-1, 1)));
        let server = ServerTls::new(identity).with_client_auth(auth(authority.trust()));
        run(&client_tls.build().unwrap(), &server.build().unwrap())
    }

    #[track_caller]
    fn assert_refused(outcome: &Outcome, at_server: &[&str], at_client: &str) {
        let (client, server) = (outcome.client_failure(), outcome.server_failure());
        assert_failure(&server, FailureKind::CertificateRefused, Fault::Peer, at_server);
        assert_failure(&client, FailureKind::AlertReceived, Fault::Caller, &[at_client]);
        assert_eq!(outcome.flights, 4, "the alert is the server's next flight");
    }

    // SMT [6.1-7]
    #[test]
    fn missing_where_required() {
        let outcome = run_client(&Authority::new(), None, ClientAuth::Required);
        let text = ["the client sent no certificate, and this server requires one"];
        assert_refused(
            &outcome,
            &text,
            "the server requires a certificate, and this client has none",
        );
    }

    #[test]
    fn unknown_issuer_is_refused_where_required_and_where_optional() {
        let other = Authority::named("other");
        for auth in [ClientAuth::Required, ClientAuth::Optional] {
            let identity = other.identity(&other.client(days(-1, 1)));
            let outcome = run_client(&Authority::new(), Some(identity), auth);
            let text = ["the client's certificate comes from an unknown issuer"];
            let told = "the server refused this client's certificate: unknown ca";
            assert_refused(&outcome, &text, told);
        }
    }

    #[test]
    fn expired() {
        let authority = Authority::new();
        let identity = authority.identity(&authority.client(days(-20, -1)));
        let outcome = run_client(&authority, Some(identity), ClientAuth::Required);
        let told = "the server refused this client's certificate: expired";
        assert_refused(&outcome, &["the client's certificate expired 1 day ago"], told);
    }

    #[test]
    fn not_the_pinned_one() {
        let authority = Authority::new();
        let pinned = authority.0.issue(&authority.client(days(-1, 1))).unwrap();
        let identity = authority.identity(&authority.client(days(-1, 1)));
        let outcome = run_client(&authority, Some(identity), |_| {
            ClientAuth::Required(Trust::pinned_from_pem(pinned.certificate_pem.as_bytes()).unwrap())
        });
        let told = "the server refused this client's certificate: access denied";
        assert_refused(&outcome, &["the client's certificate is none of the pinned ones"], told);
    }
}

mod algorithms {
    use super::*;

    #[test]
    fn no_common_suite() {
        let of = |suite| Algorithms { suites: vec![suite], ..Algorithms::default() };
        let (client, server) = providers(&of(Suite::Aes128Gcm), &of(Suite::ChaCha20Poly1305));
        let outcome = run(&client, &server);
        assert_failure(
            &outcome.server_failure(),
            FailureKind::NoCommonParameters,
            Fault::Peer,
            &["the client and this server have no cipher suite in common"],
        );
        assert_failure(
            &outcome.client_failure(),
            FailureKind::AlertReceived,
            Fault::Caller,
            &["the server found no cipher suite or key exchange group in common"],
        );
    }

    #[test]
    fn no_common_group() {
        let of = |group| Algorithms { groups: vec![group], ..Algorithms::default() };
        let (client, server) = providers(&of(Group::X25519), &of(Group::P256));
        let outcome = run(&client, &server);
        assert_failure(
            &outcome.server_failure(),
            FailureKind::NoCommonParameters,
            Fault::Peer,
            &["no key exchange group in common"],
        );
        assert_eq!(outcome.client_failure().kind, FailureKind::AlertReceived);
    }
}

mod credentials {
    use super::*;

    #[test]
    fn a_wrong_file_is_named_with_what_it_holds() {
        let pair = EphemeralCa::new().unwrap();
        let issued = pair.authority().issue(&CertificatePlan::server(&[NAME]).unwrap()).unwrap();
        let folder = std::env::temp_dir().join(format!("smt-handshake-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (chain, key) = (folder.join("leaf.pem"), folder.join("leaf.key"));
        std::fs::write(&chain, &issued.certificate_pem).unwrap();
        std::fs::write(&key, issued.key_pem.as_bytes()).unwrap();
        Identity::from_pem_files(&chain, &key).unwrap();
        Trust::roots_from_pem_files(&[&chain]).unwrap();
        let swapped = Identity::from_pem_files(&key, &chain).unwrap_err().to_string();
        let trust = Trust::pinned_from_pem_file(&key).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        let wanted = format!("no certificate in {}: it holds 1 PRIVATE KEY", key.display());
        assert_eq!(swapped, wanted);
        assert_eq!(trust, wanted);
    }
}
