// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Repetition of messages that have failed: which are repeated, and when.
//!
//! 1. A message that has not run is safe to repeat; one that may have run is repeated only if its
//!    caller has said that it is idempotent.
//! 2. It is repeated only if the same may succeed later. The application of a server tells by its
//!    own codes what that means of a refusal, which is never repeated here.
//! 3. The pause doubles with each attempt, and is drawn at random from its second half: clients
//!    that failed together do not come back together.
//! 4. No attempt begins at or after the deadline, which holds for all attempts together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use smt_proto::{CallFailure, Execution, Time};

use crate::error::{Error, ErrorKind};

/// How often, or for how long, a message that has failed is sent again. By default it is not.
///
/// A message that has not run is repeated if the same may succeed later
/// ([`Error::is_transient`]). One that may have run is repeated only if it is
/// [`idempotent`](Self::idempotent). A refusal by the application of the server is final.
/// No attempt begins at or after the deadline of the message. The error is that of the last
/// attempt; if one before it may have run, [`Error::execution`] says so.
///
/// ```no_run
/// # async fn calls(trust: smt::Trust) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use smt::Retry;
///
/// let client = smt::client(trust)
///     .call_deadline(Duration::from_secs(2))
///     .retry(Retry::times(3))
///     .connect("db7").await?;
/// let stored = client.call("put a 1").await?;
/// let read = client.call("get a").retry(Retry::times(3).idempotent(true)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "it does nothing until a client or a message has it"]
pub struct Retry {
    times: u32,
    time: Option<Duration>,
    pause_first: Duration,
    pause_max: Duration,
    is_idempotent: bool,
}

impl Retry {
    /// Repeats a message this often at most, after its first attempt. 0 repeats none.
    pub const fn times(times: u32) -> Self {
        Self {
            times,
            time: None,
            pause_first: PAUSE_FIRST,
            pause_max: PAUSE_MAX,
            is_idempotent: false,
        }
    }

    /// Repeats a message as often as it takes, while an attempt begins within this time of the
    /// first one.
    pub const fn within(time: Duration) -> Self {
        let mut retry = Self::times(u32::MAX);
        retry.time = Some(time);
        retry
    }

    /// Sets the longest pause after the first failure, 20 ms by default, and how long it grows to,
    /// 1 s by default. It doubles with each failure; half of it at least is waited.
    pub const fn pause(mut self, first: Duration, longest: Duration) -> Self {
        self.pause_first = first;
        self.pause_max = longest;
        self
    }

    /// Whether a message is repeated although it may have run: running it twice does no harm.
    pub const fn idempotent(mut self, on: bool) -> Self {
        self.is_idempotent = on;
        self
    }

    /// The pause after this many failed attempts.
    fn pause_after(&self, failed: u32, random: u64) -> Duration {
        let doubled = self.pause_first.saturating_mul(1 << (failed - 1).min(16));
        let longest = doubled.min(self.pause_max);
        let part = (random >> 32) as f64 / f64::from(u32::MAX);
        longest.mul_f64(0.5 + part / 2.0)
    }
}

/// The attempts at one message.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) retry: Option<Retry>,
    began: Option<Time>,
    failed: u32,
    may_have_run: bool,
    /// The next one begins then.
    pub(crate) next: Option<Time>,
}

impl Attempts {
    /// An attempt begins.
    pub(crate) fn begin(&mut self, now: Time) {
        if self.retry.is_some() {
            self.began.get_or_insert(now);
        }
    }

    /// An attempt has failed: sets when the next one begins, or gives the error of all.
    pub(crate) fn fail(&mut self, mut error: Error, now: Time, due: Option<Time>) -> Option<Error> {
        let Some(retry) = self.retry else {
            return Some(error);
        };
        self.failed = self.failed.saturating_add(1);
        let is_safe = error.execution() == Execution::DidNotRun || retry.is_idempotent;
        if is_safe && may_help(&error, retry.is_idempotent) && self.failed <= retry.times {
            let next = now + retry.pause_after(self.failed, RandomState::new().hash_one(()));
            let is_in_time = due.is_none_or(|due| next < due)
                && retry.time.is_none_or(|time| self.began.is_none_or(|began| next < began + time));
            if is_in_time {
                tracing::debug!(attempt = self.failed, %error, "failed, and is repeated");
                self.may_have_run |= error.execution() == Execution::MayHaveRun;
                self.next = Some(next);
                return None;
            }
        }
        error.attempt_before_may_have_run |= self.may_have_run;
        Some(error)
    }
}

/// Whether the same may succeed later. The application of the server says nothing of that when it
/// has failed: a message that may be repeated is.
fn may_help(error: &Error, is_idempotent: bool) -> bool {
    let is_failed = match error.kind() {
        ErrorKind::Call(call) => matches!(call.reason, CallFailure::Failed(_)),
        _ => false,
    };
    error.is_transient() || (is_failed && is_idempotent)
}

/// Long beside a round trip, and short beside a person's wait.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// A client finds a server late by this time that is there again: the distance that attempts to
/// connect keep.
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use smt_proto::{CallError, ConnectError, Failure};

    use super::*;
    use crate::error::Phase;

    fn at(millis: u64) -> Time {
        Time::default() + Duration::from_millis(millis)
    }

    fn error(reason: CallFailure, execution: Execution) -> Error {
        let address = SocketAddr::from(([192, 0, 2, 1], 9));
        Error::new(Phase::Call, address, CallError { reason, execution })
    }

    fn attempts(retry: Retry) -> Attempts {
        let mut attempts = Attempts { retry: Some(retry), ..Attempts::default() };
        attempts.begin(at(0));
        attempts
    }

    fn did_not_run() -> Error {
        error(CallFailure::Overloaded, Execution::DidNotRun)
    }

    fn may_have_run() -> Error {
        error(CallFailure::Dropped, Execution::MayHaveRun)
    }

    #[test]
    fn a_message_that_did_not_run_is_repeated_as_often_as_was_said() {
        let mut twice = attempts(Retry::times(2));
        assert_eq!(twice.fail(did_not_run(), at(0), None), None);
        assert_eq!(twice.fail(did_not_run(), at(0), None), None);
        assert_eq!(twice.fail(did_not_run(), at(0), None), Some(did_not_run()));
        let mut never = Attempts::default();
        assert!(never.fail(did_not_run(), at(0), None).is_some());
    }

    #[test]
    fn one_that_may_have_run_is_repeated_only_if_it_is_idempotent() {
        for is_idempotent in [false, true] {
            let mut attempts = attempts(Retry::times(9).idempotent(is_idempotent));
            let failed = attempts.fail(may_have_run(), at(0), None);
            assert_eq!(failed.is_none(), is_idempotent);
        }
    }

    #[test]
    fn an_attempt_that_may_have_run_is_not_forgotten() {
        let mut attempts = attempts(Retry::times(1).idempotent(true));
        assert_eq!(attempts.fail(may_have_run(), at(0), None), None);
        let last = attempts.fail(did_not_run(), at(0), None).unwrap();
        assert_eq!(last.execution(), Execution::MayHaveRun);
        assert!(last.to_string().ends_with("may have run"), "{last}");
    }

    #[test]
    fn a_refusal_is_not_repeated_and_a_failure_of_the_application_only_if_idempotent() {
        let refused = || {
            let refusal = CallFailure::Refused(Box::new(Failure::refusal(7, "no")));
            error(refusal, Execution::DidNotRun)
        };
        let failed = || {
            let failure = CallFailure::Failed(Box::new(Failure::failed(7, "no")));
            error(failure, Execution::MayHaveRun)
        };
        for is_idempotent in [false, true] {
            let retry = Retry::times(9).idempotent(is_idempotent);
            assert!(attempts(retry).fail(refused(), at(0), None).is_some());
            let failed = attempts(retry).fail(failed(), at(0), None);
            assert_eq!(failed.is_none(), is_idempotent);
        }
    }

    #[test]
    fn a_message_that_never_succeeds_is_not_repeated() {
        let address = SocketAddr::from(([192, 0, 2, 1], 9));
        let error = Error::new(Phase::Connect, address, ConnectError::ShutDown);
        let mut attempts = attempts(Retry::times(9).idempotent(true));
        assert!(attempts.fail(error, at(0), None).is_some());
    }

    #[test]
    fn no_attempt_begins_after_the_deadline_or_the_time() {
        let long = Duration::from_secs(10);
        let patient = Retry::times(9).pause(long, long);
        let mut bounded = attempts(patient);
        assert!(bounded.fail(did_not_run(), at(0), Some(at(5_000))).is_some());
        assert_eq!(bounded.fail(did_not_run(), at(0), Some(at(10_001))), None);
        let mut in_time = attempts(Retry::within(Duration::from_millis(30)));
        assert_eq!(in_time.fail(did_not_run(), at(5), None), None);
        assert!(in_time.fail(did_not_run(), at(25), None).is_some());
    }

    #[test]
    fn the_pause_doubles_up_to_its_bound_and_differs_from_client_to_client() {
        let retry = Retry::times(9);
        let pause = |failed, random| retry.pause_after(failed, random).as_millis();
        assert_eq!((pause(1, 0), pause(1, u64::MAX)), (10, 20));
        assert_eq!((pause(2, 0), pause(2, u64::MAX)), (20, 40));
        assert_eq!((pause(99, 0), pause(99, u64::MAX)), (500, 1_000));
    }
}
