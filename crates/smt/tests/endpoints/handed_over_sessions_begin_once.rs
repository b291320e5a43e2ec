// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions that control processes agree on, and other processes use (SPEC §7.5): the hazards of
//! such a split, each by its name. docs/HANDOVER.md lists them.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use smt::{
    Adopter, Builder, Handover, HandoverClient, HandoverError, HandoverTerms, KeyLimits, Session,
    Side, Suite, WallTime, blocking,
};

use crate::choices_are_honoured::Lines;
use crate::support::forwarder::{Forwarder, Way};
use crate::support::payload::{is_payload, payload};
use crate::support::{Credentials, assert_echo, connect, echo, eventually, serve};

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    WallTime::from_secs(since.as_secs())
}

/// The control processes of both hosts, and their session.
struct Control {
    _server: blocking::Server,
    _client: blocking::Client,
    at_client: Session,
    at_server: Session,
    numbers: AtomicU64,
}

impl Control {
    fn new() -> Self {
        let credentials = Credentials::new();
        let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
        let (sender, sessions) = mpsc::channel();
        serve(&server, 1, move |request| {
            sender.send(request.session()).unwrap();
            echo(request);
        });
        let client = connect(&credentials, server.local_address());
        assert_echo(&client, "hello");
        Self {
            at_client: client.connect().unwrap(),
            at_server: sessions.recv().unwrap(),
            _server: server,
            _client: client,
            numbers: AtomicU64::new(0),
        }
    }

    /// Both values of one session.
    fn values(&self, client: &Adopter, server: &Adopter) -> (Handover, Handover) {
        let terms = HandoverTerms {
            client: client.id(),
            server: server.id(),
            suite: Suite::Aes256Gcm,
            valid_until: WallTime::from_secs(now().as_secs() + 60),
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
        };
        let at_client = self.at_client.hand_over(Side::Client, &terms, "store");
        let at_server = self.at_server.hand_over(Side::Server, &terms, "web");
        (at_client.unwrap(), at_server.unwrap())
    }

    /// Hands one session over to both.
    fn hand_over(&self, client: &Adopter, server: &Adopter) {
        let (for_client, for_server) = self.values(client, server);
        server.adopt(&for_server, now()).unwrap();
        client.adopt(&for_client, now()).unwrap();
    }
}

/// A data process that answers.
fn server(adopter: &Adopter) -> blocking::Server {
    let server = smt::server_by_handover(adopter.clone());
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, |request| {
        assert_eq!(request.peer().key_identity.as_deref(), Some("web"));
        echo(request);
    });
    server
}

/// A data process that calls.
fn client(adopter: &Adopter) -> Builder<HandoverClient> {
    smt::client_by_handover(adopter.clone(), "store").connect_deadline(Duration::from_secs(5))
}

fn adopters() -> (Adopter, Adopter) {
    (Adopter::new().unwrap(), Adopter::new().unwrap())
}

fn error_of(connected: Result<blocking::Client, impl ToString>) -> String {
    connected.err().unwrap().to_string()
}

#[test]
fn processes_without_credentials_use_a_session_that_others_agreed_on() {
    let (of_client, of_server) = adopters();
    let server = server(&of_server);
    Control::new().hand_over(&of_client, &of_server);
    let client = client(&of_client).connect_blocking(server.local_address());
    assert_echo(&client.unwrap(), payload(1, 100_000));
    assert_eq!((of_client.waiting(), of_server.waiting()), (0, 0));
}

// SMT [7.5-5]
/// A second session by one value is refused, at both ends and with its reason.
#[test]
fn a_session_that_is_adopted_twice_fails_the_second_time() {
    let (of_client, of_server) = adopters();
    let server = server(&of_server);
    let control = Control::new();
    let (for_client, for_server) = control.values(&of_client, &of_server);
    server_adopts(&of_server, &for_server);
    of_client.adopt(&for_client, now()).unwrap();
    let first = client(&of_client).connect_blocking(server.local_address());
    assert_echo(&first.unwrap(), "hello");
    for (adopter, value) in [(&of_client, &for_client), (&of_server, &for_server)] {
        let again = adopter.adopt(value, now());
        assert!(matches!(again, Err(HandoverError::AdoptedBefore { .. })));
    }
    let none = error_of(client(&of_client).connect_blocking(server.local_address()));
    assert!(none.contains("have the key daemon hand over another"), "{none}");
}

fn server_adopts(adopter: &Adopter, value: &Handover) {
    adopter.adopt(value, now()).unwrap();
}

// SMT [7.5-6]
/// A value that was copied on its way, to a process that gives itself out for the one it is for.
#[test]
fn a_copy_of_a_value_begins_no_second_session() {
    let (of_client, of_server) = adopters();
    let server = server(&of_server);
    let control = Control::new();
    let (for_client, for_server) = control.values(&of_client, &of_server);
    server_adopts(&of_server, &for_server);
    of_client.adopt(&for_client, now()).unwrap();
    let first = client(&of_client).connect_blocking(server.local_address());
    let first = first.unwrap();
    // The copy is a registered key to whoever knows its layout.
    let bytes = for_client.to_bytes();
    let (name, secret) = (&bytes[64..80], &bytes[80..112]);
    let (own, peer) = (of_client.id().to_string(), of_server.id().to_string());
    let ends = smt::KeyEnds { own: &own, peer: &peer };
    let copy = smt::RegisteredKey::from_secret(name, ends, Suite::Aes256Gcm, secret).unwrap();
    let copied = smt::client_by_key(copy).connect_blocking(server.local_address());
    let error = error_of(copied);
    assert!(error.contains("configure both alike"), "{error}");
    assert_echo(&first, "the session that was first goes on");
    assert_eq!(server.statistics().protocol.sessions_begun, 1);
}

// SMT [7.5-8]
/// A session of certificates ends with them, and so does each that is handed over by it, also by
/// one that was handed over itself: it has no certificate that could be looked at again.
#[test]
fn the_end_of_the_credentials_goes_on_from_one_handover_to_the_next() {
    let (of_client, of_server) = adopters();
    let (server, control) = (server(&of_server), Control::new());
    let (for_client, for_server) = control.values(&of_client, &of_server);
    let certificate = control.at_client.peer().certificate().unwrap();
    let end = for_client.credentials_end();
    // The second behind the last one.
    assert_eq!(end.map(WallTime::as_secs), Some(certificate.not_after.as_secs() + 1));
    server_adopts(&of_server, &for_server);
    of_client.adopt(&for_client, now()).unwrap();
    let client = client(&of_client).connect_blocking(server.local_address());
    let session = client.unwrap().connect().unwrap();
    assert_eq!(session.peer().expires, end);
    let next = session.hand_over(Side::Client, for_client.terms(), "store");
    assert_eq!(next.unwrap().credentials_end(), end);
}

/// Each session has fresh randoms of both ends in its keys.
#[test]
fn no_two_sessions_of_one_control_session_share_a_key() {
    let (of_client, of_server) = adopters();
    let (server, control) = (server(&of_server), Control::new());
    let (lines, mut exported) = (Lines::default(), HashSet::new());
    for _ in 0..3 {
        control.hand_over(&of_client, &of_server);
        let client = client(&of_client).key_log(Arc::new(lines.clone()));
        let client = client.connect_blocking(server.local_address()).unwrap();
        assert_echo(&client, "hello");
        let mut secret = [0; 32];
        let session = client.connect().unwrap();
        session.export("EXPORTER-test", b"", &mut secret).unwrap();
        exported.insert(secret);
    }
    let lines = lines.take();
    let ends = lines.iter().filter_map(|line| line.rsplit(' ').next());
    assert_eq!((lines.len(), ends.collect::<HashSet<_>>().len()), (12, 12));
    assert_eq!(exported.len(), 3);
}

// SMT [7.5-7]
/// Hazard: encrypted data before the keys are in place.
#[test]
fn a_client_that_comes_before_its_keys_is_refused_and_may_come_again() {
    let (of_client, of_server) = adopters();
    let (server, control) = (server(&of_server), Control::new());
    let (for_client, for_server) = control.values(&of_client, &of_server);
    of_client.adopt(&for_client, now()).unwrap();
    let early = error_of(client(&of_client).connect_blocking(server.local_address()));
    assert!(early.contains("configure both alike"), "{early}");
    assert_eq!(server.statistics().protocol.sessions_begun, 0);
    // The value was not used up: no end has confirmed.
    server_adopts(&of_server, &for_server);
    let client = client(&of_client).connect_blocking(server.local_address());
    assert_echo(&client.unwrap(), "hello");
}

/// Hazard: rekeying while data flows, and both sides at once. Each side's own traffic makes it
/// renew its keys here, in a session that was handed over.
#[test]
fn both_sides_renew_their_keys_at_once_while_data_flows() {
    let (of_client, of_server) = adopters();
    let limits = KeyLimits::new(64, 48, 1 << 20).unwrap();
    let server = smt::server_by_handover(of_server.clone()).key_limits(limits);
    let server = server.bind_blocking("127.0.0.1:0").unwrap();
    serve(&server, 2, echo);
    Control::new().hand_over(&of_client, &of_server);
    let client = client(&of_client).key_limits(limits);
    let client = client.connect_blocking(server.local_address()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for number in (thread..600).step_by(4) {
                    let size = 100 + number as usize * 20;
                    let reply = client.call(payload(number, size)).wait().unwrap();
                    assert!(is_payload(&reply, number, size), "{number}");
                }
            });
        }
    });
    let facts = client.connect().unwrap().facts().unwrap();
    assert!(facts.seal_epoch >= 4 && facts.open_epoch >= 4, "{facts:?}");
    assert_eq!(client.statistics().protocol.sessions_begun, 1);
}

/// Hazard: the control side restarts. It has no state that a session needs.
#[test]
fn sessions_go_on_when_both_control_processes_end() {
    let (of_client, of_server) = adopters();
    let (server, control) = (server(&of_server), Control::new());
    control.hand_over(&of_client, &of_server);
    let client = client(&of_client).connect_blocking(server.local_address());
    let client = client.unwrap();
    drop(control);
    assert_echo(&client, "hello");
    // The next ones hand over the next session.
    Control::new().hand_over(&of_client, &of_server);
    client.connect().unwrap().close();
    eventually("the next session is there", || client.call("hello").wait().is_ok());
    assert_eq!(server.statistics().protocol.sessions_begun, 2);
}

/// The values of a data process that has ended are of no use to the next run, and its client learns
/// so at each end.
#[test]
fn values_of_a_process_that_has_restarted_are_refused() {
    let (of_client, before) = adopters();
    let control = Control::new();
    let (for_client, for_server) = control.values(&of_client, &before);
    drop(before);
    let after = Adopter::new().unwrap();
    let replayed = after.adopt(&for_server, now());
    assert!(matches!(replayed, Err(HandoverError::OtherProcess { .. })));
    let server = server(&after);
    of_client.adopt(&for_client, now()).unwrap();
    let error = error_of(client(&of_client).connect_blocking(server.local_address()));
    assert!(error.contains("configure both alike"), "{error}");
    // A session for the new run is another one.
    Control::new().hand_over(&of_client, &after);
    let client = client(&of_client).connect_blocking(server.local_address());
    assert_echo(&client.unwrap(), "hello");
}

/// A way to a server that leads to another from some moment on.
fn way_to(first: SocketAddr, second: SocketAddr) -> (Forwarder, Forwarder, Arc<AtomicBool>) {
    let has_moved = Arc::new(AtomicBool::new(false));
    let (moved, back) = (Arc::clone(&has_moved), Arc::new(Mutex::new(None)));
    let standby = Forwarder::new(second, |way, datagram| vec![(way, datagram.to_vec())]);
    let address = standby.address();
    let (sender, is_moved) = (back, moved);
    let way = Forwarder::new(first, move |way, datagram| {
        if !is_moved.load(Ordering::Acquire) {
            return vec![(way, datagram.to_vec())];
        }
        // The first server is not heard any more.
        if way == Way::ToServer {
            let mut socket = sender.lock().unwrap();
            let socket =
                socket.get_or_insert_with(|| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
            let _ = socket.send_to(datagram, address);
        }
        Vec::new()
    });
    (way, standby, has_moved)
}

// SMT [7.5-9]
/// Hazard: failover of the address to a standby, which has no session of the first server and
/// gets none: the keys never exist twice. A call in progress ends with an error that tells, and the
/// next session is handed over for the standby.
#[test]
fn a_standby_that_takes_the_address_over_gets_sessions_of_its_own() {
    let (of_client, of_first) = adopters();
    let of_standby = Adopter::new().unwrap();
    let (first, standby) = (server(&of_first), server(&of_standby));
    let control = Control::new();
    control.hand_over(&of_client, &of_first);
    let (way, _standby_way, has_moved) = way_to(first.local_address(), standby.local_address());
    let client_of = client(&of_client).connect_blocking(way.address()).unwrap();
    assert_echo(&client_of, "hello");
    has_moved.store(true, Ordering::Release);
    let late = client_of.call("lost").deadline(Duration::from_millis(300)).wait();
    let error = late.unwrap_err().to_string();
    assert!(error.contains("deadline") || error.contains("session"), "{error}");
    // The standby saw packets of a session that it does not have, and delivered nothing.
    eventually("the standby has seen the packets", || {
        standby.statistics().protocol.packets_unknown_session > 0
    });
    assert_eq!(standby.statistics().protocol.sessions_begun, 0);
    control.hand_over(&of_client, &of_standby);
    let again = client(&of_client).connect_blocking(standby.local_address());
    assert_echo(&again.unwrap(), "hello");
}

/// Packets that are right but for what only the two ends know, made after the genuine one of this
/// number: a RESET of its session, a control packet of each kind in turn, and itself with another
/// number at each place in turn. Few for each, since the sockets' buffers are small.
fn forgeries(number: usize, way: Way, datagram: &[u8]) -> Vec<(Way, Vec<u8>)> {
    let Some(index) = datagram.get(12..20) else {
        return Vec::new();
    };
    let packet = |kind: u8, rest: &[u8]| {
        let length = u8::try_from(20 + rest.len()).unwrap();
        let prefix = [1, kind, datagram[2], 0, 0x50, 0, 0, length, 0, 0, 0, 0];
        [&prefix, index, rest].concat()
    };
    // A RESET names the index that the packet named, and goes back.
    let mut forged = vec![(way.back(), packet(0x13, &[0xA5; 16]))];
    let kind = 0x20 + (number % 0x18) as u8;
    forged.push((way, packet(kind, &[0x5A; 24])));
    let mut other = datagram.to_vec();
    if let Some(byte) = other.get_mut(20 + number % 16) {
        *byte ^= 0x40;
        forged.push((way, other));
    }
    forged
}

/// Hazard: forged resets and numbers. Neither is a command in SMT: all that is not authentic is
/// dropped, and the call ends as it would have.
#[test]
fn forged_resets_and_numbers_end_no_session() {
    let (of_client, of_server) = adopters();
    let (server, control) = (server(&of_server), Control::new());
    control.hand_over(&of_client, &of_server);
    let forged = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&forged);
    let network = Forwarder::new(server.local_address(), move |way, datagram| {
        let mut outcome = vec![(way, datagram.to_vec())];
        let number = count.load(Ordering::Relaxed) / 3;
        outcome.extend(forgeries(number, way, datagram));
        count.fetch_add(outcome.len() - 1, Ordering::Relaxed);
        outcome
    });
    let client = client(&of_client).connect_blocking(network.address());
    let client = client.unwrap();
    for number in 0..200 {
        assert_echo(&client, payload(number, 1 + number as usize * 30));
    }
    assert!(forged.load(Ordering::Relaxed) > 500);
    for seen in [server.statistics().protocol, client.statistics().protocol] {
        assert!(seen.controls_forged > 20 && seen.packets_contradicting > 0, "{seen:?}");
    }
    assert_eq!(client.statistics().protocol.sessions_begun, 1);
    assert_eq!(server.statistics().protocol.sessions_begun, 1);
}
