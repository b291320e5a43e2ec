// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The orders in which the threads of a model are tried.
//!
//! A failure prints the seed of its schedule, and the schedule: `SHUTTLE_RANDOM_SEED=…` plays the
//! former again.

use std::cell::Cell;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, MaxSteps, Runner};

/// Tries a model by orders in which any thread may run at any step, and by those that need few
/// changes of thread.
pub(super) fn try_orders(count: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    run(RandomScheduler::new(count), model.clone());
    run(PctScheduler::new(CHANGES, count), model);
}

/// Tries a model by orders in which a thread runs until it waits or yields: a task is polled to the
/// end of its poll.
pub(super) fn try_orders_of_polls(count: usize, model: impl Fn() + Send + Sync + 'static) {
    run(OrdersOfPolls(RandomScheduler::new(count)), model);
}

std::thread_local! {
    static HAS_POLLED: Cell<bool> = const { Cell::new(false) };
}

/// A poll is over, and another task may run although this one is ready to be polled again.
pub(super) fn end_poll() {
    HAS_POLLED.set(true);
}

/// Changes the thread only where that one waits or yields, and then at random.
struct OrdersOfPolls(RandomScheduler);

impl Scheduler for OrdersOfPolls {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.0.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let goes_on = current.filter(|_| !is_yielding && !HAS_POLLED.take());
        goes_on
            .filter(|current| runnable.iter().any(|task| task.id() == *current))
            .or_else(|| self.0.next_task(runnable, current, is_yielding))
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(model);
}

/// Changes of thread where one could run on.
const CHANGES: usize = 4;
const STACK_BYTES: usize = 256 << 10;
/// A model that takes more steps goes round in circles.
const STEPS_MAX: usize = 200_000;
