// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A task for each caller, all on one runtime.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::{Arrivals, Callers, FINISH, Group, Tally, check};
use crate::failure::{Doing, Failure};
use crate::frame;
use crate::job::Flavor;
use crate::parts::Wanted;

/// One way to call, used by one task at a time.
pub(crate) trait TaskCaller: Send + 'static {
    /// Sends `request`, waits for the reply, and gives its length.
    fn call(&mut self, request: &Bytes) -> impl Future<Output = Result<usize, Failure>> + Send;

    /// Asks for a reply in parts by a request of `length` bytes, and checks each part that comes.
    fn call_in_parts(
        &mut self,
        _wanted: Wanted,
        _length: u32,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Err(Failure::new("this peer has no replies in parts")))
    }
}

/// Callers; each has one connection or takes several in turn.
pub(crate) struct Tasks<C> {
    pub(super) runtime: Runtime,
    pub(super) hands: Vec<Vec<C>>,
}

/// As all peers on tokio get it, on both sides.
pub(crate) fn runtime(flavor: Flavor) -> Result<Runtime, Failure> {
    let mut builder = match flavor {
        Flavor::CurrentThread => tokio::runtime::Builder::new_current_thread(),
        Flavor::TwoWorkers => tokio::runtime::Builder::new_multi_thread(),
    };
    if let Flavor::TwoWorkers = flavor {
        builder.worker_threads(2);
    }
    builder.enable_all().build().doing("starting tokio")
}

impl<C> Tasks<C> {
    /// Callers whose connections belong to `runtime`.
    pub(crate) fn new(runtime: Runtime, hands: Vec<Vec<C>>) -> Self {
        Self { runtime, hands }
    }
}

type Finished<C> = (usize, Vec<C>, Result<Tally, Failure>);

impl<C: TaskCaller> Callers for Tasks<C> {
    fn closed(&mut self, groups: &[Group], duration: Duration) -> Result<Vec<Tally>, Failure> {
        if let [group @ Group { parts: 1.., .. }] = groups {
            return Ok(vec![self.closed_in_parts(*group, duration)?]);
        }
        let hands = std::mem::take(&mut self.hands);
        let group_of = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| std::iter::repeat_n((number, *group), group.callers));
        let finished: Vec<Finished<C>> = self
            .runtime
            .block_on(async {
                let mut tasks = JoinSet::new();
                for (mut hand, (number, group)) in hands.into_iter().zip(group_of) {
                    tasks.spawn(async move {
                        let outcome = call_until(&mut hand, group, duration).await;
                        (number, hand, outcome)
                    });
                }
                let all = tasks.join_all();
                tokio::time::timeout(duration + FINISH, all).await
            })
            .doing("calls have not ended")?;
        let empty = groups.iter().map(|_| Tally::new());
        let mut tallies = empty.collect::<Result<Vec<_>, _>>()?;
        let mut hands: Vec<(usize, Vec<C>)> = Vec::new();
        for (number, hand, outcome) in finished {
            tallies[number].add(&outcome?)?;
            hands.push((number, hand));
        }
        // Callers of the same group may change places, others not.
        hands.sort_by_key(|(number, _)| *number);
        self.hands = hands.into_iter().map(|(_, hand)| hand).collect();
        Ok(tallies)
    }

    fn open(&mut self, size: u32, mut arrivals: Arrivals) -> Result<Tally, Failure> {
        let hands = std::mem::take(&mut self.hands);
        let began = arrivals.began();
        let request = frame::request(size, size);
        let mut tally = self.runtime.block_on(call_all_when_due(hands, request, arrivals))?;
        tally.end(began);
        Ok(tally)
    }
}

async fn call_until<C: TaskCaller>(
    hand: &mut [C],
    group: Group,
    duration: Duration,
) -> Result<Tally, Failure> {
    let request = group.message();
    let mut tally = Tally::new()?;
    let began = Instant::now();
    let mut last = began;
    let mut turn = 0;
    while last - began < duration {
        check(hand[turn].call(&request).await?, group.reply)?;
        turn = (turn + 1) % hand.len();
        let now = Instant::now();
        tally.record(now - last);
        last = now;
    }
    tally.end(began);
    Ok(tally)
}

/// The clock is looked at in each turn of the runtime: its own timers are a millisecond coarse.
async fn call_all_when_due<C: TaskCaller>(
    hands: Vec<Vec<C>>,
    request: Bytes,
    mut arrivals: Arrivals,
) -> Result<Tally, Failure> {
    let limit = arrivals.limit();
    let (due_calls, queue) = mpsc::unbounded_channel();
    let queue = Arc::new(Mutex::new(queue));
    let (results, mut finished) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for hand in hands {
        let (queue, request, results) = (Arc::clone(&queue), request.clone(), results.clone());
        tasks.spawn(call_from_queue(hand, request, queue, results));
    }
    drop(results);
    let mut in_progress = BTreeMap::new();
    for (number, due) in (0_u64..).zip(arrivals) {
        while Instant::now() < due {
            tokio::task::yield_now().await;
        }
        in_progress.insert(number, due);
        due_calls.send(number)?;
    }
    drop(due_calls);
    let mut tally = Tally::new()?;
    while !in_progress.is_empty() {
        let next = tokio::time::timeout_at(limit.into(), finished.recv());
        let Ok(Some((number, ended))) = next.await else {
            break;
        };
        if let Some(due) = in_progress.remove(&number) {
            tally.record_until(due, ended?, limit);
        }
    }
    for due in in_progress.into_values() {
        tally.record_unfinished(due, limit);
    }
    Ok(tally)
}

/// A call's number, and when it ended.
type Ended = (u64, Result<Instant, Failure>);

async fn call_from_queue<C: TaskCaller>(
    mut hand: Vec<C>,
    request: Bytes,
    queue: Arc<Mutex<mpsc::UnboundedReceiver<u64>>>,
    results: mpsc::UnboundedSender<Ended>,
) {
    loop {
        let next = queue.lock().await.recv().await;
        let Some(number) = next else { return };
        let outcome = hand[0].call(&request).await;
        let outcome = outcome.and_then(|length| check(length, request.len() as u32));
        // The receiver is gone after the time to finish.
        let _ = results.send((number, outcome.map(|()| Instant::now())));
    }
}
