// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One handshake of the vectors, played by the client and the server of this crate.

use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret};
use serde_json::{Value, json};
use smt_proto::WallTime;
use smt_proto::key_exchange::{Failed, Input, KeyExchange as _, Step};
use smt_record::Suite;
use smt_wire::{KeyExchange, Kind, MemberHeader, MessageId, Params, PartMarks, SessionIndex};

use super::inputs::{Answer, Given, answer, bytes, hex, identity, key_pair, trust};
use super::played::{Played, ticket_json};
use crate::ClientAuth;
use crate::ticket::exchange::client::{ClientExchange, ClientSide, Drawn};
use crate::ticket::exchange::server::{ServerExchange, ServerSide};
use crate::ticket::format::{Requirements, Ticket, TicketContent, chain_hash};
use crate::ticket::hello::{ClientFlight, ServerHello, hash_of_hello, hash_of_hellos};
use crate::ticket::keys::{TicketKey, TicketKeys};
use crate::ticket::schedule::EarlySecret;
use crate::ticket::share::StaticKey;
use crate::ticket::signature::{Context, sign};
use crate::ticket::store::TicketStore;
use crate::ticket::verify::{TicketVerifier, VerifiedTicket};
use crate::tls::algorithms::{Algorithms, Group};
use crate::tls::verifiers::client_verifier;

/// The choices by which the handshakes differ.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) group: Group,
    pub(super) suite: Suite,
    pub(super) has_forward_secrecy: bool,
    pub(super) has_certificate: bool,
    /// Requests in flight 1.
    pub(super) early_requests: u8,
}

/// When all tickets begin, and all handshakes are.
const NOW: WallTime = WallTime::from_secs(1_800_000_000);

const SERVER: &str = "a.example";

impl Case {
    /// The ticket, its key's private parts, and its key.
    pub(super) fn ticket(&self) -> (Ticket, Value, StaticKey) {
        let (private, key) = key_pair(self.group, "ticket");
        let identity = identity("server");
        let chain: Vec<_> = identity.certificates().collect();
        let content = TicketContent {
            group: self.group,
            suites: vec![self.suite, Suite::ChaCha20Poly1305],
            id: bytes(self.name),
            not_before: NOW.as_secs(),
            not_after: NOW.as_secs() + 3_600,
            requires: Requirements {
                forward_secrecy: self.has_forward_secrecy,
                client_certificate: self.has_certificate,
            },
            takes_early_data: self.early_requests > 0,
            share: key.share().to_vec(),
            names: vec![SERVER.to_owned(), "192.0.2.1".to_owned()],
            chain_hash: chain_hash(&chain),
        };
        let signed = content.bytes().unwrap();
        let signature = sign(&identity.certified(), Context::Ticket, &signed).unwrap();
        (Ticket::signed(content, signature).unwrap(), private, key)
    }

    /// Plays the client's part, and the server's from the keys that it has.
    fn begin(&self) -> Begun {
        let (ticket, ticket_private, ticket_key) = self.ticket();
        let verified = verified(&ticket);
        let shared = answer(self.group, "client", ("ticket", &ticket_key));
        let (ephemeral_private, ephemeral) = key_pair(self.group, "client ephemeral");
        let to = ("client ephemeral", &ephemeral);
        let answered = self.has_forward_secrecy.then(|| answer(self.group, "server ephemeral", to));
        let mut client = self.client(verified);
        let drawn = Drawn {
            random: bytes(&format!("{} client random", self.name)),
            agreed: CompletedKeyExchange {
                group: self.group.kx_group().name(),
                pub_key: shared.share.clone(),
                secret: SharedSecret::from(&shared.secret[..]),
            },
            ephemeral: self.has_forward_secrecy.then(|| given(self.group, ephemeral)),
        };
        let client_params = self.params(0x0000_0001_0000_0001);
        let flight_1 = client.begin_with(drawn, &client_params, &self.early_data());
        let played = self.played(client_params, flight_1.unwrap(), &shared, answered.as_ref());
        played.check_client(client);
        Begun { ticket, ticket_private, ticket_key, shared, ephemeral_private, answered, played }
    }

    /// The answer of a server to early data that a holder of the ticket's key has added.
    pub(super) fn answer_to_added_early_data(&self) -> Result<Step, Failed> {
        let begun = self.begin();
        let flight = begun.played.flight_with_more_early_data(b"added");
        let side = server_side(&begun.ticket, begun.ticket_key);
        answer_to(&side, &begun.played, &flight)
    }

    /// Plays it, and says all of it.
    pub(super) fn play(&self) -> Value {
        let Begun {
            ticket,
            ticket_private,
            ticket_key,
            shared,
            ephemeral_private,
            answered,
            played,
        } = self.begin();
        self.check_server(&played, &server_side(&ticket, ticket_key));
        let mut secrets = played.secrets();
        secrets.insert("ticket_secret".into(), hex(&shared.secret).into());
        let ephemeral_secret = answered.as_ref().map(|answer| hex(&answer.secret));
        secrets.insert("ephemeral_secret".into(), json!(ephemeral_secret));
        json!({
            "name": self.name,
            "suite": format!("{:04x}", self.suite.code()),
            "ticket": ticket_json(&ticket),
            "private": {
                "ticket": ticket_private,
                "client": shared.private,
                "client_ephemeral": self.has_forward_secrecy.then_some(ephemeral_private),
                "server_ephemeral": answered.map(|answer| answer.private),
            },
            "client": played.client_json(),
            "server": played.server_json(),
            "secrets": secrets,
        })
    }

    fn client(&self, ticket: VerifiedTicket) -> ClientExchange {
        let identity = self.has_certificate.then(|| identity("client").certified());
        ClientExchange::new(ClientSide {
            ticket: ticket.into(),
            suite: self.suite,
            forward_secrecy: self.has_forward_secrecy,
            identity,
            store: TicketStore::new(),
        })
    }

    fn played(
        &self,
        client_params: Vec<u8>,
        flight_1: Vec<u8>,
        shared: &Answer,
        ephemeral: Option<&Answer>,
    ) -> Played {
        let server_params = self.params(0x0000_0002_0000_0001);
        let early = EarlySecret::new(self.suite, &shared.secret);
        let flight = ClientFlight::parse(&flight_1).unwrap();
        let hello = hash_of_hello(&client_params, flight.hello_bytes);
        let plaintext = early.open(&hello, flight.sealed).unwrap().to_vec();
        let mut server_hello = ServerHello {
            takes_early: self.early_requests > 0,
            random: bytes(&format!("{} server random", self.name)),
            ephemeral: ephemeral.map_or_else(Vec::new, |answer| answer.share.clone()),
            finished: Vec::new(),
        };
        let bytes = server_hello.hello_bytes().unwrap();
        let hellos = hash_of_hellos(&hello, &flight, &server_params, &bytes);
        let handshake = early.handshake(ephemeral.map(|answer| &answer.secret[..]));
        server_hello.finished = handshake.finished(&hellos);
        Played {
            client_params,
            server_params,
            hello,
            early,
            plaintext,
            server_hello,
            hellos,
            handshake,
            flight_1,
        }
    }

    /// This crate's server takes flight 1, and delivers its early data once.
    fn check_server(&self, played: &Played, side: &ServerSide) {
        for is_first in [true, false] {
            let step = answer_to(side, played, &played.flight_1).ok().unwrap();
            let early = self.early_data();
            let delivered = (is_first && self.early_requests > 0).then_some(early);
            assert_eq!(step.early, delivered);
            let shown = step.finished.unwrap().peer.certificates.len();
            assert_eq!(shown, usize::from(self.has_certificate));
        }
    }

    fn early_data(&self) -> Vec<u8> {
        let request = |number: u8| {
            let body = vec![number + 1; 20 * usize::from(number + 1)];
            let header = MemberHeader {
                id: MessageId(0),
                kind: Kind::Request,
                length: u16::try_from(body.len()).unwrap(),
                deadline_us: 1_000_000,
                reply_unscheduled: 60_000,
                failure: None,
                has_metadata: false,
                parts: PartMarks::default(),
            };
            let mut out = [0; MemberHeader::LEN];
            header.emit(&mut out);
            [&out[..], &body].concat()
        };
        (0..self.early_requests).flat_map(request).collect()
    }

    fn params(&self, index: u64) -> Vec<u8> {
        let suites = [self.suite.code()];
        let params = Params {
            versions: &[1],
            key_exchange: KeyExchange::Ticket,
            index: SessionIndex(index),
            suites: suites.as_slice().into(),
            index_bits: 16,
            record_size: 16_384,
            first_record_size: 1_142,
            window: 4_096,
            message_limit: 64 << 20,
            unscheduled: 60_000,
            datagram_limit: 65_507,
            stripes: 0,
            key_name: None,
            random: None,
            takes_bundles: true,
            part_window: None,
            psp_versions: None,
        };
        let mut out = vec![0; Params::LEN_MAX];
        let length = params.emit(&mut out);
        out.truncate(length);
        out
    }
}

/// A handshake whose flight 1 has left.
struct Begun {
    ticket: Ticket,
    ticket_private: Value,
    ticket_key: StaticKey,
    shared: Answer,
    ephemeral_private: Value,
    answered: Option<Answer>,
    played: Played,
}

fn server_side(ticket: &Ticket, key: StaticKey) -> ServerSide {
    let provider = Algorithms::default().provider();
    let keys = TicketKeys::new();
    keys.add(TicketKey::new(ticket.clone(), key), NOW);
    ServerSide {
        keys,
        clients: client_verifier(ClientAuth::Optional(trust()), &provider.into()).unwrap(),
        algorithms: Algorithms::default().provider().signature_verification_algorithms,
        judges_dates: false,
    }
}

fn answer_to(side: &ServerSide, played: &Played, flight: &[u8]) -> Result<Step, Failed> {
    let mut server = ServerExchange::new(side.clone(), &played.client_params, NOW);
    server.step(Input::Begin { own_params: &played.server_params, early: &[] })?;
    server.step(Input::Flight { number: 1, params: &played.client_params, bytes: flight })
}

fn given(group: Group, key: StaticKey) -> Box<dyn ActiveKeyExchange> {
    let group = group.kx_group().name();
    Box::new(Given { group, key })
}

fn verified(ticket: &Ticket) -> VerifiedTicket {
    let chain: Vec<_> = identity("server").certificates().map(<[u8]>::to_vec).collect();
    let verifier = TicketVerifier::new(trust()).unwrap();
    verifier.verify(ticket.as_bytes(), &chain, SERVER, NOW).unwrap()
}
