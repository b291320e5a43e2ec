// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server process: sends a stream, or takes one, as its request says.

use smt::Request;
use tokio::io::{BufReader, copy_buf};

use super::Job;
use super::bytes::{Drain, Source};
use super::direction::Direction;
use crate::failure::Failure;
use crate::load::runtime;
use crate::peers::server_builder;
use crate::{cpu, server};

/// Serves until the input ends.
pub(crate) fn run(job: &str) -> Result<(), Failure> {
    let job: Job = serde_json::from_str(job)?;
    job.server_core.map_or(Ok(()), cpu::pin)?;
    server::answer_questions_until_the_end();
    let builder = server_builder(&job.setting)?;
    runtime(job.setting.on_tokio.flavor)?.block_on(async {
        let server = builder.bind(job.address).await?;
        server::listening(server.local_address())?;
        while let Some(request) = server.accept_request().await {
            let job = job.clone();
            tokio::spawn(async move {
                if let Err(failure) = answer(request, &job).await {
                    eprintln!("{failure}");
                }
            });
        }
        Ok(())
    })
}

/// The reply says what this side has seen.
async fn answer(request: Request, job: &Job) -> Result<(), Failure> {
    let seen = match job.direction {
        // The call that has made the connection has no parts.
        _ if request.body().is_empty() => return Ok(request.reply("ready")?),
        Direction::Download => {
            let source = Source::new(job.bytes, job.seed);
            let mut source = BufReader::with_capacity(job.buffer, source);
            copy_buf(&mut source, &mut request.part_sender()).await?;
            source.into_inner().seen()
        }
        Direction::Upload => {
            let reader = request.parts().into_reader();
            let mut reader = BufReader::with_capacity(job.buffer, reader);
            let mut drain = Drain::new();
            copy_buf(&mut reader, &mut drain).await?;
            drain.seen()
        }
    };
    Ok(request.reply(seen.text())?)
}
