// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT in an event loop of the application's own: one thread on each side.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use smt::polled::{Endpoint, Event};

use super::smt_blocking::{client_builder, server_builder};
use super::smt_calls::{SmtCall, SmtCalls};
use super::{Newcomer, Peer, Shape};
use crate::certificates::SERVER_NAME;
use crate::failure::Failure;
use crate::job::Setting;
use crate::load::{Callers, Exchange, Turns};
use crate::{frame, server};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmtPolled;

impl Peer for SmtPolled {
    fn name(&self) -> &'static str {
        "smt-polled"
    }

    fn settings(&self) -> &'static str {
        "SMT, polled endpoints, default configuration but AES-128-GCM and X25519 alone; one thread on each side; many sessions \
         share one client socket, and the client, which stands for many, keeps all ciphers' tables"
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let mut endpoint = server_builder(setting)?.bind_polled(address)?;
        server::listening(endpoint.local_address())?;
        loop {
            wait_for(&endpoint, None)?;
            endpoint.process()?;
            while let Some(event) = endpoint.next_event() {
                if let Event::Request { rpc, body, .. } = event {
                    // The caller may have gone.
                    let _ = endpoint.reply(rpc, frame::answer(body));
                }
            }
        }
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let mut client = Client::open(setting)?;
        for _ in 0..shape.connections_shared() {
            client.add_session(server)?;
        }
        Ok(Box::new(Turns::new(client, shape.callers)))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let mut client = Client::open(setting)?;
        let request = frame::request(64, 64);
        Ok(Box::new(move || {
            client.add_session(server)?;
            client.begin(0, 0, &request)?;
            let mut ended = Vec::new();
            while ended.is_empty() {
                client.turn(WAIT, &mut ended)?;
            }
            client.open.sessions.drain(..).for_each(|session| client.endpoint.close(session));
            Ok(())
        }))
    }
}

struct Client {
    endpoint: Endpoint,
    open: SmtCalls,
}

impl Client {
    fn open(setting: &Setting) -> Result<Self, Failure> {
        // It stands for many clients, each of which would keep the tables of its one session's
        // ciphers.
        let builder =
            client_builder(setting)?.configure(|config| config.cipher_cache_sessions = usize::MAX);
        let endpoint = builder.open_polled("127.0.0.1:0")?;
        Ok(Self { endpoint, open: SmtCalls::default() })
    }

    fn add_session(&mut self, server: SocketAddr) -> Result<(), Failure> {
        self.endpoint.connect(server, SERVER_NAME, CONNECT)?;
        let (began, held) = (Instant::now(), self.open.sessions.len());
        while self.open.sessions.len() == held {
            self.turn(WAIT, &mut Vec::new())?;
            if began.elapsed() > CONNECT * 2 {
                return Err(Failure::new("no session within twice its time"));
            }
        }
        Ok(())
    }

    /// Begins a call, or lets it wait for an id.
    fn start(&mut self, call: SmtCall) -> Result<(), Failure> {
        let endpoint = &mut self.endpoint;
        let begin = |session, request: Bytes| endpoint.call(session, request, None);
        self.open.begin(call, begin)
    }
}

impl Exchange for Client {
    fn connections(&self) -> usize {
        self.open.sessions.len()
    }

    fn begin(&mut self, connection: usize, number: u32, request: &Bytes) -> Result<(), Failure> {
        let request = request.clone();
        self.start(SmtCall { connection, number, request })
    }

    fn turn(&mut self, wait: Duration, ended: &mut Vec<(u32, usize)>) -> Result<(), Failure> {
        self.endpoint.flush();
        wait_for(&self.endpoint, Some(wait))?;
        self.endpoint.process()?;
        while let Some(event) = self.endpoint.next_event() {
            self.open.take(event, ended)?;
        }
        // Calls that begin because of these ends leave together.
        self.endpoint.cork();
        for call in self.open.unblocked() {
            self.start(call)?;
        }
        Ok(())
    }
}

fn wait_for(endpoint: &Endpoint, wait: Option<Duration>) -> Result<(), Failure> {
    let timeout = wait.map(|wait| Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: i64::from(wait.subsec_nanos()),
    });
    let mut descriptors = [PollFd::from_borrowed_fd(endpoint.as_fd(), PollFlags::IN)];
    match poll(&mut descriptors, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

const WAIT: Duration = Duration::from_millis(100);
const CONNECT: Duration = Duration::from_secs(5);
