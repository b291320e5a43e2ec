// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT for threads: the protocol runs in the thread that waits.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use smt::{Builder, Group, Identity, Suite, TlsClient, TlsServer, Trust, blocking};

use super::{Newcomer, Peer, Shape};
use crate::certificates::{SERVER_NAME, authority, certificate, key};
use crate::failure::Failure;
use crate::job::{Setting, Work};
use crate::load::{Callers, ThreadCaller, Threads, deal};
use crate::{frame, server};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmtBlocking {
    is_busy: bool,
}

impl SmtBlocking {
    /// As configured by default: a waiting thread spins for up to 100 us, then blocks.
    pub(super) const ADAPTIVE: Self = Self { is_busy: false };
    /// A waiting thread spins for ever, on both sides.
    pub(super) const BUSY: Self = Self { is_busy: true };

    fn tune<R>(self, builder: Builder<R>) -> Builder<R> {
        if self.is_busy { builder.spin(FOR_EVER) } else { builder }
    }

    /// Has made one call when it returns.
    fn client(
        builder: Builder<TlsClient>,
        server: SocketAddr,
    ) -> Result<blocking::Client, Failure> {
        let client = builder.connect_blocking(server)?;
        client.call(frame::request(64, 64)).wait()?;
        Ok(client)
    }
}

impl Peer for SmtBlocking {
    fn name(&self) -> &'static str {
        if self.is_busy { "smt-busy" } else { "smt" }
    }

    fn settings(&self) -> &'static str {
        if self.is_busy {
            "as smt, but waiting threads spin for ever (Builder::spin)"
        } else {
            "SMT, blocking client and server, default configuration but AES-128-GCM and X25519 alone; a thread per outstanding \
             call on the client, one on the server; one session"
        }
    }

    fn refuses(&self, work: &Work) -> Option<&'static str> {
        match work {
            Work::Closed { sessions: 1.., .. } => {
                Some("each blocking client has a socket of its own; see smt-polled")
            }
            _ => None,
        }
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let server = self.tune(server_builder(setting)?).bind_blocking(address)?;
        server::listening(server.local_address())?;
        while let Some(request) = server.accept_request() {
            let reply = frame::answer(request.body().clone());
            // The caller may have gone.
            let _ = request.reply(reply);
        }
        Ok(())
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let builder = self.tune(client_builder(setting)?);
        let client = Caller(Self::client(builder, server)?);
        Ok(Box::new(Threads(deal(vec![client], shape.callers))))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        // Certificates are read once, as by all peers.
        let builder = self.tune(client_builder(setting)?);
        Ok(Box::new(move || Self::client(builder.clone(), server).map(drop)))
    }
}

#[derive(Clone)]
struct Caller(blocking::Client);

impl ThreadCaller for Caller {
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        Ok(self.0.call(request.clone()).wait()?.len())
    }
}

/// The default configuration, with the suite and group that all peers have.
pub(crate) fn client_builder(setting: &Setting) -> Result<Builder<TlsClient>, Failure> {
    let trust = Trust::roots_from_pem_files(&[authority(&setting.directory)])?;
    let builder = smt::client(trust).server_name(SERVER_NAME);
    Ok(builder.suites([Suite::Aes128Gcm]).groups([Group::X25519]))
}

/// The same for a server.
pub(crate) fn server_builder(setting: &Setting) -> Result<Builder<TlsServer>, Failure> {
    let directory = &setting.directory;
    let identity = Identity::from_pem_files(certificate(directory), key(directory))?;
    let builder = smt::server(identity);
    Ok(builder.suites([Suite::Aes128Gcm]).groups([Group::X25519]))
}

const FOR_EVER: Duration = Duration::from_secs(3_600);
