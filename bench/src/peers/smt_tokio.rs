// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT for tokio.

use std::net::SocketAddr;

use bytes::Bytes;
use smt::{Client, Request};

use super::smt_blocking::{client_builder, server_builder};
use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::job::{Handlers, Setting, Work};
use crate::load::{Callers, TaskCaller, Tasks, deal, runtime};
use crate::parts::Wanted;
use crate::{frame, server};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmtTokio;

impl Peer for SmtTokio {
    fn name(&self) -> &'static str {
        "smt-tokio"
    }

    fn settings(&self) -> &'static str {
        "SMT, tokio client and server on current-thread runtimes, default configuration but AES-128-GCM and X25519 alone; a \
         task per outstanding call on the client, one on the server; one session"
    }

    fn refuses(&self, work: &Work) -> Option<&'static str> {
        match work {
            Work::Closed { sessions: 1.., .. } => {
                Some("each client has a socket of its own; see smt-polled")
            }
            _ => None,
        }
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let builder = server_builder(setting)?;
        runtime(setting.on_tokio.flavor)?.block_on(async {
            let server = builder.bind(address).await?;
            server::listening(server.local_address())?;
            while let Some(request) = server.accept_request().await {
                if let Some(wanted) = Wanted::of(request.body()) {
                    tokio::spawn(send_parts(request, wanted));
                    continue;
                }
                let answer = move || {
                    let reply = frame::answer(request.body().clone());
                    // The caller may have gone.
                    let _ = request.reply(reply);
                };
                match setting.on_tokio.handlers {
                    Handlers::Inline => answer(),
                    Handlers::Spawned => drop(tokio::spawn(async move { answer() })),
                }
            }
            Ok(())
        })
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let (runtime, builder) = (runtime(setting.on_tokio.flavor)?, client_builder(setting)?);
        let client = runtime.block_on(async { builder.connect(server).await })?;
        let hands = deal(vec![Caller(client)], shape.callers);
        Ok(Box::new(Tasks::new(runtime, hands)))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (runtime, builder) = (runtime(setting.on_tokio.flavor)?, client_builder(setting)?);
        let request = frame::request(64, 64);
        Ok(Box::new(move || {
            runtime.block_on(async {
                let mut caller = Caller(builder.clone().connect(server).await?);
                caller.call(&request).await.map(drop)
            })
        }))
    }
}

/// Answers in parts, at the pace of the caller; it may have gone.
async fn send_parts(request: Request, wanted: Wanted) -> Result<(), smt::Error> {
    let mut sender = request.part_sender();
    for part in wanted.parts() {
        sender.send(part).await?;
    }
    request.reply(Bytes::new())
}

#[derive(Clone)]
struct Caller(Client);

impl TaskCaller for Caller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        Ok(self.0.call(request.clone()).await?.len())
    }

    async fn call_in_parts(&mut self, wanted: Wanted, length: u32) -> Result<(), Failure> {
        let call = self.0.call(wanted.request(length));
        let mut parts = call.reply_in_parts().await?;
        let mut check = wanted.check();
        while let Some(part) = parts.next_part().await? {
            check.take(&part)?;
        }
        parts.reply().await?;
        check.end()
    }
}
