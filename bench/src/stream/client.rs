// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client process: takes a stream of its server, or sends one.

use std::net::SocketAddr;
use std::time::Instant;

use smt::Client;
use tokio::io::{AsyncWriteExt, BufReader, copy_buf};

use super::bytes::{Drain, Seen, Source};
use super::direction::Direction;
use super::{Found, Job};
use crate::failure::{Doing, Failure};
use crate::job::READY;
use crate::load::runtime;
use crate::peers::client_builder;
use crate::{client, cpu, server};

/// Runs one measurement.
pub(crate) fn run(job: &str, address: SocketAddr) -> Result<(), Failure> {
    let job: Job = serde_json::from_str(job)?;
    job.client_core.map_or(Ok(()), cpu::pin)?;
    let builder = client_builder(&job.setting)?;
    runtime(job.setting.on_tokio.flavor)?.block_on(async {
        let client = builder.connect(address).await?;
        client.call("").await?;
        server::say(READY)?;
        client::wait_for_word()?;
        let (resident_bytes, cpu_before) = (cpu::resident_bytes()?, cpu::used());
        let began = Instant::now();
        let (here, there) = match job.direction {
            Direction::Download => download(&client, &job).await,
            Direction::Upload => upload(&client, &job).await,
        }
        .doing(job.direction.name())?;
        let found = Found {
            seconds: began.elapsed().as_secs_f64(),
            cpu_s: cpu::used().saturating_sub(cpu_before).as_secs_f64(),
            resident_bytes,
            peak_bytes: cpu::peak_bytes()?,
            bytes: here.bytes,
            here: here.text(),
            there,
        };
        server::say(&serde_json::to_string(&found)?)
    })
}

/// The bytes that were seen here, and those that the server says that it has seen.
async fn download(client: &Client, job: &Job) -> Result<(Seen, String), Failure> {
    let reader = client.call("send").reply_in_parts().await?.into_reader();
    let mut reader = BufReader::with_capacity(job.buffer, reader);
    let mut drain = Drain::new();
    copy_buf(&mut reader, &mut drain).await?;
    let reply = reader.into_inner().into_inner().reply().await?;
    let there = String::from_utf8_lossy(&reply.body).into_owned();
    Ok((drain.seen(), there))
}

async fn upload(client: &Client, job: &Job) -> Result<(Seen, String), Failure> {
    let (mut sender, reply) = client.call("take").in_parts().await?;
    let source = Source::new(job.bytes, job.seed);
    let mut source = BufReader::with_capacity(job.buffer, source);
    copy_buf(&mut source, &mut sender).await?;
    sender.shutdown().await?;
    let reply = reply.reply().await?;
    let there = String::from_utf8_lossy(&reply.body).into_owned();
    Ok((source.into_inner().seen(), there))
}
