// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that makes requests until they succeed, as long as that was asked for.
//!
//! It connects with its first request, and anew after a failure to connect, so that the server's
//! name is resolved again.

use std::time::{Duration, Instant};

use bytes::Bytes;
use smt::blocking::Client;
use smt::{
    Builder, CallFailure, ErrorKind, Fault, Metadata, OpenError, OutgoingMessage, Phase, TlsClient,
};

use super::Arguments;
use super::attempts::{Attempts, execution};
use super::cancellation::Cancellation;
use super::output::Output;
use super::range_fetch::{FetchError, RangeFetch};
use super::tickets::FoundTickets;
use crate::failure::Failure;
use crate::file_range::TOO_LARGE;
use crate::{connect_deadline, exit_code, time_span};

/// Makes requests to one server.
pub(super) struct Caller<'a> {
    arguments: &'a Arguments,
    metadata: Metadata,
    builder: Builder<TlsClient>,
    cancellation: &'a Cancellation,
    client: Option<Client>,
    tickets: Option<FoundTickets>,
}

impl<'a> Caller<'a> {
    /// # Errors
    /// All metadata together is too much.
    pub(super) fn new(
        arguments: &'a Arguments,
        builder: Builder<TlsClient>,
        cancellation: &'a Cancellation,
    ) -> Result<Self, Failure> {
        let mut metadata = Metadata::new();
        for (name, value) in &arguments.metadata {
            metadata.push(name, value.as_bytes())?;
        }
        Ok(Self { arguments, metadata, builder, cancellation, client: None, tickets: None })
    }

    /// Begins sessions by these, if there are any.
    pub(super) fn use_tickets(&mut self, found: Option<FoundTickets>) {
        if let Some(found) = &found {
            self.builder = self.builder.clone().tickets(found.store());
        }
        self.tickets = found;
    }

    /// Makes a request, as often as was asked for.
    pub(super) fn request(&mut self, message: &Bytes) -> Result<Reply, Failure> {
        let mut attempts = Attempts::new(self.arguments.retry, self.arguments.idempotent);
        self.cancellation.begin_request();
        loop {
            let left = self.time_left(&attempts);
            let error = match self.attempt(message, left)? {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if is_too_large(&error) {
                return Ok(Reply::InRanges);
            }
            if matches!(&error, OpenError::Connect(error) if error.phase() == Phase::Connect) {
                self.client = None;
            }
            let pause = attempts.pause_after(execution(&error), may_help(&error));
            let left = self.time_left(&attempts);
            let pause = pause.filter(|pause| left.is_none_or(|left| *pause < left));
            let Some(pause) = pause else {
                return Err(self.told(error, &attempts));
            };
            tracing::info!(
                "attempt {} failed, the next one follows in {}: {error}",
                attempts.failed(),
                time_span::display(pause)
            );
            std::thread::sleep(pause);
        }
    }

    /// Fetches the file that a request was refused for as too large. The call began then.
    pub(super) fn fetch(
        &mut self,
        request: &Bytes,
        began: Instant,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let client = self.client(self.arguments.deadline)?;
        let fetch = RangeFetch {
            arguments: self.arguments,
            client,
            request,
            metadata: &self.metadata,
            began,
        };
        let fetched = self.cancellation.during(|| match fetch.write_to(output) {
            Ok(()) => Ok(Ok(())),
            Err(FetchError::Here(failure)) => Ok(Err(failure)),
            Err(FetchError::Call(error)) => Err(error),
        })?;
        fetched?
    }

    /// The rest of the deadline for all attempts at one request.
    fn time_left(&self, attempts: &Attempts) -> Option<Duration> {
        let deadline = self.arguments.deadline?;
        match attempts.failed() {
            0 => Some(deadline),
            _ => Some(deadline.saturating_sub(attempts.elapsed())),
        }
    }

    fn attempt(
        &mut self,
        message: &Bytes,
        time: Option<Duration>,
    ) -> Result<Result<Reply, OpenError>, Failure> {
        let began = Instant::now();
        let client = match self.client(time) {
            Ok(client) => client,
            Err(error) => return Ok(Err(error)),
        };
        let left = time.map(|time| time.saturating_sub(began.elapsed()));
        let is_one_way = self.arguments.one_way;
        let message = OutgoingMessage::new(message.clone()).with_metadata(self.metadata.clone());
        self.cancellation.during(|| {
            match is_one_way {
                true => send(&client, message, left).map(|()| Reply::None),
                false => call(&client, message, left).map(Reply::Whole),
            }
            .map_err(OpenError::from)
        })
    }

    fn client(&mut self, time: Option<Duration>) -> Result<Client, OpenError> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let began = Instant::now();
        let mut builder = self.builder.clone();
        if let Some(time) = time {
            builder = builder.connect_deadline(connect_deadline::accepted(time));
        }
        let client = builder.connect_blocking(&self.arguments.address)?;
        self.cancellation.of(&client);
        tracing::info!(local = %client.local_address(), "connected in {}", time_span::display(began.elapsed()));
        if let Some(tickets) = self.tickets.take() {
            tickets.tell();
        }
        self.client = Some(client.clone());
        Ok(client)
    }

    /// The failure of the last attempt. Its exit code is of the request, and so of all attempts.
    fn told(&self, error: OpenError, attempts: &Attempts) -> Failure {
        let mut failure = match self.arguments.deadline {
            Some(deadline) if connect_deadline::was_too_short(&error) => self.too_late(deadline),
            _ => self.arguments.socket.told(error),
        };
        if attempts.failed() > 1 {
            failure = failure.and_text(format_args!(" (attempt {})", attempts.failed()));
        }
        match attempts.may_have_run() && failure.exit_code() != exit_code::MAY_HAVE_RUN {
            true => failure
                .and_text("; an attempt before it may have run the request")
                .and_exit_code(exit_code::MAY_HAVE_RUN),
            false => failure,
        }
    }

    fn too_late(&self, deadline: Duration) -> Failure {
        let text = format!(
            "connect to {}: {}: the deadline of {} passed before a session with the server had come about",
            self.arguments.address,
            Fault::Limit,
            time_span::display(deadline)
        );
        Failure::of(Fault::Limit, text).and_exit_code(exit_code::DID_NOT_RUN)
    }
}

/// The outcome of a request that has succeeded, or may yet.
pub(super) enum Reply {
    /// It was a one-way message.
    None,
    Whole(Bytes),
    /// It asks for a file that no message has room for, and that may be fetched in ranges.
    InRanges,
}

fn is_too_large(error: &OpenError) -> bool {
    let OpenError::Connect(error) = error else {
        return false;
    };
    match error.kind() {
        ErrorKind::Call(call) => {
            matches!(&call.reason, CallFailure::Refused(failure) if failure.code == TOO_LARGE)
        }
        _ => false,
    }
}

/// The session closes: the server need not find out by silence that its client is gone.
impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.cancellation.forget_client();
    }
}

/// Whether another attempt may succeed. The application of the server says nothing of that when it
/// fails a request: a request that may be repeated is.
fn may_help(error: &OpenError) -> bool {
    let is_failed = match error {
        OpenError::Connect(error) => match error.kind() {
            ErrorKind::Call(call) => matches!(call.reason, CallFailure::Failed(_)),
            _ => false,
        },
        _ => false,
    };
    is_failed || error.is_transient()
}

fn call(
    client: &Client,
    message: OutgoingMessage,
    deadline: Option<Duration>,
) -> Result<Bytes, smt::Error> {
    let call = client.call(message);
    match deadline {
        Some(deadline) => call.deadline(deadline).wait(),
        None => call.wait(),
    }
}

fn send(
    client: &Client,
    message: OutgoingMessage,
    deadline: Option<Duration>,
) -> Result<(), smt::Error> {
    let send = client.send(message);
    match deadline {
        Some(deadline) => send.deadline(deadline).wait(),
        None => send.wait(),
    }
}
