// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Concurrent callers as tokio tasks, all on one thread.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use smt::{Builder, Client};
use tokio::runtime::{self, Runtime};

use super::load::{Load, check, histogram, record, request_of};
use crate::failure::{Doing, Failure};
use crate::size::Size;

/// A client with its runtime.
pub(super) struct Tasks {
    runtime: Runtime,
    client: Client,
    concurrency: usize,
}

impl Tasks {
    /// Connects.
    pub(super) fn connect(
        builder: Builder,
        address: &str,
        concurrency: usize,
    ) -> Result<Self, Failure> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .doing("starting tokio")?;
        let client = runtime.block_on(builder.connect(address))?;
        Ok(Self {
            runtime,
            client,
            concurrency,
        })
    }
}

impl Load for Tasks {
    fn run(&mut self, size: Size, duration: Duration) -> Result<Histogram<u64>, Failure> {
        let request = request_of(size);
        self.runtime.block_on(async {
            let end = Instant::now() + duration;
            let task = |_| tokio::spawn(run_one(self.client.clone(), request.clone(), end));
            let tasks: Vec<_> = (0..self.concurrency).map(task).collect();
            let mut total = histogram()?;
            for task in tasks {
                for time in task.await.doing("waiting for a measuring task")?? {
                    record(&mut total, time);
                }
            }
            Ok(total)
        })
    }
}

async fn run_one(client: Client, request: Bytes, end: Instant) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    let mut began = Instant::now();
    while began < end {
        let reply = client.call(request.clone()).await?;
        check(reply.len(), &request)?;
        let now = Instant::now();
        times.push(now - began);
        began = now;
    }
    Ok(times)
}
