// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The counts of a turn and the queue of answers alone, with everything that may come between two
//! of their steps.

use std::sync::Arc;

use shuttle::thread;
use smt_proto::RpcId;
use smt_wire::{MessageId, SessionIndex};

use super::endpoint::body;
use super::schedules::try_orders;
use crate::answer_queue::{Answer, AnswerQueue};
use crate::sync::{Mutex, TryLockError};
use crate::turn::Turn;

#[test]
fn the_last_taker_or_the_leader_sees_the_end_of_a_turn() {
    try_orders(3_000, || {
        let turn = Arc::new(Turn::new());
        (0..3).for_each(|_| turn.tell());
        let takers = [1, 2].map(|count| {
            let turn = Arc::clone(&turn);
            thread::spawn(move || turn.take(count))
        });
        let has_ended = !turn.await_end();
        let ends = takers.map(|taker| usize::from(taker.join().unwrap()));
        let seen = ends.iter().sum::<usize>() + usize::from(has_ended);
        assert_eq!(seen, 1, "the end of a turn was seen so often");
        assert!(!turn.is_awaited());
    });
}

/// The answer queue in the hands of its users: handlers that give answers, and the thread that has
/// the lock.
struct Queued {
    queue: AnswerQueue,
    /// The answers that were taken, which the lock protects.
    taken: Mutex<Vec<u64>>,
}

impl Queued {
    fn answer(&self, id: u64) {
        let rpc = RpcId { session: SessionIndex(1), id: MessageId(id) };
        self.queue.push(Answer::Reply(rpc, body(1).into())).unwrap();
        self.take_answers();
    }

    fn take_answers(&self) {
        while !self.queue.is_empty() {
            let mut taken = match self.taken.try_lock() {
                Ok(taken) => taken,
                Err(TryLockError::WouldBlock) => return,
                Err(TryLockError::Poisoned(_)) => panic!("nobody panics"),
            };
            taken.extend(self.queue.take().iter().map(id_of));
        }
    }

    /// A thread has the lock for something else.
    fn change(&self) {
        let mut taken = self.taken.lock().unwrap();
        taken.extend(self.queue.take().iter().map(id_of));
        drop(taken);
        self.take_answers();
    }
}

fn id_of(answer: &Answer) -> u64 {
    match answer {
        Answer::Reply(rpc, _) | Answer::Fail(rpc, _) | Answer::Abort(rpc, _) => rpc.id.0,
    }
}

#[test]
fn every_answer_is_taken_once_whoever_has_the_lock() {
    try_orders(3_000, || {
        let queued = Arc::new(Queued { queue: AnswerQueue::new(), taken: Mutex::default() });
        let run = |act: fn(&Queued)| {
            let queued = Arc::clone(&queued);
            thread::spawn(move || act(&queued))
        };
        let threads =
            [run(|queued| queued.answer(1)), run(|queued| queued.answer(2)), run(Queued::change)];
        for thread in threads {
            thread.join().unwrap();
        }
        let mut taken = queued.taken.lock().unwrap();
        taken.sort_unstable();
        assert_eq!(*taken, [1, 2]);
    });
}
