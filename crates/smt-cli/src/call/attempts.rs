// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attempts at one request: which failure is followed by another attempt, and when.
//!
//! 1. A request that has not run is safe to repeat; one that may have run is repeated only if the
//!    user has said that it is idempotent.
//! 2. It is repeated only if the same may succeed later.
//! 3. The pause doubles with each attempt (`pause`).

use std::time::{Duration, Instant};

use smt::{Execution, OpenError};

use crate::{pause, time_span};

/// How long a failed request is tried again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Retry {
    Times(u32),
    For(Duration),
}

impl Retry {
    /// Understands a number or a time; a value parser for clap.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.bytes().all(|letter| letter.is_ascii_digit()) {
            let wrong = |_| "give a number of attempts, such as 3, or a time, such as 10s";
            return Ok(Self::Times(text.parse().map_err(wrong)?));
        }
        let time = time_span::parse_nonzero(text).map(Self::For);
        time.map_err(|why| format!("give a number of attempts or a time: {why}"))
    }
}

/// The attempts at one request.
#[derive(Debug)]
pub(super) struct Attempts {
    retry: Retry,
    is_idempotent: bool,
    began: Instant,
    failed: u32,
    /// Whether one that has failed may have run the request.
    may_have_run: bool,
}

impl Attempts {
    /// The first attempt begins now.
    pub(super) fn new(retry: Option<Retry>, is_idempotent: bool) -> Self {
        Self {
            retry: retry.unwrap_or(Retry::Times(0)),
            is_idempotent,
            began: Instant::now(),
            failed: 0,
            may_have_run: false,
        }
    }

    /// Time since the first attempt began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Number of attempts that have failed.
    pub(super) fn failed(&self) -> u32 {
        self.failed
    }

    /// Whether an attempt that has failed may have run the request.
    pub(super) fn may_have_run(&self) -> bool {
        self.may_have_run
    }

    /// An attempt has failed: the pause until the next one, if there is to be one.
    pub(super) fn pause_after(
        &mut self,
        execution: Execution,
        is_transient: bool,
    ) -> Option<Duration> {
        self.failed += 1;
        self.may_have_run |= execution == Execution::MayHaveRun;
        let is_safe = execution == Execution::DidNotRun || self.is_idempotent;
        if !is_safe || !is_transient {
            return None;
        }
        let pause = pause::after(self.failed);
        match self.retry {
            Retry::Times(most) => (self.failed <= most).then_some(pause),
            Retry::For(time) => (self.elapsed() + pause < time).then_some(pause),
        }
    }
}

/// Whether the request may have had an effect.
pub(super) fn execution(error: &OpenError) -> Execution {
    match error {
        OpenError::Connect(error) => error.execution(),
        _ => Execution::DidNotRun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    mod parse {
        use super::super::*;

        #[test]
        fn numbers_and_times_are_understood() {
            assert_eq!(Retry::parse("3"), Ok(Retry::Times(3)));
            assert_eq!(Retry::parse("2s"), Ok(Retry::For(Duration::from_secs(2))));
            for text in ["", "-1", "0s", "often", "99999999999"] {
                assert!(Retry::parse(text).is_err(), "{text}");
            }
        }
    }

    mod pause_after {
        use super::*;

        #[test]
        fn a_request_that_did_not_run_is_repeated_as_often_as_was_said() {
            let mut attempts = Attempts::new(Some(Retry::Times(2)), false);
            let mut pause = || attempts.pause_after(Execution::DidNotRun, true);
            assert!(pause().is_some());
            assert!(pause().is_some());
            assert_eq!(pause(), None);
            let mut once = Attempts::new(None, true);
            assert_eq!(once.pause_after(Execution::DidNotRun, true), None);
        }

        #[test]
        fn one_that_may_have_run_is_repeated_only_if_it_is_idempotent() {
            for (execution, is_idempotent, is_repeated) in [
                (Execution::DidNotRun, false, true),
                (Execution::MayHaveRun, false, false),
                (Execution::MayHaveRun, true, true),
            ] {
                let mut attempts = Attempts::new(Some(Retry::Times(9)), is_idempotent);
                let pause = attempts.pause_after(execution, true);
                assert_eq!(pause.is_some(), is_repeated, "{execution}");
            }
        }

        #[test]
        fn what_never_succeeds_is_not_repeated() {
            let mut attempts = Attempts::new(Some(Retry::Times(9)), true);
            assert_eq!(attempts.pause_after(Execution::DidNotRun, false), None);
        }

        #[test]
        fn no_attempt_begins_after_the_time() {
            let mut attempts = Attempts::new(Some(Retry::For(Duration::from_millis(1))), false);
            assert_eq!(attempts.pause_after(Execution::DidNotRun, true), None);
        }
    }
}
