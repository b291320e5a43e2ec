// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Concurrent callers as tokio tasks, all on one thread.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use smt::Client;
use tokio::runtime::{self, Runtime};

use super::load::{Load, check, histogram, record, request_of};
use crate::failure::{Doing, Failure};
use crate::size::Size;

/// One caller: makes a call, waits for the reply.
pub(super) trait TaskCaller: Send + 'static {
    /// Sends `request`, and gives the reply's length.
    fn call(&mut self, request: &Bytes) -> impl Future<Output = Result<usize, Failure>> + Send;
}

/// Callers with a task each, and their runtime.
pub(super) struct Tasks<C> {
    pub(super) runtime: Runtime,
    pub(super) callers: Vec<C>,
}

/// A runtime of one thread: this one.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.doing("starting tokio")
}

impl<C: TaskCaller> Load for Tasks<C> {
    fn run(&mut self, size: Size, duration: Duration) -> Result<Histogram<u64>, Failure> {
        let request = request_of(size);
        let callers = std::mem::take(&mut self.callers);
        self.runtime.block_on(async {
            let end = Instant::now() + duration;
            let task = |caller| tokio::spawn(run_one(caller, request.clone(), end));
            let tasks: Vec<_> = callers.into_iter().map(task).collect();
            let mut total = histogram()?;
            for task in tasks {
                let (caller, times) = task.await.doing("waiting for a measuring task")??;
                self.callers.push(caller);
                for time in times {
                    record(&mut total, time);
                }
            }
            Ok(total)
        })
    }
}

async fn run_one<C: TaskCaller>(
    mut caller: C,
    request: Bytes,
    end: Instant,
) -> Result<(C, Vec<Duration>), Failure> {
    let mut times = Vec::new();
    let mut began = Instant::now();
    while began < end {
        let length = caller.call(&request).await?;
        check(length, &request)?;
        let now = Instant::now();
        times.push(now - began);
        began = now;
    }
    Ok((caller, times))
}

impl TaskCaller for Client {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        Ok(Self::call(self, request.clone()).await?.len())
    }
}
