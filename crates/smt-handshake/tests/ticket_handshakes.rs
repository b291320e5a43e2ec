// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handshakes by ticket (SPEC §6.7): what both sides get, and what goes by TLS instead.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::sync::Arc;

use harness::{Flight, NAME, Side, params, run_at};
use smt_handshake::{
    ClientAuth, ClientTls, Group, Identity, IssuedTicket, PeerCertificate, TicketClient,
    TicketIssuer, TicketKeys, TicketPlan, TicketServer, TicketStore, TicketVerifier,
};
use smt_pki::{EphemeralCa, KeyKind};
use smt_proto::WallTime;
use smt_proto::key_exchange::{ClientRequest, FailureKind, HandshakeFailure, KeyExchangeProvider};
use smt_record::Suite;
use smt_wire::{KeyExchange, Kind, MemberHeader, MessageId, PartMarks};

/// The wall time of the tests: that of their certificates.
fn now() -> WallTime {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    WallTime::from_secs(since.as_secs())
}

fn later(seconds: u64) -> WallTime {
    WallTime::from_secs(now().as_secs() + seconds)
}

/// An authority, a server with one ticket, and a client that has it.
struct Setup {
    authority: EphemeralCa,
    identity: Identity,
    keys: TicketKeys,
    store: TicketStore,
}

impl Setup {
    fn new(plan: TicketPlan) -> Self {
        Self::with_keys(KeyKind::default(), plan)
    }

    /// All certificates have keys of this kind.
    fn with_keys(kind: KeyKind, plan: TicketPlan) -> Self {
        let authority = EphemeralCa::with_keys(kind).unwrap();
        let identity = authority.server(&[NAME]).unwrap();
        let setup =
            Self { identity, keys: TicketKeys::new(), store: TicketStore::new(), authority };
        setup.renew(plan);
        setup
    }

    fn issue(&self, plan: TicketPlan) -> IssuedTicket {
        TicketIssuer::new(&self.identity, plan).unwrap().issue(now()).unwrap()
    }

    fn renew(&self, plan: TicketPlan) {
        let IssuedTicket { ticket, chain, key } = self.issue(plan);
        self.keys.add(key, now());
        let verified = self.verifier().verify(ticket.as_bytes(), &chain, NAME, now());
        self.store.insert(verified.unwrap());
    }

    fn verifier(&self) -> TicketVerifier {
        TicketVerifier::new(self.authority.trust().unwrap()).unwrap()
    }

    fn client(&self) -> TicketClient {
        let tls = ClientTls::new(self.authority.trust().unwrap()).build().unwrap();
        TicketClient::new(Arc::new(tls), self.store.clone())
    }

    fn server(&self) -> TicketServer {
        TicketServer::new(self.keys.clone(), ClientAuth::None).unwrap()
    }

    fn kind(&self, request: ClientRequest<'_>) -> KeyExchange {
        self.client().client(request).unwrap().kind
    }
}

fn plan() -> TicketPlan {
    TicketPlan::new([NAME])
}

fn run(client: &TicketClient, server: &TicketServer) -> harness::Outcome {
    run_at(Some(now()), client, server, |_| {})
}

// SMT [6.7-3], [6.7-10]
#[test]
fn keys_of_every_kind_sign_tickets_and_prove_clients() {
    for kind in KeyKind::ALL {
        let setup = Setup::with_keys(kind, plan());
        let trust = setup.authority.trust().unwrap();
        let alice = setup.authority.client("alice").unwrap();
        let server = TicketServer::new(setup.keys.clone(), ClientAuth::Required(trust)).unwrap();
        let (at_client, at_server) = run(&setup.client().with_identity(&alice), &server).both();
        assert_eq!(at_client.secrets, at_server.secrets, "{kind:?}");
        assert_eq!(at_server.peer.certificates.len(), 1, "{kind:?}");
    }
}

// SMT [6.7-9], [6.7-14]
#[test]
fn both_sides_have_the_same_secrets_and_the_server_is_known() {
    for group in [Group::P256, Group::X25519, Group::X25519MlKem768] {
        for suite in Suite::ALL {
            for has_forward_secrecy in [true, false] {
                let setup = Setup::new(TicketPlan { group, suites: vec![suite], ..plan() });
                let client = match has_forward_secrecy {
                    true => setup.client(),
                    false => setup.client().without_forward_secrecy(),
                };
                let outcome = run(&client, &setup.server());
                assert_eq!(outcome.flights, 3);
                let (client, server) = outcome.both();
                assert_eq!(client.secrets.suite, suite);
                assert!(client.secrets == server.secrets, "{group:?} {suite}");
                let chain: Vec<&[u8]> = setup.identity.certificates().collect();
                assert_eq!(client.peer.certificates, chain);
                assert!(server.peer.certificates.is_empty());
                let is_told = client.key_exchange.ends_with("forward secrecy");
                assert_eq!(is_told, has_forward_secrecy);
            }
        }
    }
}

/// The ticket's suite is the client's too, or the ticket is not used; and the server's own
/// parameters may lack it.
// SMT [6.7-7]
#[test]
fn the_suite_is_one_of_the_ticket_and_of_both_sides_parameters() {
    let setup = Setup::new(TicketPlan { suites: vec![Suite::Aes128Gcm], ..plan() });
    let other = || setup.client().with_suites(vec![Suite::Aes256Gcm]);
    let request = ClientRequest { wall: Some(now()), ..ClientRequest::new(NAME) };
    assert_eq!(other().client(request).unwrap().kind, KeyExchange::Tls13);
    for lacking in [1, 2] {
        let outcome = run_at(Some(now()), &setup.client(), &setup.server(), |flight| {
            if flight.number == lacking {
                let place = flight.params.windows(2).position(|pair| pair == [0x13, 0x01]);
                flight.params[place.unwrap() + 1] = 0x03;
            }
        });
        let failure = match lacking {
            1 => outcome.server_failure(),
            _ => outcome.client_failure(),
        };
        assert_eq!(failure.kind, FailureKind::NoCommonParameters, "{failure}");
    }
}

// SMT [6.7-6]
#[test]
fn no_two_sessions_of_one_ticket_have_a_secret_in_common() {
    let setup = Setup::new(plan());
    let client = setup.client().without_forward_secrecy();
    let [one, other] = [(); 2].map(|()| run(&client, &setup.server()).both().0);
    assert!(one.secrets.client != other.secrets.client);
    assert!(one.secrets.server != other.secrets.server);
    assert!(one.secrets.client != one.secrets.server);
}

#[test]
fn a_repeated_flight_1_gives_the_server_other_secrets() {
    let setup = Setup::new(plan());
    let mut client = Side::client(&setup.client().without_forward_secrecy());
    let flight = client.flight(1).unwrap();
    let [one, other] = [(); 2].map(|()| {
        let mut server = Side::server(&setup.server(), &flight.params).unwrap();
        server.receive(&flight).unwrap();
        server.finished().unwrap()
    });
    assert!(one.secrets.server != other.secrets.server);
    assert!(one.secrets.client != other.secrets.client);
}

// SMT [6.7-10]
#[test]
fn a_client_with_a_certificate_is_known() {
    let setup = Setup::new(TicketPlan { requires_client_certificate: true, ..plan() });
    let trust = setup.authority.trust().unwrap();
    let server = TicketServer::new(setup.keys.clone(), ClientAuth::Required(trust)).unwrap();
    let alice = setup.authority.client("alice").unwrap();
    let (_, known) = run(&setup.client().with_identity(&alice), &server).both();
    let chain: Vec<&[u8]> = alice.certificates().collect();
    assert_eq!(known.peer.certificates, chain);
    // Without one the client does not even try.
    let without = setup.client().client(ClientRequest::new(NAME)).unwrap();
    assert_eq!(without.kind, KeyExchange::Tls13);
}

// SMT [6.7-10]
#[test]
fn a_client_without_a_certificate_is_refused_and_told() {
    let setup = Setup::new(plan());
    let trust = setup.authority.trust().unwrap();
    let server = TicketServer::new(setup.keys.clone(), ClientAuth::Required(trust)).unwrap();
    let outcome = run(&setup.client(), &server);
    let failure = outcome.client_failure();
    assert_eq!(failure.kind, FailureKind::NoCommonParameters);
    assert!(failure.text.contains("client certificate"), "{failure}");
}

// SMT [6.7-10]
#[test]
fn a_client_of_another_authority_is_refused() {
    let setup = Setup::new(plan());
    let trust = setup.authority.trust().unwrap();
    let server = TicketServer::new(setup.keys.clone(), ClientAuth::Optional(trust)).unwrap();
    let mallory = EphemeralCa::new().unwrap().client("mallory").unwrap();
    let outcome = run(&setup.client().with_identity(&mallory), &server);
    assert!(outcome.client_failure().text.contains("does not trust"));
    outcome.server_failure();
}

// SMT [6.7-12]
#[test]
fn a_server_that_does_not_know_the_ticket_says_so_and_the_client_forgets_it() {
    let setup = Setup::new(plan());
    let restarted = TicketServer::new(TicketKeys::new(), ClientAuth::None).unwrap();
    let outcome = run(&setup.client(), &restarted);
    assert_eq!(outcome.client_failure().kind, FailureKind::NoCommonParameters);
    assert!(outcome.client_failure().text.contains("earlier run"));
    assert!(setup.store.is_empty());
}

// SMT [6.7-2]
#[test]
fn a_server_answers_to_no_ticket_that_is_over_or_revoked() {
    let setup = Setup::new(TicketPlan { life: 10, ..plan() });
    let client = setup.client();
    let refused = |at| {
        let mut side = Side::of(client.client(ClientRequest::new(NAME)).unwrap(), 1);
        let own = side.params.clone();
        side.start(&own);
        let flight = side.flight(1).unwrap();
        let attempt = setup.server().server(&flight.params, Some(at)).unwrap();
        let mut server = Side::of(attempt, 2);
        let own = server.params.clone();
        server.start(&own);
        server.receive(&flight).is_err()
    };
    assert!(!refused(later(11)), "the client's clock may be late");
    assert!(!refused(now()));
    assert!(refused(later(71)));
    assert!(setup.keys.is_empty(), "the key is erased");
    setup.renew(plan());
    assert!(setup.keys.len() == 1);
    setup.keys.clear();
    assert!(refused(now()));
}

// SMT [6.7-3], [6.7-12]
#[test]
fn a_ticket_is_used_in_its_time_and_never_in_a_second_attempt() {
    let setup = Setup::new(TicketPlan { life: 10, ..plan() });
    let at = |seconds| ClientRequest { wall: Some(later(seconds)), ..ClientRequest::new(NAME) };
    let again = ClientRequest { is_retry: true, ..at(0) };
    assert_eq!(setup.kind(at(0)), KeyExchange::Ticket);
    assert_eq!(setup.kind(again), KeyExchange::Tls13);
    let other = ClientRequest::new("b.example");
    assert_eq!(setup.kind(other), KeyExchange::Tls13);
    assert_eq!(setup.kind(at(11)), KeyExchange::Tls13);
    assert!(setup.store.is_empty(), "it is over");
}

// SMT [6.8-4]
#[test]
fn early_data_is_taken_once_whatever_tickets_come_after_its_own() {
    let setup = Setup::new(early_plan());
    let (_, flight) = early_client(&setup, &early_request());
    assert!(answered(&setup, &flight).0.is_some());
    setup.renew(early_plan());
    assert_eq!(answered(&setup, &flight).0, None);
}

/// The time of the last second of the certificate of a setup, and so many seconds.
fn from_certificates_end(setup: &Setup, seconds: i64) -> WallTime {
    let leaf = setup.identity.certificates().next().unwrap();
    let end = PeerCertificate::from_der(leaf).unwrap().not_after.as_secs();
    WallTime::from_secs(end.checked_add_signed(seconds).unwrap())
}

// SMT [6.7-3]
#[test]
fn a_ticket_ends_with_the_certificate_that_signs_it() {
    let setup = Setup::new(plan());
    let at = |seconds| from_certificates_end(&setup, seconds);
    let issuer = || TicketIssuer::new(&setup.identity, plan()).unwrap();
    let issued = issuer().issue(at(-600)).unwrap();
    assert_eq!(*issued.ticket.validity().end(), at(0).as_secs());
    // A server whose clock is ahead signs after the end for clients whose clock is late.
    let issued = issuer().issue(at(10)).unwrap();
    assert!(*issued.ticket.validity().end() > at(2_400).as_secs());
    let verified =
        setup.verifier().verify(issued.ticket.as_bytes(), &issued.chain, NAME, at(-30)).unwrap();
    setup.store.insert(verified);
    assert!(setup.store.get(NAME, at(0)).is_some());
    assert!(setup.store.get(NAME, at(1)).is_none());
    assert!(setup.store.is_empty(), "it is over");
}

// SMT [6.7-5]
#[test]
fn a_client_that_wants_post_quantum_takes_no_other_ticket() {
    let classical = Setup::new(TicketPlan { group: Group::X25519, ..plan() });
    let kind = |setup: &Setup| {
        let client = setup.client().requiring_post_quantum();
        client.client(ClientRequest::new(NAME)).unwrap().kind
    };
    assert_eq!(kind(&classical), KeyExchange::Tls13);
    assert_eq!(kind(&Setup::new(plan())), KeyExchange::Ticket);
}

// SMT [6.7-10]
#[test]
fn the_stricter_of_both_sides_decides_about_forward_secrecy() {
    let setup = Setup::new(TicketPlan { requires_forward_secrecy: true, ..plan() });
    let client = setup.client().without_forward_secrecy();
    let (client, _) = run(&client, &setup.server()).both();
    assert!(client.key_exchange.ends_with("with forward secrecy"));
}

/// A plan of tickets whose server takes early data.
fn early_plan() -> TicketPlan {
    TicketPlan { takes_early_data: true, ..plan() }
}

/// A client that has begun with early data, and its flight 1.
fn early_client(setup: &Setup, early: &[u8]) -> (Side, Flight) {
    let mut client = Side::of(setup.client().client(ClientRequest::new(NAME)).unwrap(), 1);
    let own = client.params.clone();
    client.start_with_early(&own, early);
    let flight = client.flight(1).unwrap();
    (client, flight)
}

/// Has the server answer a flight. Returns the early data that it takes, and its flight 2.
fn answered(setup: &Setup, flight: &Flight) -> (Option<Vec<u8>>, Flight) {
    let mut server = Side::server(&setup.server(), &flight.params).unwrap();
    server.receive(flight).unwrap();
    (server.early.take(), server.flight(2).unwrap())
}

/// Early data of one request.
fn early_request() -> Vec<u8> {
    let header = MemberHeader {
        id: MessageId(0),
        kind: Kind::Request,
        length: 2,
        deadline_us: 0,
        reply_unscheduled: 0,
        failure: None,
        has_metadata: false,
        parts: PartMarks::default(),
    };
    let mut bytes = [0; MemberHeader::LEN];
    header.emit(&mut bytes);
    [&bytes[..], b"hi"].concat()
}

// SMT [6.8-3], [6.8-9]
#[test]
fn early_data_that_breaks_a_rule_is_not_taken_and_the_handshake_goes_on_without() {
    let setup = Setup::new(early_plan());
    let request = early_request();
    for early in [request.repeat(17), request[..request.len() - 1].to_vec(), b"early".to_vec()] {
        let (mut client, flight) = early_client(&setup, &early);
        let (taken, answer) = answered(&setup, &flight);
        assert_eq!(taken, None);
        client.receive(&answer).unwrap();
        assert!(!client.finished().unwrap().early_taken);
    }
}

// SMT [6.8-4]
#[test]
fn early_data_is_taken_once_and_the_client_is_told() {
    let setup = Setup::new(early_plan());
    let early = early_request();
    let (mut client, flight) = early_client(&setup, &early);
    let (taken, answer) = answered(&setup, &flight);
    assert_eq!(taken, Some(early));
    client.receive(&answer).unwrap();
    assert!(client.finished().unwrap().early_taken);
    // The flight comes again, at another time or address: the handshake goes on without.
    let (again, _) = answered(&setup, &flight);
    assert_eq!(again, None);
}

// SMT [6.8-3]
#[test]
fn a_client_learns_that_its_early_data_was_not_taken() {
    let setup = Setup::new(early_plan());
    let (mut client, flight) = early_client(&setup, b"early");
    answered(&setup, &flight);
    // The client hears the second server only.
    let (_, answer) = answered(&setup, &flight);
    client.receive(&answer).unwrap();
    assert!(!client.finished().unwrap().early_taken);
}

// SMT [6.8-1]
#[test]
fn a_server_that_takes_no_early_data_says_so_in_its_tickets() {
    let max = |setup: &Setup| {
        let attempt = setup.client().client(ClientRequest::new(NAME));
        attempt.unwrap().early_max
    };
    let without = Setup::new(plan());
    assert_eq!(max(&without), 0);
    assert!(max(&Setup::new(early_plan())) > 1_000);
    let (_, flight) = early_client(&without, b"early");
    assert_eq!(answered(&without, &flight).0, None);
}

#[test]
fn a_flight_without_early_data_is_not_remembered() {
    let setup = Setup::new(early_plan());
    let (_, flight) = early_client(&setup, b"");
    for _ in 0..2 {
        let (taken, _) = answered(&setup, &flight);
        assert_eq!(taken, None);
    }
}

// SMT [6.8-3]
#[test]
fn early_data_of_a_client_that_must_show_a_certificate_waits_for_it() {
    let setup = Setup::new(early_plan());
    let trust = setup.authority.trust().unwrap();
    let server = TicketServer::new(setup.keys.clone(), ClientAuth::Required(trust)).unwrap();
    let (_, flight) = early_client(&setup, b"early");
    let mut side = Side::server(&server, &flight.params).unwrap();
    side.receive(&flight).unwrap_err();
    assert_eq!(side.early, None);
}

/// Any byte of a flight or of its parameters that is changed on the way ends the attempt at one
/// side, and never leaves both with secrets that differ unnoticed.
// SMT [6.7-8], [6.7-11]
#[test]
fn a_flight_that_was_changed_gives_nobody_secrets_of_both() {
    let setup = Setup::new(TicketPlan { group: Group::X25519, ..plan() });
    let (client, server) = (setup.client(), setup.server());
    for number in [1, 2] {
        let mut length = 0;
        run_at(Some(now()), &client, &server, |flight| {
            if flight.number == number {
                length = flight.bytes.len();
            }
        });
        for at in 0..length {
            // Each attempt is as a first one: a refusal that is forged makes a client forget.
            setup.renew(TicketPlan { group: Group::X25519, ..plan() });
            let outcome = run_at(Some(now()), &client, &server, |flight| {
                if flight.number == number {
                    flight.bytes[at] ^= 1 << (at % 8);
                }
            });
            assert!(outcome.client.is_err(), "byte {at} of flight {number}");
            if number == 1 {
                assert!(outcome.server.is_err(), "byte {at} of flight 1");
            }
        }
    }
}

#[test]
fn parameters_that_were_changed_fail_the_attempt() {
    let setup = Setup::new(plan());
    for number in [1, 2] {
        let outcome = run_at(Some(now()), &setup.client(), &setup.server(), |flight| {
            if flight.number == number {
                // The window, which no side can tell to be wrong.
                let at = flight.params.windows(2).position(|tag| tag == [8, 4]).unwrap();
                flight.params[at + 4] ^= 1;
            }
        });
        assert!(outcome.client.is_err(), "flight {number}");
    }
}

#[test]
fn flights_that_are_cut_or_out_of_turn_fail() {
    let setup = Setup::new(plan());
    for length in [0, 1, 34, 66, 200] {
        let outcome = run_at(Some(now()), &setup.client(), &setup.server(), |flight| {
            if flight.number == 1 {
                flight.bytes.truncate(length);
            }
        });
        outcome.server_failure();
    }
    let mut client = Side::client(&setup.client());
    client.flight(1).unwrap();
    let early = client.receive(&Flight::of(4, &[], &[]));
    assert!(early.unwrap_err().text.contains("out of turn"));
}

/// A verdict on a ticket, for the tests of what is refused.
fn refusal(
    setup: &Setup,
    bytes: &[u8],
    chain: &[Vec<u8>],
    name: &str,
    at: WallTime,
) -> HandshakeFailure {
    setup.verifier().verify(bytes, chain, name, at).unwrap_err()
}

// SMT [6.7-3]
#[test]
fn a_ticket_is_refused_for_another_name_time_or_chain() {
    let setup = Setup::new(plan());
    let IssuedTicket { ticket, chain, .. } = setup.issue(plan());
    let bytes = ticket.as_bytes();
    let text = |failure: HandshakeFailure| failure.text;
    let other = refusal(&setup, bytes, &chain, "b.example", now());
    assert!(text(other).contains("not for"));
    let over = refusal(&setup, bytes, &chain, NAME, later(3_700));
    assert!(text(over).contains("over since"));
    let early = WallTime::from_secs(now().as_secs() - 1_000);
    assert!(text(refusal(&setup, bytes, &chain, NAME, early)).contains("clocks"));
    assert!(text(refusal(&setup, bytes, &[], NAME, now())).contains("certificates"));
    let others: Vec<Vec<u8>> = {
        let identity = setup.authority.server(&[NAME]).unwrap();
        identity.certificates().map(<[u8]>::to_vec).collect()
    };
    assert!(text(refusal(&setup, bytes, &others, NAME, now())).contains("other certificates"));
}

#[test]
fn a_ticket_that_another_certificate_signed_is_refused() {
    let setup = Setup::new(plan());
    // Names in the ticket are worth nothing without the certificate.
    let mallory = setup.authority.server(&["mallory.example"]).unwrap();
    let forged = TicketIssuer::new(&mallory, plan()).unwrap().issue(now()).unwrap();
    let failure = refusal(&setup, forged.ticket.as_bytes(), &forged.chain, NAME, now());
    assert_eq!(failure.kind, FailureKind::CertificateRefused);
    // Nor is a certificate of an authority that the client does not know.
    let stranger = EphemeralCa::new().unwrap().server(&[NAME]).unwrap();
    let forged = TicketIssuer::new(&stranger, plan()).unwrap().issue(now()).unwrap();
    let failure = refusal(&setup, forged.ticket.as_bytes(), &forged.chain, NAME, now());
    assert_eq!(failure.kind, FailureKind::CertificateRefused);
}

// SMT [6.7-4]
#[test]
fn no_byte_of_a_ticket_can_be_changed() {
    let setup = Setup::new(plan());
    let IssuedTicket { ticket, chain, .. } =
        setup.issue(TicketPlan { group: Group::P256, ..plan() });
    for at in 0..ticket.as_bytes().len() {
        let mut bytes = ticket.as_bytes().to_vec();
        bytes[at] ^= 1;
        refusal(&setup, &bytes, &chain, NAME, now());
    }
    let long = [ticket.as_bytes(), &[0]].concat();
    refusal(&setup, &long, &chain, NAME, now());
}

// SMT [6.7-1]
#[test]
fn a_plan_that_cannot_be_is_the_callers_fault() {
    let setup = Setup::new(plan());
    let wrong = [
        TicketPlan { life: 0, ..plan() },
        TicketPlan { life: 3_601, ..plan() },
        TicketPlan { suites: Vec::new(), ..plan() },
        TicketPlan { names: Vec::new(), ..plan() },
    ];
    for plan in wrong {
        let failure = TicketIssuer::new(&setup.identity, plan).unwrap_err();
        assert_eq!(failure.fault, smt_proto::key_exchange::Fault::Caller);
    }
}

#[test]
fn a_server_of_tickets_alone_refuses_other_kinds() {
    let setup = Setup::new(plan());
    let tls = ClientTls::new(setup.authority.trust().unwrap()).build().unwrap();
    let attempt = tls.client(ClientRequest::new(NAME)).unwrap();
    let refused = setup.server().server(&params(1, &attempt), None);
    assert_eq!(refused.err().unwrap().kind, FailureKind::NoCommonParameters);
}
