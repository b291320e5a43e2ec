// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A thread that takes requests, has them handled, and answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use smt::Incoming;
use smt::blocking::Server;

use super::access_log::{AccessLog, Entry, Outcome};
use super::caller::{Caller, Callers};
use super::handler::{Dropped, Handler};
use super::tally::Tally;

/// The things that the workers of a shard share.
#[derive(Clone, Copy)]
pub(super) struct Worker<'a> {
    pub(super) server: &'a Server,
    pub(super) handler: &'a Handler,
    pub(super) tally: &'a Tally,
    pub(super) access_log: Option<&'a AccessLog>,
    /// No caller is left to hear from handlers.
    pub(super) is_over: &'a AtomicBool,
}

impl Worker<'_> {
    /// Takes requests until the server is shut down.
    pub(super) fn work(&self) {
        let mut callers = Callers::default();
        while let Some(message) = self.server.accept() {
            let began = Instant::now();
            let caller = callers.of(session_of(&message), message.peer());
            let is_given_up = || match &message {
                Incoming::Request(request) => request.is_cancelled(),
                _ => false,
            };
            let is_useless = || is_given_up() || self.is_over.load(Ordering::Relaxed);
            let handled = self.handler.handle(&message, &caller, &is_useless);
            self.answer(message, handled, &caller, began);
        }
    }

    fn answer(
        &self,
        message: Incoming,
        handled: Result<Bytes, Dropped>,
        caller: &Caller,
        began: Instant,
    ) {
        let length = message.body().len();
        let shown = self.access_log.and_then(|_| self.handler.shown(&message));
        let answered = match handled {
            Ok(body) => self.reply(message, body),
            Err(dropped) => self.drop(message, dropped),
        };
        if let Some(log) = self.access_log {
            let entry = Entry::new(caller, self.handler.kind(), shown);
            let entry = entry.with_bytes(length, answered.bytes);
            log.write(entry.with_outcome(answered.outcome, answered.reason, began.elapsed()));
        }
    }

    fn reply(&self, message: Incoming, body: Bytes) -> Answered {
        let (length, peer) = (message.body().len(), message.peer().address);
        let Incoming::Request(request) = message else {
            self.tally.one_way(length);
            return Answered::of(Outcome::Done);
        };
        let bytes = body.len();
        match request.reply(body) {
            Ok(()) => {
                self.tally.reply(length, bytes);
                Answered { bytes, ..Answered::of(Outcome::Replied) }
            }
            Err(error) => {
                tracing::warn!(%peer, "reply not sent: {error}");
                self.tally.drop(length);
                Answered { reason: Some(error.to_string()), ..Answered::of(Outcome::NotSent) }
            }
        }
    }

    fn drop(&self, message: Incoming, dropped: Dropped) -> Answered {
        let why = dropped.failure.text().to_owned();
        let (peer, length) = (message.peer().address, message.body().len());
        match &message {
            Incoming::Request(_) if dropped.is_a_step => {
                tracing::debug!(%peer, "request refused until it asks for ranges: {why}");
                self.tally.step(length);
            }
            _ => {
                tracing::warn!(%peer, "request dropped: {why}");
                self.tally.drop(length);
            }
        }
        let outcome = match dropped.has_run {
            true => Outcome::Failed,
            false => Outcome::Refused,
        };
        if let Incoming::Request(request) = message {
            match outcome {
                Outcome::Failed => request.fail(dropped.code, why.as_str()),
                _ => request.refuse(dropped.code, why.as_str()),
            }
        }
        Answered { reason: Some(why), ..Answered::of(outcome) }
    }
}

/// How a message was answered.
struct Answered {
    outcome: Outcome,
    /// Bytes of the reply.
    bytes: usize,
    reason: Option<String>,
}

impl Answered {
    fn of(outcome: Outcome) -> Self {
        Self { outcome, bytes: 0, reason: None }
    }
}

fn session_of(message: &Incoming) -> u64 {
    match message {
        Incoming::Request(request) => request.session().id(),
        Incoming::Message(message) => message.session().id(),
        _ => 0,
    }
}
