// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lookups at a name server that says whatever a test wants.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, Record};
use smt_dns::{
    KnownChains, LookupError, ResolverPlan, Server, TicketLookup, TicketRecord, TicketResolver,
    TicketWatch, wall_now,
};
use smt_handshake::{IssuedTicket, TicketIssuer, TicketPlan, TicketStore, TicketVerifier};
use smt_pki::EphemeralCa;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

const NAME: &str = "db7.example";

/// Records for each question.
type Answers = Arc<dyn Fn(&Name) -> Vec<Record> + Send + Sync>;

/// A name server by UDP, whose answers are all truncated, and by TCP.
async fn name_server(answers: impl Fn(&Name) -> Vec<Record> + Send + Sync + 'static) -> SocketAddr {
    let answers: Answers = Arc::new(answers);
    let (udp, tcp) = loop {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        // Another process may have this port by TCP.
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
            break (udp, tcp);
        }
    };
    let address = udp.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 4_096];
        loop {
            let (length, client) = udp.recv_from(&mut buffer).await.unwrap();
            let mut answer = answer(&buffer[..length], |_| Vec::new());
            answer.metadata.truncation = true;
            udp.send_to(&answer.to_vec().unwrap(), client).await.unwrap();
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = tcp.accept().await.unwrap();
            let answers = Arc::clone(&answers);
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut question = vec![0; length.into()];
                    stream.read_exact(&mut question).await.unwrap();
                    let answer = answer(&question, &*answers).to_vec().unwrap();
                    let length = u16::try_from(answer.len()).unwrap();
                    stream.write_u16(length).await.unwrap();
                    stream.write_all(&answer).await.unwrap();
                }
            });
        }
    });
    address
}

fn answer(question: &[u8], answers: impl Fn(&Name) -> Vec<Record>) -> Message {
    let question = Message::from_vec(question).unwrap();
    let mut answer = Message::response(question.id, OpCode::Query);
    answer.metadata.authoritative = true;
    answer.metadata.recursion_available = true;
    answer.add_query(question.queries[0].clone());
    answer.add_answers(answers(question.queries[0].name()));
    answer
}

struct Setup {
    authority: EphemeralCa,
    record: TicketRecord,
    chain: Vec<Vec<u8>>,
}

impl Setup {
    fn new() -> Self {
        let authority = EphemeralCa::new().unwrap();
        let identity = authority.server(&[NAME]).unwrap();
        let issuer = TicketIssuer::new(&identity, TicketPlan::new([NAME])).unwrap();
        let IssuedTicket { ticket, chain, .. } = issuer.issue(wall_now()).unwrap();
        Self { authority, record: TicketRecord::new(ticket, &chain).unwrap(), chain }
    }

    /// The record, with any TTL.
    fn svcb(&self, ttl: u32) -> impl Fn(&Name) -> Vec<Record> + Send + Sync + 'static {
        let data = RData::SVCB(self.record.to_svcb());
        move |name| vec![Record::from_rdata(name.clone(), ttl, data.clone())]
    }

    fn lookup(&self, resolver: SocketAddr, time: Duration) -> TicketLookup {
        let plan = ResolverPlan { resolvers: vec![resolver], time, ..ResolverPlan::default() };
        TicketLookup {
            resolver: TicketResolver::new(&plan).unwrap(),
            verifier: TicketVerifier::new(self.authority.trust().unwrap()).unwrap(),
            store: TicketStore::new(),
            chains: KnownChains::new(),
        }
    }
}

fn server() -> Server {
    Server::new(NAME, 17_379).unwrap()
}

/// No test waits for it.
const LONG: Duration = Duration::from_secs(60);

// SMT [6.9-5]
#[tokio::test]
async fn a_ticket_is_kept_for_half_of_its_life_at_most_whatever_ttl_it_came_with() {
    let setup = Setup::new();
    let lookup = setup.lookup(name_server(setup.svcb(1_000_000)).await, LONG);
    let found = lookup.look_up(&server(), wall_now).await.unwrap();
    assert!(found.kept_for <= Duration::from_secs(1_800), "{found:?}");
    assert_eq!(found.hash, setup.record.ticket().hash());
    assert!(lookup.store.get(NAME, wall_now()).is_some());
}

#[tokio::test]
async fn a_special_name_is_refused_by_name_and_no_resolver_is_asked() {
    let setup = Setup::new();
    let lookup = setup.lookup(name_server(|_| panic!("asked")).await, LONG);
    let name = "db7.svc.cluster.local";
    let in_dns = setup.lookup(name_server(|_| Vec::new()).await, LONG);
    let error = in_dns.look_up(&Server::new(name, 17_379).unwrap(), wall_now).await;
    assert_eq!(error.unwrap_err(), LookupError::Absent, "clusters have such names in DNS");
    for name in ["localhost", "db7.localhost", "a.invalid", "a.onion"] {
        let error = lookup.look_up(&Server::new(name, 17_379).unwrap(), wall_now).await;
        assert_eq!(error.unwrap_err(), LookupError::SpecialName(name.to_owned()));
    }
}

#[tokio::test]
async fn a_watch_fills_the_store() {
    let setup = Setup::new();
    let lookup = setup.lookup(name_server(setup.svcb(900)).await, LONG);
    let store = lookup.store.clone();
    let watch = TicketWatch::spawn(lookup, []);
    watch.add(server());
    while store.is_empty() {
        tokio::task::yield_now().await;
    }
}

// SMT [6.9-3]
#[tokio::test]
async fn a_record_without_a_chain_needs_one_that_is_known() {
    let setup = Setup::new();
    let bare = TicketRecord::new(setup.record.ticket().clone(), &[]).unwrap();
    let data = RData::SVCB(bare.to_svcb());
    let answers = move |name: &Name| vec![Record::from_rdata(name.clone(), 900, data.clone())];
    let lookup = setup.lookup(name_server(answers).await, LONG);
    let found = lookup.look_up(&server(), wall_now).await;
    assert_eq!(found.unwrap_err(), LookupError::NoChain);
    lookup.chains.insert(&setup.chain);
    lookup.look_up(&server(), wall_now).await.unwrap();
}

// SMT [6.9-9]
#[tokio::test]
async fn an_answer_that_never_comes_ends_the_lookup() {
    let setup = Setup::new();
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let time = Duration::from_millis(20);
    let lookup = setup.lookup(silent.local_addr().unwrap(), time);
    let found = lookup.look_up(&server(), wall_now).await;
    assert_eq!(found.unwrap_err(), LookupError::NoAnswer(time));
}

// SMT [6.9-7]
#[tokio::test]
async fn aliases_that_lead_nowhere_end_the_lookup() {
    let setup = Setup::new();
    let to = |target: String| RData::CNAME(CNAME(Name::from_ascii(target).unwrap()));
    let turn = move |name: &Name| vec![Record::from_rdata(name.clone(), 60, to(name.to_string()))];
    // Each name is longer than the one before: no memory of names ends that.
    let grow =
        move |name: &Name| vec![Record::from_rdata(name.clone(), 60, to(format!("a.{name}")))];
    let one = setup.lookup(name_server(turn).await, LONG);
    let two = setup.lookup(name_server(grow).await, LONG);
    for lookup in [one, two] {
        lookup.look_up(&server(), wall_now).await.unwrap_err();
        assert!(lookup.store.is_empty());
    }
}

// SMT [6.9-8]
#[tokio::test]
async fn a_record_that_cannot_be_verified_does_not_hide_another() {
    let setup = Setup::new();
    let other = Setup::new();
    let records = [other.svcb(900)(&Name::root()), setup.svcb(900)(&Name::root())].concat();
    let answers = move |name: &Name| {
        let of = |record: &Record| Record::from_rdata(name.clone(), 900, record.data.clone());
        records.iter().map(of).collect()
    };
    let lookup = setup.lookup(name_server(answers).await, LONG);
    let found = lookup.look_up(&server(), wall_now).await.unwrap();
    assert_eq!(found.hash, setup.record.ticket().hash());
}

#[tokio::test]
async fn a_name_without_a_record_is_told_as_that() {
    let setup = Setup::new();
    let lookup = setup.lookup(name_server(|_| Vec::new()).await, LONG);
    let found = lookup.look_up(&server(), wall_now).await;
    assert_eq!(found.unwrap_err(), LookupError::Absent);
}
