// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handshakes by ticket over a network that changes, cuts and repeats flights (SPEC §6.7, §6.8).
//!
//! 1. A server gets copies of one flight 1, each whole or changed, in fragments of any size and
//!    order, from an address of its own. A changed flight is never answered by a server hello and
//!    delivers nothing; the early data of all copies is delivered once at most.
//! 2. A client that gets a changed flight 2 has no session. One that gets it whole has the server's
//!    secrets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arbitrary::Arbitrary;
use smt_carrier::{Arrival, Path};
use smt_handshake::{
    ClientAuth, ClientTls, Group, HmacTokens, Identity, TicketClient, TicketIssuer, TicketKeys,
    TicketPlan, TicketServer, TicketStore, TicketVerifier, Trust,
};
use smt_pki::EphemeralCa;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Finished, Input, KeyExchange, KeyExchangeProvider,
};
use smt_proto::{Config, Endpoint, Event, Time, TransmitBuffer, WallTime};
use smt_wire::{
    FlightBody, Handshake, Kind, MemberHeader, MessageId, Packet, PartMarks, SessionIndex, VERSION,
    parse,
};

/// The kind of the handshake.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Setting {
    has_forward_secrecy: bool,
    has_certificate: bool,
    is_x25519: bool,
    /// Bytes of the early request; 0 for none.
    early: u8,
}

/// Copies of flight 1 at a server.
#[derive(Arbitrary, Debug)]
pub struct FirstCase {
    setting: Setting,
    copies: Vec<Delivery>,
}

/// A copy of a flight on its way.
#[derive(Arbitrary, Debug)]
struct Delivery {
    changes: Vec<Change>,
    /// Where fragments end.
    cuts: Vec<u16>,
    /// Fragments arrive by these turns.
    order: Vec<u8>,
    /// The first fragments come twice.
    twice: u8,
}

/// A change to a flight's body.
#[derive(Arbitrary, Debug)]
enum Change {
    Add { at: u16, value: u8 },
    Cut { bytes: u8 },
    Grow { tail: Vec<u8> },
    Swap { one: u16, other: u16, length: u8 },
}

/// Flight 2 at a client.
#[derive(Arbitrary, Debug)]
pub struct SecondCase {
    setting: Setting,
    changes: Vec<Change>,
}

impl Change {
    fn apply(&self, body: &mut Vec<u8>) {
        let place = |at: u16| usize::from(at) % body.len().max(1);
        match self {
            Self::Add { at, value } => {
                let at = place(*at);
                if let Some(byte) = body.get_mut(at) {
                    *byte = byte.wrapping_add(*value);
                }
            }
            Self::Cut { bytes } => body.truncate(body.len().saturating_sub((*bytes).into())),
            Self::Grow { tail } => body.extend(tail.iter().take(2_000)),
            Self::Swap { one, other, length } => {
                let (one, other) = (place(*one), place(*other));
                for at in 0..usize::from(*length) {
                    if one.max(other) + at < body.len() {
                        body.swap(one + at, other + at);
                    }
                }
            }
        }
    }
}

/// Gives a server the copies.
pub fn check_first(case: &FirstCase) {
    let parties = Parties::new(case.setting);
    let (_, whole) = parties.begin(case.setting);
    let mut server = Server::new(&parties);
    let (mut delivered, mut answered, mut copies) = (0, 0, 0);
    for (port, copy) in (40_000..).zip(case.copies.iter().take(COPIES_MAX)) {
        let mut body = whole.clone();
        copy.changes.iter().for_each(|change| change.apply(&mut body));
        let is_whole = body == whole;
        let got = server.take(port, &copy.fragments(&body), body.len());
        if is_whole {
            copies += 1;
            answered += got.hellos.min(1);
        } else {
            assert_eq!(got.hellos, 0, "a changed flight 1 is answered");
            assert_eq!(got.requests, 0, "a changed flight 1 delivers");
        }
        delivered += got.requests;
        assert!(delivered <= 1, "early data is delivered twice");
    }
    assert_eq!(answered, copies, "a whole flight 1 is answered");
    let is_early = case.setting.early > 0 && copies > 0;
    assert_eq!(delivered, usize::from(is_early));
}

/// Gives a client the flight.
pub fn check_second(case: &SecondCase) {
    let parties = Parties::new(case.setting);
    let (mut client, first) = parties.begin(case.setting);
    let first = FlightBody::parse(&first).expect("it was just made");
    let attempt = parties.server.server(first.params, None);
    let mut attempt = attempt.expect("honest parameters");
    let own_params = crate::key_exchange::params(2, &attempt);
    let begin = Input::Begin { own_params: &own_params, early: &[] };
    assert!(attempt.exchange.step(begin).is_ok());
    let flight = Input::Flight { number: 1, params: first.params, bytes: first.key_exchange };
    let Ok(step) = attempt.exchange.step(flight) else { panic!("an honest flight is refused") };
    let answer = step.send.expect("a server answers");
    let whole = body(&own_params, &answer);
    let mut changed = whole.clone();
    case.changes.iter().for_each(|change| change.apply(&mut changed));
    let Ok(flight) = FlightBody::parse(&changed) else {
        return;
    };
    let input = Input::Flight { number: 2, params: flight.params, bytes: flight.key_exchange };
    let finished: Option<Finished> = client.step(input).ok().and_then(|step| step.finished);
    assert_eq!(finished.is_some(), changed == whole, "a changed flight 2");
    if let Some(finished) = finished {
        let server = step.finished.expect("a server has the secrets at once");
        assert!(finished.secrets == server.secrets);
        assert_eq!(finished.early_taken, case.setting.early > 0);
    }
}

impl Delivery {
    /// Offset and bytes of each fragment, as they arrive: all of the body.
    fn fragments<'a>(&self, body: &'a [u8]) -> Vec<(usize, &'a [u8])> {
        let mut ends: Vec<usize> =
            self.cuts.iter().take(20).map(|cut| usize::from(*cut) % (body.len() + 1)).collect();
        // Fragments fit in datagrams.
        ends.extend((0..body.len()).step_by(1_000));
        ends.push(body.len());
        ends.sort_unstable();
        ends.dedup();
        let starts = ends.iter().copied();
        let mut fragments: Vec<_> = starts
            .zip(ends.iter().skip(1))
            .map(|(start, end)| (start, &body[start..*end]))
            .collect();
        for (at, turn) in self.order.iter().take(fragments.len()).enumerate() {
            let other = usize::from(*turn) % fragments.len();
            fragments.swap(at, other);
        }
        let twice = usize::from(self.twice) % (fragments.len() + 1);
        let again = fragments[..twice].to_vec();
        fragments.extend(again);
        fragments
    }
}

/// A server's endpoint.
struct Server(Endpoint);

/// The answers to a copy.
struct Got {
    hellos: usize,
    requests: usize,
}

impl Server {
    fn new(parties: &Parties) -> Self {
        let mut config = Config::default();
        config.accept = true;
        let tokens = Arc::new(HmacTokens::new([1; 32]));
        Self(Endpoint::new(config, Arc::clone(&parties.server) as _, tokens))
    }

    fn take(&mut self, port: u16, fragments: &[(usize, &[u8])], length: usize) -> Got {
        let remote = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let now = Time::default() + Duration::from_secs(60);
        let mut got = Got { hellos: 0, requests: 0 };
        let mut buffer = TransmitBuffer::default();
        for (offset, fragment) in fragments {
            let packet = Handshake {
                destination: SessionIndex(0),
                source: SessionIndex(CLIENT_INDEX),
                flight: 1,
                cookie: &[],
                flight_length: u32::try_from(length).expect("a flight is short"),
                offset: u32::try_from(*offset).expect("a flight is short"),
                fragment,
            };
            let mut datagram = vec![0; 1_200];
            packet.emit(VERSION, datagram.len(), &mut datagram);
            let arrival = Arrival::datagram(Path::to(remote), &datagram);
            self.0.handle_arrival(now, arrival);
            while let Some(transmit) = self.0.poll_transmit(now, &mut buffer) {
                for datagram in transmit.segments(&buffer) {
                    got.hellos += usize::from(has_hello(datagram));
                }
            }
            while let Some(event) = self.0.poll_event() {
                got.requests += usize::from(matches!(event, Event::Request { .. }));
            }
        }
        got
    }
}

/// Whether a datagram begins a flight 2 that is a server hello, and no refusal.
fn has_hello(datagram: &[u8]) -> bool {
    let Ok((Packet::Handshake(packet), _)) = parse(VERSION, datagram) else {
        return false;
    };
    let body = FlightBody::parse(packet.fragment);
    let first = body.ok().and_then(|body| body.key_exchange.first().copied());
    packet.flight == 2 && packet.offset == 0 && matches!(first, Some(0 | 4))
}

/// A client with a fresh ticket, and the server that answers to it.
struct Parties {
    client: TicketClient,
    server: Arc<TicketServer>,
}

impl Parties {
    fn new(setting: Setting) -> Self {
        let credentials = credentials();
        let now = now();
        let plan = TicketPlan {
            group: match setting.is_x25519 {
                true => Group::X25519,
                false => Group::P256,
            },
            takes_early_data: true,
            ..TicketPlan::new([NAME])
        };
        let issued = TicketIssuer::new(&credentials.server, plan)
            .and_then(|issuer| issuer.issue(now))
            .expect("the system has randomness");
        let (keys, store) = (TicketKeys::new(), TicketStore::new());
        let verified = TicketVerifier::new(credentials.trust.clone())
            .expect("it has roots")
            .verify(issued.ticket.as_bytes(), &issued.chain, NAME, now);
        store.insert(verified.expect("it was just issued"));
        keys.add(issued.key, now);
        let tls = ClientTls::new(credentials.trust.clone()).build().expect("it has roots");
        let mut client = TicketClient::new(Arc::new(tls), store);
        if !setting.has_forward_secrecy {
            client = client.without_forward_secrecy();
        }
        if setting.has_certificate {
            client = client.with_identity(&credentials.client);
        }
        let auth = ClientAuth::Optional(credentials.trust.clone());
        let server = TicketServer::new(keys, auth).expect("it has roots");
        Self { client, server: Arc::new(server) }
    }

    /// A client's attempt, and the body of its flight 1.
    fn begin(&self, setting: Setting) -> (Box<dyn KeyExchange>, Vec<u8>) {
        let attempt = self.client.client(ClientRequest::new(NAME));
        let mut attempt: Attempt = attempt.expect("it is a client");
        assert_eq!(attempt.kind, smt_wire::KeyExchange::Ticket);
        let params = crate::key_exchange::params(CLIENT_INDEX, &attempt);
        let begin = Input::Begin { own_params: &params, early: &early_data(setting.early) };
        let Ok(step) = attempt.exchange.step(begin) else { panic!("a fresh attempt is refused") };
        let bytes = step.send.expect("flight 1");
        (attempt.exchange, body(&params, &bytes))
    }
}

fn body(params: &[u8], key_exchange: &[u8]) -> Vec<u8> {
    let length = u16::try_from(params.len()).expect("parameters are short");
    [&length.to_be_bytes(), params, key_exchange].concat()
}

/// Early data of one request of so many bytes.
fn early_data(length: u8) -> Vec<u8> {
    if length == 0 {
        return Vec::new();
    }
    let header = MemberHeader {
        id: MessageId(0),
        kind: Kind::Request,
        length: length.into(),
        deadline_us: 10_000_000,
        reply_unscheduled: 60_000,
        failure: None,
        has_metadata: false,
        parts: PartMarks::default(),
    };
    let mut out = [0; MemberHeader::LEN];
    header.emit(&mut out);
    [&out[..], &vec![7; length.into()]].concat()
}

/// Certificates of both sides; made once.
struct Credentials {
    trust: Trust,
    server: Identity,
    client: Identity,
}

fn credentials() -> &'static Credentials {
    static CREDENTIALS: OnceLock<Credentials> = OnceLock::new();
    CREDENTIALS.get_or_init(|| {
        let authority = EphemeralCa::new().expect("the system has randomness");
        Credentials {
            trust: authority.trust().expect("it was just made"),
            server: authority.server(&[NAME]).expect("it has a name"),
            client: authority.client("client").expect("it has a name"),
        }
    })
}

fn now() -> WallTime {
    let since = std::time::UNIX_EPOCH.elapsed().expect("it is after 1970");
    WallTime::from_secs(since.as_secs())
}

const NAME: &str = "a.example";
const CLIENT_INDEX: u64 = 0x0000_0007_0000_0001;
/// Fewer than a server keeps without cookies.
const COPIES_MAX: usize = 8;
