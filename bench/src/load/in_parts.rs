// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies in parts, by a task for each caller.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::tasks::{TaskCaller, Tasks};
use super::{Group, Tally};
use crate::failure::{Doing, Failure};
use crate::parts::Wanted;

/// A caller, and the times of its calls.
type Finished<C> = (Vec<C>, Result<Vec<Duration>, Failure>);

impl<C: TaskCaller> Tasks<C> {
    /// As [`super::Callers::closed`], for callers whose replies have parts. The rate is that of
    /// all calls from the first one's begin to the last one's end: thousands of callers have few
    /// calls each. Times go into one tally: one for each caller would be the memory that is
    /// measured.
    pub(super) fn closed_in_parts(
        &mut self,
        group: Group,
        duration: Duration,
    ) -> Result<Tally, Failure> {
        let hands = std::mem::take(&mut self.hands);
        let began = Instant::now();
        let finished: Vec<Finished<C>> = self
            .runtime
            .block_on(async {
                let mut tasks = JoinSet::new();
                for mut hand in hands {
                    tasks.spawn(async move {
                        let outcome = call_until(&mut hand, group, began + duration).await;
                        (hand, outcome)
                    });
                }
                tokio::time::timeout(duration + FINISH, tasks.join_all()).await
            })
            .doing("calls in parts have not ended")?;
        let elapsed = began.elapsed();
        let mut tally = Tally::new()?;
        for (hand, times) in finished {
            times?.into_iter().for_each(|time| tally.record(time));
            self.hands.push(hand);
        }
        tally.took(elapsed);
        Ok(tally)
    }
}

/// At least one call, and the time of each.
async fn call_until<C: TaskCaller>(
    hand: &mut [C],
    group: Group,
    end: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    let mut last = Instant::now();
    for turn in (0..hand.len()).cycle() {
        let wanted = Wanted::new(group.parts, group.reply);
        hand[turn].call_in_parts(wanted, group.request).await?;
        let now = Instant::now();
        times.push(now - last);
        last = now;
        if now >= end {
            break;
        }
    }
    Ok(times)
}

/// Eight thousand calls of 64 parts are half a gigabyte, and all have begun at the end.
const FINISH: Duration = Duration::from_secs(20);
