// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An RPC, or a one-way message, as a row of a table or as a JSON object (docs/DUMP.md).

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use smt_wire::{AbortCode, FailureMark, Kind, MessageId, SessionIndex};

use crate::packet_json::SCHEMA;
use crate::ranges::Ranges;
use crate::row::time_of_day;
use crate::rpcs::Ends;

/// An RPC, as far as it was seen.
pub(crate) struct Rpc {
    pub(crate) ends: Ends,
    /// Time of the first packet.
    pub(crate) began: Duration,
    pub(crate) caller: SocketAddr,
    pub(crate) callee: SocketAddr,
    pub(crate) id: MessageId,
    /// The index in the first packet.
    pub(crate) session: SessionIndex,
    /// The kind of the request; `None` without a key log.
    pub(crate) kind: Option<Kind>,
    pub(crate) request: Part,
    pub(crate) reply: Part,
    /// DATA packets that were sent again, of both directions.
    pub(crate) retransmissions: u32,
    /// Ranges that a receiver has asked for again.
    pub(crate) resend_requests: u32,
    /// The request, if it is a one-way message, or the reply.
    pub(crate) is_acknowledged: bool,
    pub(crate) is_cancelled: bool,
    /// The callee says that it did not run.
    pub(crate) is_void: bool,
    pub(crate) abort: Option<u16>,
    pub(crate) failure: Option<FailureMark>,
}

/// A message of an RPC.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) packets: u32,
    /// Bytes of metadata and body; with padding, unless a key log tells better.
    pub(crate) length: u32,
    exact_length: Option<u32>,
    ranges: Ranges,
    first: Option<Duration>,
    /// When the last of its bytes was seen.
    whole: Option<Duration>,
}

impl Part {
    /// Bytes of the record stream have come.
    pub(crate) fn take(&mut self, time: Duration, start: usize, end: usize) {
        self.packets += 1;
        self.first.get_or_insert(time);
        self.ranges.add(start, end);
    }

    /// Notes whether the record stream is there, if it has this length.
    pub(crate) fn end(&mut self, time: Duration, length: usize) {
        if self.whole.is_none() && self.ranges.cover(length) {
            self.whole = Some(time);
        }
    }

    fn bytes(&self) -> Option<u32> {
        (self.packets > 0).then(|| self.exact_length.unwrap_or(self.length))
    }
}

impl Rpc {
    /// The message whose packets go there.
    pub(crate) fn part_to(&mut self, target: SocketAddr) -> &mut Part {
        if target == self.callee { &mut self.request } else { &mut self.reply }
    }

    /// Takes what a record has told.
    pub(crate) fn tell(&mut self, kind: Kind, length: u32, failure: Option<FailureMark>) {
        if kind == Kind::Reply {
            self.reply.exact_length = Some(length);
            self.failure = failure;
        } else {
            self.request.exact_length = Some(length);
            self.kind = Some(kind);
        }
    }

    /// From the first packet of the request to the last one of the reply.
    fn latency(&self) -> Option<Duration> {
        self.reply.whole?.checked_sub(self.request.first?)
    }

    /// The outcome in a word, as far as the capture tells.
    fn outcome(&self) -> &'static str {
        let is_one_way = self.kind == Some(Kind::OneWay);
        if self.reply.whole.is_some() {
            return match self.failure {
                None => "replied",
                Some(FailureMark { not_run: true, .. }) => "refused",
                Some(_) => "failed",
            };
        }
        if self.abort.is_some() {
            return "aborted";
        }
        if self.is_cancelled {
            return if self.is_void { "cancelled, did not run" } else { "cancelled" };
        }
        if self.reply.packets > 0 {
            return "reply incomplete";
        }
        if self.request.whole.is_none() {
            return "request incomplete";
        }
        match (is_one_way, self.is_acknowledged) {
            (true, true) => "delivered",
            (true, false) => "not acknowledged",
            // Without a key log a message that was acknowledged and not answered is one-way, or a
            // bundle.
            (false, true) => "acknowledged",
            (false, false) => "no reply",
        }
    }

    /// The object of `--json`.
    pub(crate) fn object(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "kind": "rpc",
            "began_ns": self.began.as_nanos() as u64,
            "caller": self.caller.to_string(),
            "callee": self.callee.to_string(),
            "session": self.session.to_string(),
            "id": self.id.0,
            "message": self.kind.map(Kind::name),
            "request_bytes": self.request.bytes(),
            "reply_bytes": self.reply.bytes(),
            "latency_us": self.latency().map(|time| time.as_nanos() as f64 / 1e3),
            "packets": self.request.packets + self.reply.packets,
            "retransmissions": self.retransmissions,
            "resend_requests": self.resend_requests,
            "outcome": self.outcome(),
            "abort_code": self.abort,
            "failure_code": self.failure.map(|failure| failure.code),
        })
    }
}

impl fmt::Display for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        write!(
            f,
            "{} {:<21} {:<21} {:>10} {:>9} {:>9} {:>11} {:>7} {:>6} {:>6}  {}",
            time_of_day(self.began),
            self.caller.to_string(),
            self.callee.to_string(),
            self.id.0,
            number(self.request.bytes().map(|bytes| bytes.to_string())),
            number(self.reply.bytes().map(|bytes| bytes.to_string())),
            number(self.latency().map(|time| format!("{:.1}", time.as_nanos() as f64 / 1e3))),
            self.request.packets + self.reply.packets,
            self.retransmissions,
            self.resend_requests,
            self.outcome(),
        )?;
        if let Some(code) = self.abort {
            let reason = match AbortCode::from_code(code) {
                AbortCode::ShuttingDown => "shutting down",
                AbortCode::Dropped => "dropped",
                AbortCode::TooLarge => "too large",
                AbortCode::ReplyTooLarge => "reply too large",
                AbortCode::Overloaded => "overloaded",
            };
            write!(f, " ({reason})")?;
        }
        match self.failure {
            Some(failure) => write!(f, " (code {})", failure.code),
            None => Ok(()),
        }
    }
}

/// The line above the rows.
pub(crate) const HEADING: &str = "began           caller                callee                        id   request     reply  latency us packets  again  asked  outcome";
