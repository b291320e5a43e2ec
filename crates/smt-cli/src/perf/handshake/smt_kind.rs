// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handshakes of SMT: TLS 1.3, full and resumed, and tickets with and without forward secrecy and
//! early data.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use smt::polled::{EarlyCall, Endpoint, Event};
use smt::{
    ClientAuth, Group, Identity, IssuedTicket, KeyPairPool, OutgoingMessage, TicketIssuer,
    TicketKeys, TicketPlan, TicketStore, TicketVerifier, Trust,
};
use smt_io::{Epoll, Token};

use super::{Arguments, BODY, Kind, LIMIT, NAME};
use crate::failure::Failure;
use crate::moment::wall_time;
use crate::scratch::EphemeralFiles;

/// A handshake of SMT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Choice {
    name: &'static str,
    by_ticket: bool,
    forward_secrecy: bool,
    early_data: bool,
    resumes: bool,
    /// Key pairs are there before the session begins, on both sides.
    key_pairs_ahead: bool,
    /// The time by that of TLS in one round trip, as the paper has it.
    paper: &'static str,
}

/// The kinds, TLS in one round trip first.
const CHOICES: [Choice; 8] = [
    Choice {
        name: "SMT, TLS 1.3 (1-RTT)",
        by_ticket: false,
        forward_secrecy: true,
        early_data: false,
        resumes: false,
        key_pairs_ahead: false,
        paper: "Init-1RTT: 1",
    },
    Choice {
        name: "SMT, TLS 1.3, resumed with fresh ECDHE",
        by_ticket: false,
        forward_secrecy: true,
        early_data: false,
        resumes: true,
        key_pairs_ahead: false,
        paper: "",
    },
    Choice {
        name: "SMT, ticket, forward secrecy",
        by_ticket: true,
        forward_secrecy: true,
        early_data: false,
        resumes: false,
        key_pairs_ahead: false,
        paper: "",
    },
    Choice {
        name: "SMT, ticket",
        by_ticket: true,
        forward_secrecy: false,
        early_data: false,
        resumes: false,
        key_pairs_ahead: false,
        paper: "",
    },
    Choice {
        name: "SMT, ticket, early data, forward secrecy",
        by_ticket: true,
        forward_secrecy: true,
        early_data: true,
        resumes: false,
        key_pairs_ahead: false,
        paper: "",
    },
    Choice {
        name: "SMT, ticket, early data",
        by_ticket: true,
        forward_secrecy: false,
        early_data: true,
        resumes: false,
        key_pairs_ahead: false,
        paper: "",
    },
    Choice {
        name: "the same with forward secrecy, keys ahead",
        by_ticket: true,
        forward_secrecy: true,
        early_data: true,
        resumes: false,
        key_pairs_ahead: true,
        paper: "Init-FS: 0.56-0.63",
    },
    Choice {
        name: "the same without, keys ahead",
        by_ticket: true,
        forward_secrecy: false,
        early_data: true,
        resumes: false,
        key_pairs_ahead: true,
        paper: "Init: 0.45-0.48",
    },
];

/// All kinds, with a server of their own.
pub(super) fn all(
    files: &EphemeralFiles,
    arguments: &Arguments,
) -> Result<Vec<Box<dyn Kind>>, Failure> {
    let identity = Identity::from_pem_files(&files.server.cert, &files.server.key)?;
    let trust = Trust::roots_from_pem_files(&[&files.authority])?;
    let keys = TicketKeys::new();
    let server = Arc::new(Server::start(&identity, &trust, keys.clone(), arguments)?);
    let with_early = ticket(&identity, &trust, &keys, arguments, true)?;
    let without = ticket(&identity, &trust, &keys, arguments, false)?;
    let kind = |choice: Choice| {
        let mut builder = smt::client(trust.clone())
            .suites([arguments.algorithms.suite()])
            .groups([arguments.algorithms.group()])
            .forward_secrecy(choice.forward_secrecy);
        if !choice.resumes {
            builder = builder.sessions_memory(0);
        }
        if choice.by_ticket {
            let store = if choice.early_data { &with_early } else { &without };
            builder = builder.tickets(store.clone());
        }
        if arguments.mutual {
            let client = Identity::from_pem_files(&files.client.cert, &files.client.key)?;
            builder = builder.identity(client);
        }
        let endpoint = builder.open_polled("127.0.0.1:0")?;
        let epoll = Epoll::new()?;
        epoll.add(endpoint.as_fd(), Token(0))?;
        let client = Client {
            choice,
            endpoint,
            epoll,
            server: Arc::clone(&server),
            group: arguments.algorithms.group(),
            key_pairs: None,
        };
        Ok::<_, Failure>(Box::new(client) as Box<dyn Kind>)
    };
    CHOICES.into_iter().map(kind).collect()
}

/// A store with a ticket of the server, which answers to it from now on.
fn ticket(
    identity: &Identity,
    trust: &Trust,
    keys: &TicketKeys,
    arguments: &Arguments,
    takes_early_data: bool,
) -> Result<TicketStore, Failure> {
    let now = wall_time();
    let plan = TicketPlan {
        group: arguments.algorithms.group(),
        suites: vec![arguments.algorithms.suite()],
        takes_early_data,
        ..TicketPlan::new([NAME])
    };
    let IssuedTicket { ticket, chain, key } = TicketIssuer::new(identity, plan)?.issue(now)?;
    keys.add(key, now);
    let verifier = TicketVerifier::new(trust.clone())?;
    let store = TicketStore::new();
    store.insert(verifier.verify(ticket.as_bytes(), &chain, NAME, now)?);
    Ok(store)
}

/// A client of one kind.
struct Client {
    choice: Choice,
    endpoint: Endpoint,
    epoll: Epoll,
    server: Arc<Server>,
    group: Group,
    key_pairs: Option<KeyPairPool>,
}

impl Kind for Client {
    fn name(&self) -> &'static str {
        self.choice.name
    }

    fn paper(&self) -> &'static str {
        self.choice.paper
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        if self.choice.key_pairs_ahead {
            let pool = KeyPairPool::start([self.group], KEY_PAIRS)?;
            while pool.ready() < KEY_PAIRS {
                std::thread::yield_now();
            }
            self.key_pairs = Some(pool);
        }
        Ok(())
    }

    fn clean_up(&mut self) {
        self.key_pairs = None;
    }

    fn first_reply(&mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        let call = EarlyCall { message: OutgoingMessage::new(BODY), deadline: Some(LIMIT) };
        let server = self.server.address;
        self.endpoint.connect_with_calls(server, NAME, LIMIT, vec![call])?;
        let mut live = None;
        loop {
            self.epoll.wait(&mut [Token(0)], Some(LIMIT))?;
            self.endpoint.process()?;
            while let Some(event) = self.endpoint.next_event() {
                match event {
                    Event::Connected { session, .. } => live = Some(session),
                    Event::EarlyCalls { taken, .. }
                        if taken != usize::from(self.choice.early_data) =>
                    {
                        return Err(Failure::new(
                            "the server did not take the early data as it should",
                        ));
                    }
                    Event::Reply { .. } => {
                        let time = began.elapsed();
                        self.check_resumption()?;
                        live.into_iter().for_each(|session| self.endpoint.close(session));
                        return Ok(time);
                    }
                    Event::ConnectFailed { error, .. } => return Err(error.into()),
                    Event::CallFailed { error, .. } => return Err(Failure::new(error.to_string())),
                    _ => {}
                }
            }
        }
    }
}

impl Client {
    /// Each session but the first was resumed if the kind is so, and none else.
    fn check_resumption(&self) -> Result<(), Failure> {
        let counted = self.endpoint.statistics().protocol;
        let wanted = match self.choice.resumes {
            true => counted.sessions_begun - 1,
            false => 0,
        };
        if counted.sessions_resumed == wanted {
            return Ok(());
        }
        Err(Failure::new("the session was not resumed as it should"))
    }
}

/// A server that sends requests back, in a thread.
struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(
        identity: &Identity,
        trust: &Trust,
        keys: TicketKeys,
        arguments: &Arguments,
    ) -> Result<Self, Failure> {
        let mut builder = smt::server(identity.clone())
            .suites([arguments.algorithms.suite()])
            .groups([arguments.algorithms.group()])
            .sessions_memory(4 << 20)
            .tickets(keys);
        if arguments.mutual {
            builder = builder.client_auth(ClientAuth::Required(trust.clone()));
        }
        let endpoint = builder.bind_polled("127.0.0.1:0")?;
        let address = endpoint.local_address();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || _ = serve(endpoint, &until));
        Ok(Self { address, is_over, thread: Some(thread) })
    }
}

fn serve(mut endpoint: Endpoint, is_over: &AtomicBool) -> Result<(), Failure> {
    let epoll = Epoll::new()?;
    epoll.add(endpoint.as_fd(), Token(0))?;
    while !is_over.load(Ordering::Relaxed) {
        epoll.wait(&mut [Token(0)], Some(Duration::from_millis(20)))?;
        endpoint.process()?;
        while let Some(event) = endpoint.next_event() {
            if let Event::Request { rpc, body, .. } = event {
                // The client may be gone.
                let _ = endpoint.reply(rpc, body);
            }
        }
    }
    Ok(())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// More than a handshake takes on both sides.
const KEY_PAIRS: usize = 4;
