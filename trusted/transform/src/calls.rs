// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The last request of each caller that was a step of some node, and its answer.

use std::collections::{BTreeMap, VecDeque};

use smt_replica::{Digest, Request};

use crate::caller::Caller;

/// Answers of a client that are kept, for requests that come again, at most: those of the requests
/// in progress of eight processes.
const ANSWERS_MAX: usize = 256;
/// Bytes of the answers of a client that are kept, beside its last one.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// A request that was a step.
#[derive(Clone, Debug)]
struct Call {
    number: u64,
    request: Digest,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    None,
    Kept(Vec<u8>),
    Dropped,
}

/// The last request of each caller.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    of_callers: BTreeMap<Caller, Call>,
    kept: BTreeMap<u32, Kept>,
}

/// The answers of a client that are kept: whose they are, and their bytes.
#[derive(Debug, Default)]
struct Kept {
    order: VecDeque<(Caller, u64)>,
    bytes: usize,
}

/// All that is known of a request by its number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    /// It has no answer yet.
    Open,
    /// It has an answer.
    Answered,
    /// It has an answer that is no longer kept.
    Dropped,
    /// Its caller has made a later one.
    Over,
}

impl Calls {
    /// A request was a step. The first of two with one number stays: no correct client makes two.
    pub(crate) fn begin(&mut self, request: &Request) {
        let (caller, number) = (Caller::of(request), request.number);
        let known = self.of_callers.get(&caller);
        if known.is_none_or(|it| it.number < number) {
            let call = Call { number, request: request.digest(), answer: Answer::None };
            let before = self.of_callers.insert(caller, call);
            if let Some(Answer::Kept(answer)) = before.map(|it| it.answer)
                && let Some(kept) = self.kept.get_mut(&caller.client)
            {
                kept.bytes -= answer.len();
                kept.order.retain(|it| it.0 != caller);
            }
        }
    }

    /// A request has an answer. Returns the request's digest, if it is the last of its caller.
    pub(crate) fn end(&mut self, caller: Caller, number: u64, answer: &[u8]) -> Option<Digest> {
        let call = self.of_callers.get_mut(&caller).filter(|it| it.number == number)?;
        let request = call.request;
        let kept = self.kept.entry(caller.client).or_default();
        if let Answer::Kept(before) = &call.answer {
            kept.bytes -= before.len();
            kept.order.retain(|it| it.0 != caller);
        }
        call.answer = Answer::Kept(answer.to_vec());
        kept.bytes += answer.len();
        kept.order.push_back((caller, number));
        self.drop_answers(caller.client);
        Some(request)
    }

    fn drop_answers(&mut self, client: u32) {
        let Some(kept) = self.kept.get_mut(&client) else {
            return;
        };
        let is_full = |it: &Kept| it.order.len() > ANSWERS_MAX || it.bytes > ANSWER_BYTES_MAX;
        while kept.order.len() > 1
            && is_full(kept)
            && let Some((caller, _)) = kept.order.pop_front()
        {
            if let Some(call) = self.of_callers.get_mut(&caller)
                && let Answer::Kept(answer) = std::mem::replace(&mut call.answer, Answer::Dropped)
            {
                kept.bytes -= answer.len();
            }
        }
    }

    /// All that is known of a request with this number.
    pub(crate) fn standing(&self, caller: Caller, number: u64) -> Standing {
        let Some(call) = self.of_callers.get(&caller).filter(|it| it.number >= number) else {
            return Standing::Open;
        };
        match call.answer {
            _ if call.number > number => Standing::Over,
            Answer::None => Standing::Open,
            Answer::Kept(_) => Standing::Answered,
            Answer::Dropped => Standing::Dropped,
        }
    }

    /// The digest of a request with an answer that is kept, and the answer.
    pub(crate) fn answered(&self, caller: Caller, number: u64) -> Option<(Digest, &Vec<u8>)> {
        let call = self.call(caller, number)?;
        match &call.answer {
            Answer::Kept(answer) => Some((call.request, answer)),
            Answer::None | Answer::Dropped => None,
        }
    }

    fn call(&self, caller: Caller, number: u64) -> Option<&Call> {
        self.of_callers.get(&caller).filter(|it| it.number == number)
    }
}

/// For liars.
#[cfg(feature = "sim")]
impl Calls {
    /// The digest of the request of a caller with this number.
    pub(crate) fn request(&self, caller: Caller, number: u64) -> Option<Digest> {
        self.call(caller, number).map(|it| it.request)
    }

    /// The last answer to a client that is kept: number and digest of the request, and the answer.
    pub(crate) fn last_answer(&self, client: u32) -> Option<(u64, Digest, Vec<u8>)> {
        let (caller, number) = *self.kept.get(&client)?.order.back()?;
        let (request, answer) = self.answered(caller, number)?;
        Some((number, request, answer.clone()))
    }

    /// A request of a client without an answer.
    pub(crate) fn open(&self, client: u32) -> Option<(u64, Digest)> {
        let is_open =
            |it: &(&Caller, &Call)| it.0.client == client && matches!(it.1.answer, Answer::None);
        self.of_callers.iter().find(is_open).map(|(_, it)| (it.number, it.request))
    }
}

#[cfg(test)]
mod tests {
    use smt_replica::{IN_PROGRESS_MAX, Proof};

    use super::*;

    fn request(process: u8, number: u64) -> Request {
        let (nonce, operation, proof) = ([process; 16], vec![process], Proof::default());
        Request { client: 1, number, nonce, operation, proof }
    }

    fn end(calls: &mut Calls, it: &Request, answer: &[u8]) -> Option<Digest> {
        calls.end(Caller::of(it), it.number, answer)
    }

    fn is_kept(calls: &Calls, it: &Request) -> bool {
        calls.standing(Caller::of(it), it.number) == Standing::Answered
    }

    #[test]
    fn an_answer_is_that_of_its_process_and_of_the_last_request_of_its_place() {
        let mut calls = Calls::default();
        let (one, other) = (request(1, 5), request(2, 5));
        calls.begin(&one);
        assert_eq!(end(&mut calls, &other, b"a"), None, "it was no step");
        assert_eq!(end(&mut calls, &one, b"a"), Some(one.digest()));
        assert!(is_kept(&calls, &one) && !is_kept(&calls, &other));
        let next = request(1, 5 + IN_PROGRESS_MAX);
        calls.begin(&next);
        assert_eq!(calls.standing(Caller::of(&next), next.number), Standing::Open);
        assert_eq!(end(&mut calls, &one, b"b"), None, "its process has left it");
        assert_eq!(calls.standing(Caller::of(&one), one.number), Standing::Over);
        calls.begin(&one);
        assert_eq!(end(&mut calls, &next, b"b"), Some(next.digest()));
    }

    #[test]
    fn answers_of_a_client_are_bounded_in_number_and_bytes_but_for_the_last_one() {
        let mut calls = Calls::default();
        let all: Vec<Request> =
            (0..=ANSWERS_MAX).map(|it| request((it / 32) as u8, (it % 32) as u64)).collect();
        for it in &all {
            calls.begin(it);
            end(&mut calls, it, b"a");
        }
        let kept = |calls: &Calls| all.iter().filter(|it| is_kept(calls, it)).count();
        assert_eq!(kept(&calls), ANSWERS_MAX);
        assert_eq!(calls.standing(Caller::of(&all[0]), 0), Standing::Dropped);
        // The same answer again is none beside it.
        end(&mut calls, &all[9], b"a");
        assert_eq!(kept(&calls), ANSWERS_MAX);
        end(&mut calls, &all[7], &vec![0; ANSWER_BYTES_MAX]);
        assert!(kept(&calls) == 1 && is_kept(&calls, &all[7]));
        end(&mut calls, &all[8], &vec![0; ANSWER_BYTES_MAX + 1]);
        assert!(kept(&calls) == 1 && is_kept(&calls, &all[8]));
    }
}
