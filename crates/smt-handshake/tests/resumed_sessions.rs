// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions that resume earlier ones by a ticket of TLS (SPEC §6.10), and those that must not.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::time::{Duration, UNIX_EPOCH};

use harness::{
    EARLY_DATA, Flight, NAME, Outcome, PRE_SHARED_KEY, Side, run, run_request, run_with,
};
use smt_handshake::{
    Algorithms, ClientAuth, ClientTls, Group, Identity, RevocationLists, ServerTls, TlsProvider,
    Trust,
};
use smt_pki::{
    CertificateAuthority, CertificatePlan, EphemeralCa, KeyKind, RevokedCertificates, Validity,
};
use smt_proto::WallTime;
use smt_proto::key_exchange::{ClientRequest, FailureKind, Finished, KeyExchangeProvider};

const OTHER: &str = "b.example";
/// The second at which sessions begin.
const BEGIN: u64 = 1_800_000_000;

/// An authority, with certificates that end so many seconds after [`BEGIN`].
struct Setup {
    authority: CertificateAuthority,
}

impl Setup {
    fn new() -> Self {
        let validity = ends_after(1 << 24);
        let authority = CertificateAuthority::new("root", validity, KeyKind::EcdsaP256).unwrap();
        Self { authority }
    }

    fn trust(&self) -> Trust {
        Trust::roots_from_pem(self.authority.certificate_pem().as_bytes()).unwrap()
    }

    fn identity(&self, plan: CertificatePlan, seconds: u64) -> (Identity, Trust) {
        let validity = ends_after(seconds);
        let plan = CertificatePlan { validity, ..plan };
        let pair = self.authority.issue(&plan).unwrap();
        let certificate = pair.certificate_pem.as_bytes();
        let identity = Identity::from_pem(certificate, pair.key_pem.as_bytes()).unwrap();
        (identity, Trust::pinned_from_pem(certificate).unwrap())
    }

    fn server_identity(&self, seconds: u64) -> Identity {
        let plan = CertificatePlan::server(&[NAME, OTHER]).unwrap();
        self.identity(plan, seconds).0
    }

    fn server(&self) -> ServerTls {
        ServerTls::new(self.server_identity(100_000))
    }

    fn client(&self) -> ClientTls {
        ClientTls::new(self.trust())
    }

    /// A client and a server that ask each other for certificates, which end then.
    fn mutual(&self, client: u64, server: u64) -> Pair {
        let plan = CertificatePlan::client("c").unwrap();
        let client = self.client().with_identity(self.identity(plan, client).0);
        let server = ServerTls::new(self.server_identity(server))
            .with_client_auth(ClientAuth::Required(self.trust()));
        Pair::new(client, server)
    }
}

fn ends_after(seconds: u64) -> Validity {
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    Validity::between(at(BEGIN - 1_000), at(BEGIN + seconds)).unwrap()
}

struct Pair {
    client: TlsProvider,
    server: TlsProvider,
}

impl Pair {
    fn new(client: ClientTls, server: ServerTls) -> Self {
        Self { client: client.build().unwrap(), server: server.build().unwrap() }
    }

    /// A client of the same server.
    fn with_client(self, client: ClientTls) -> Self {
        Self { client: client.build().unwrap(), ..self }
    }

    /// A session that begins so many seconds after [`BEGIN`].
    fn after(&self, seconds: u64) -> Outcome {
        run_request(request(seconds), &self.client, &self.server, |_| {})
    }

    /// Whether that session resumes an earlier one, as both sides say.
    #[track_caller]
    fn resumes_after(&self, seconds: u64) -> bool {
        is_resumed(&self.after(seconds).both())
    }
}

fn request(seconds: u64) -> ClientRequest<'static> {
    ClientRequest { wall: Some(WallTime::from_secs(BEGIN + seconds)), ..ClientRequest::new(NAME) }
}

#[track_caller]
fn is_resumed((client, server): &(Finished, Finished)) -> bool {
    assert_eq!(client.secrets, server.secrets);
    assert_eq!(client.peer.is_resumed, server.peer.is_resumed);
    client.peer.is_resumed
}

const PSK_MODES: u16 = 45;
const KEY_SHARE: u16 = 51;

// SMT [6.1-12], [6.10-4], [6.10-5]
#[test]
fn a_second_session_is_resumed_with_a_fresh_key_exchange() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    let first = pair.after(0).both();
    assert!(!is_resumed(&first));
    let mut hello = Vec::new();
    let second = run_request(request(1), &pair.client, &pair.server, |flight| {
        if flight.number == 1 {
            hello = flight.extensions();
        }
    });
    assert_eq!(second.flights, 3);
    let second = second.both();
    assert!(is_resumed(&second));
    assert_ne!(first.0.secrets, second.0.secrets);
    assert_eq!(second.0.key_exchange, "X25519MLKEM768");
    assert_eq!(second.0.peer.certificates, first.0.peer.certificates);
    let content = |number| hello.iter().find(|(of, _)| *of == number).map(|(_, it)| it);
    assert!(content(PRE_SHARED_KEY).is_some() && content(KEY_SHARE).is_some());
    // With ECDHE alone, which is 1.
    assert_eq!(content(PSK_MODES), Some(&vec![1, 1]));
    assert_eq!(content(EARLY_DATA), None);
}

// SMT [6.10-6]
#[test]
fn each_session_brings_the_ticket_of_the_next() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    let mut secrets = vec![pair.after(0).both().0.secrets];
    for second in 1..10 {
        let next = pair.after(second).both();
        assert!(is_resumed(&next), "{second}");
        assert!(!secrets.contains(&next.0.secrets));
        secrets.push(next.0.secrets);
    }
}

// SMT [6.10-6]
#[test]
fn a_ticket_is_taken_once_at_the_server() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let mut client = Side::of(pair.client.client(request(1)).unwrap(), 1);
    let params = client.params.clone();
    client.start(&params);
    let hello = client.flight(1).unwrap();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let mut server = Side::server(&pair.server, &params).unwrap();
        server.receive(&hello).unwrap();
        answers.push(server.flight(2).unwrap());
    }
    // The second answer is a full handshake's: it has the certificate.
    client.receive(&answers[1]).unwrap();
    assert!(!client.finished().unwrap().peer.is_resumed);
    assert!(answers[0].bytes.len() + 300 < answers[1].bytes.len());
}

// SMT [6.10-6]
#[test]
fn a_ticket_is_used_once_by_the_client() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let begun = || {
        let mut client = Side::of(pair.client.client(request(1)).unwrap(), 1);
        let params = client.params.clone();
        client.start(&params);
        let hello = client.flight(1).unwrap().extensions();
        hello.iter().any(|(number, _)| *number == PRE_SHARED_KEY)
    };
    assert_eq!([begun(), begun()], [true, false]);
}

// SMT [6.10-11]
#[test]
fn an_attempt_after_one_that_failed_resumes_nothing() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let again = ClientRequest { is_retry: true, ..request(1) };
    let outcome = run_request(again, &pair.client, &pair.server, |_| {}).both();
    assert!(!is_resumed(&outcome));
    assert!(pair.resumes_after(2), "the ticket is there for the next connection");
}

// SMT [6.10-10]
#[test]
fn a_resumed_session_has_the_identities_of_both_sides() {
    let setup = Setup::new();
    let pair = setup.mutual(100_000, 100_000);
    let first = pair.after(0).both();
    for second in 1..4 {
        let resumed = pair.after(second).both();
        assert!(is_resumed(&resumed));
        assert_eq!(resumed.0.peer.certificates, first.0.peer.certificates);
        assert_eq!(resumed.1.peer.certificates, first.1.peer.certificates);
        assert_eq!(resumed.1.peer.certificates.len(), 1);
    }
}

// SMT [6.10-7]
#[test]
fn a_session_is_resumed_within_an_hour_of_the_full_handshake() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    assert!(pair.resumes_after(3_599));
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    assert!(!pair.resumes_after(3_600));
}

// SMT [6.10-7]
#[test]
fn resumption_does_not_prolong_the_hour() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    assert!(pair.resumes_after(2_000));
    assert!(pair.resumes_after(3_500));
    assert!(!pair.resumes_after(3_600));
    assert!(pair.resumes_after(7_199), "a full handshake does");
}

/// Each side keeps the hour by its own clock.
// SMT [6.10-7]
#[test]
fn a_server_does_not_rely_on_the_clients_hour() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let mut client = Side::of(pair.client.client(request(3_599)).unwrap(), 1);
    let params = client.params.clone();
    client.start(&params);
    let late = Some(WallTime::from_secs(BEGIN + 3_600));
    let mut server = Side::of(pair.server.server(&params, late).unwrap(), 2);
    let own = server.params.clone();
    server.start(&own);
    server.receive(&client.flight(1).unwrap()).unwrap();
    client.receive(&server.flight(2).unwrap()).unwrap();
    assert!(!client.finished().unwrap().peer.is_resumed);
}

// SMT [6.10-8]
#[test]
fn a_session_is_not_resumed_once_the_clients_certificate_has_ended() {
    let setup = Setup::new();
    let pair = setup.mutual(600, 100_000);
    pair.after(0).both();
    assert!(pair.resumes_after(599));
    let refused = pair.after(601).server_failure();
    assert_eq!(refused.kind, FailureKind::CertificateRefused, "{refused}");
}

// SMT [6.10-8]
#[test]
fn a_session_is_not_resumed_once_the_servers_certificate_has_ended() {
    let setup = Setup::new();
    let pair = setup.mutual(100_000, 600);
    pair.after(0).both();
    assert!(pair.resumes_after(599));
    let refused = pair.after(601).client_failure();
    assert_eq!(refused.kind, FailureKind::CertificateRefused, "{refused}");
}

/// One behind the server's own counts too, though nothing has to be signed by it.
// SMT [6.10-8]
#[test]
fn a_session_is_not_resumed_once_any_certificate_that_was_shown_has_ended() {
    let setup = Setup::new();
    let plan = CertificatePlan::server(&[NAME]).unwrap();
    let plan = CertificatePlan { validity: ends_after(100_000), ..plan };
    let own = setup.authority.issue(&plan).unwrap();
    let other = CertificateAuthority::new("other", ends_after(600), KeyKind::EcdsaP256).unwrap();
    let shown = [&own.certificate_pem[..], other.certificate_pem()].concat();
    let identity = Identity::from_pem(shown.as_bytes(), own.key_pem.as_bytes()).unwrap();
    let pair = Pair::new(setup.client(), ServerTls::new(identity));
    pair.after(0).both();
    assert!(pair.resumes_after(599));
    assert!(!pair.resumes_after(601));
}

// SMT [6.10-8]
#[test]
fn a_session_is_not_resumed_once_a_revocation_list_has_ended() {
    let setup = Setup::new();
    let list = |seconds| {
        let validity = ends_after(seconds);
        let list = setup.authority.revocation_list(&RevokedCertificates::default(), validity);
        RevocationLists::from_bytes(list.unwrap().as_bytes()).unwrap()
    };
    for (of_client, of_server) in [(600, 100_000), (100_000, 600)] {
        let plan = CertificatePlan::client("c").unwrap();
        let client = ClientTls::new(setup.trust().with_revocation_lists(list(of_client)));
        let client = client.with_identity(setup.identity(plan, 100_000).0);
        let clients = setup.trust().with_revocation_lists(list(of_server));
        let pair =
            Pair::new(client, setup.server().with_client_auth(ClientAuth::Required(clients)));
        pair.after(0).both();
        assert!(pair.resumes_after(599));
        let outcome = pair.after(601);
        let refused = match of_client < of_server {
            true => outcome.client_failure(),
            false => outcome.server_failure(),
        };
        assert_eq!(refused.kind, FailureKind::CertificateRefused, "{refused}");
    }
}

// SMT [6.10-8]
#[test]
fn the_dates_of_pinned_certificates_do_not_count() {
    let setup = Setup::new();
    let plan = CertificatePlan::client("c").unwrap();
    let (own, of_client) = setup.identity(plan, 1);
    let plan = CertificatePlan::server(&[NAME]).unwrap();
    let (identity, of_server) = setup.identity(plan, 1);
    let client = ClientTls::new(of_server).with_identity(own);
    let server = ServerTls::new(identity).with_client_auth(ClientAuth::Required(of_client));
    let pair = Pair::new(client, server);
    pair.after(1_000).both();
    assert!(pair.resumes_after(2_000));
    assert!(!pair.resumes_after(4_600));
}

// SMT [6.10-9]
#[test]
fn a_server_with_another_identity_resumes_nothing_from_before() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    let first = pair.after(0).both();
    pair.server.set_server(setup.server()).unwrap();
    let second = pair.after(1).both();
    assert!(!is_resumed(&second));
    assert_ne!(second.0.peer.certificates, first.0.peer.certificates);
    assert!(pair.resumes_after(2));
}

// SMT [6.10-9]
#[test]
fn a_client_that_is_not_trusted_any_more_cannot_resume() {
    let setup = Setup::new();
    let pair = setup.mutual(100_000, 100_000);
    pair.after(0).both();
    assert!(pair.resumes_after(1));
    let server = setup.server().with_client_auth(ClientAuth::Required(Setup::new().trust()));
    pair.server.set_server(server).unwrap();
    let refused = pair.after(2).server_failure();
    assert_eq!(refused.kind, FailureKind::CertificateRefused, "{refused}");
}

/// A client that showed no certificate gets in only as long as none is asked for.
// SMT [6.10-9]
#[test]
fn a_client_without_a_certificate_cannot_resume_once_one_is_wanted() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let server = setup.server().with_client_auth(ClientAuth::Required(setup.trust()));
    pair.server.set_server(server).unwrap();
    assert!(pair.after(1).server.is_err());
}

/// Another client has other trust, and another identity.
// SMT [6.10-9]
#[test]
fn a_clients_sessions_are_its_own() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let pair = pair.with_client(setup.client());
    assert!(!pair.resumes_after(1));
}

// SMT [6.10-9]
#[test]
fn a_session_is_resumed_under_the_servers_name_alone() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    pair.after(0).both();
    let other = ClientRequest { server_name: OTHER, ..request(1) };
    let outcome = run_request(other, &pair.client, &pair.server, |_| {}).both();
    assert!(!is_resumed(&outcome));
    assert!(pair.resumes_after(2), "the ticket of the first name is there");
}

// SMT [6.10-3]
#[test]
fn a_side_without_memory_for_it_resumes_nothing() {
    let setup = Setup::new();
    let sides = || [setup.client(), setup.client().with_sessions_memory(0)];
    for (without, client) in sides().into_iter().enumerate() {
        let server = match without {
            0 => setup.server().with_sessions_memory(0),
            _ => setup.server(),
        };
        let pair = Pair::new(client, server);
        for second in 0..3 {
            let mut flights = 0;
            let outcome = run_request(request(second), &pair.client, &pair.server, |_| {
                flights += 1;
            });
            assert!(!is_resumed(&outcome.both()));
            assert_eq!(flights, 3, "no ticket is sent");
        }
    }
}

// SMT [6.10-12]
#[test]
fn a_server_forgets_the_oldest_sessions_for_new_ones() {
    let setup = Setup::new();
    // Room for some.
    let server = setup.server().with_sessions_memory(4_096);
    let mut pair = Pair::new(setup.client(), server);
    pair.after(0).both();
    for _ in 0..20 {
        let other = Pair { client: setup.client().build().unwrap(), ..pair };
        other.after(1).both();
        assert!(other.resumes_after(2));
        pair.server = other.server;
    }
    assert!(!pair.resumes_after(3));
}

// SMT [6.10-2]
#[test]
fn a_damaged_ticket_costs_a_resumption_alone() {
    let setup = Setup::new();
    let pair = Pair::new(setup.client(), setup.server());
    let damage = |flight: &mut Flight| {
        if flight.number == 4 {
            flight.bytes[20] ^= 1;
        }
    };
    run_request(request(0), &pair.client, &pair.server, damage).both();
    assert!(!pair.resumes_after(1));
    assert!(pair.resumes_after(2));
}

/// The ticket is read by the client alone: TLS protects it.
// SMT [6.10-1]
#[test]
fn a_ticket_fits_in_a_packet_with_confirm_and_is_not_sent_in_the_clear() {
    let setup = Setup::new();
    let pair = setup.mutual(100_000, 100_000);
    let (mut sent, mut shown) = (Vec::new(), Vec::new());
    for second in 0..2 {
        let outcome =
            run_request(request(second), &pair.client, &pair.server, |flight| {
                match flight.number {
                    4 => sent.push(flight.bytes.clone()),
                    1 => shown.push(flight.extensions()),
                    _ => {}
                }
            });
        outcome.both();
    }
    let identity = shown[1].iter().find(|(number, _)| *number == PRE_SHARED_KEY);
    // The list's length, the ticket's length, the ticket.
    let ticket = &identity.unwrap().1[4..36];
    assert!(!sent[0].windows(32).any(|window| window == ticket));
    // A record of TLS, whatever certificates the client has shown.
    assert_eq!(sent[0][..3], [0x17, 3, 3]);
    assert!(sent[0].len() < 200, "{}", sent[0].len());
}

#[test]
fn a_session_is_resumed_after_a_retry_request_too() {
    let authority = EphemeralCa::new().unwrap();
    let of = |groups: &[Group]| Algorithms { groups: groups.to_vec(), ..Algorithms::default() };
    let client = ClientTls::new(authority.trust().unwrap());
    let groups = of(&[Group::X25519, Group::P256]);
    let client = TlsProvider::new(Some(client), None, &groups).unwrap();
    let server = ServerTls::new(authority.server(&[NAME]).unwrap());
    let server = TlsProvider::new(None, Some(server), &of(&[Group::P256])).unwrap();
    run(&client, &server).both();
    let outcome = run_with(&client, &server, |_| {});
    assert_eq!(outcome.flights, 5);
    let outcome = outcome.both();
    assert!(is_resumed(&outcome));
    assert_eq!(outcome.0.key_exchange, "secp256r1");
}
