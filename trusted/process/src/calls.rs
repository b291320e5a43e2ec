// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of a client that have not ended.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use smt_replica::{Completion, RefusalReason};

use crate::call_error::CallError;

/// A request that waits for its end.
pub(crate) struct Call {
    /// Its place among the operations.
    place: usize,
    pub(crate) operation: Vec<u8>,
    began: Instant,
    /// Whether a session of it was over already.
    is_again: bool,
}

impl Call {
    /// A request that begins now.
    pub(crate) fn new((place, operation): (usize, Vec<u8>)) -> Self {
        Self { place, operation, began: Instant::now(), is_again: false }
    }
}

/// Requests that have not ended.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) in_progress: BTreeMap<u64, Call>,
    /// Requests that did not run in a session that is over.
    pub(crate) again: VecDeque<Call>,
}

impl Calls {
    /// Whether no request is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.is_empty()
    }

    /// The beginning of the oldest request in progress, in whatever session it was made first.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.in_progress.values().map(|it| it.began).min()
    }

    /// Takes the end of a request. One that did not run is made again. A refusal ends the session.
    pub(crate) fn end<E: From<CallError>>(
        &mut self,
        (completion, members): (Completion, &'static str),
        session: &mut Option<u64>,
        mut answered: impl FnMut(usize, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(call) = self.in_progress.remove(&completion.number) else {
            return Ok(());
        };
        let refusal = match completion.result {
            Ok(answer) => return answered(call.place, answer),
            Err(refusal) => refusal,
        };
        *session = None;
        let is_over = refusal.reason == RefusalReason::SessionIsOver;
        match (refusal.may_have_run, is_over && call.is_again) {
            (true, _) => Err(CallError::Refused { members, refusal }.into()),
            (false, true) => Err(CallError::TooManyProcesses { members }.into()),
            (false, false) => {
                self.again.push_back(Call { is_again: is_over, ..call });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use smt_replica::Refusal;

    use super::*;

    /// The end of the only request in progress with this refusal, of session 5.
    fn refuse(calls: &mut Calls, refusal: Refusal) -> (Result<(), CallError>, Option<u64>) {
        let mut session = Some(5);
        let completion = Completion { number: 7, result: Err(refusal) };
        let ended = calls.end((completion, "replicas"), &mut session, |_, _| Ok(()));
        (ended, session)
    }

    fn calls() -> Calls {
        let mut calls = Calls::default();
        calls.in_progress.insert(7, Call::new((3, vec![1])));
        calls
    }

    const OVER: Refusal =
        Refusal { reason: RefusalReason::SessionIsOver, may_have_run: false, newest: 9 };

    // Once, a session that was over for so long that the group no longer knew it stayed that of the
    // process, whose requests were refused ever after.
    #[test]
    fn a_request_after_any_refusal_is_made_in_another_session() {
        for may_have_run in [true, false] {
            let mut calls = calls();
            let (ended, session) = refuse(&mut calls, Refusal { may_have_run, ..OVER });
            assert_eq!((ended.is_err(), session), (may_have_run, None));
            assert_eq!(calls.again.is_empty(), may_have_run, "one that did not run is made again");
        }
    }

    // Once, nine processes ended each other's sessions for ever, and each request that was made
    // again had all its time again.
    #[test]
    fn a_request_whose_session_is_over_twice_ends_with_an_error_and_has_its_time_once() {
        let mut calls = calls();
        let oldest = calls.oldest();
        assert!(refuse(&mut calls, OVER).0.is_ok());
        let again = calls.again.pop_front();
        calls.in_progress.extend(again.map(|it| (7, it)));
        assert_eq!(calls.oldest(), oldest);
        let error = refuse(&mut calls, OVER).0.err().map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains("more than eight processes of this client"), "{error}");
        assert!(error.contains("the request did not run"), "{error}");
    }
}
