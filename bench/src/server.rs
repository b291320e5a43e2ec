// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server process: serves a peer, and tells what it has used when asked. It ends with its
//! input.

use std::io::{BufRead, Write};
use std::net::SocketAddr;

use crate::failure::Failure;
use crate::job::{LISTENING, ServerJob, USED};
use crate::{cpu, peers};

/// Runs until the input ends.
pub(crate) fn run(job: &str) -> Result<(), Failure> {
    let job: ServerJob = serde_json::from_str(job)?;
    let peer = peers::by_name(&job.peer)?;
    cpu::raise_descriptor_limit()?;
    job.core.map_or(Ok(()), cpu::pin)?;
    answer_questions_until_the_end();
    let address = SocketAddr::new(job.address, 0);
    peer.serve(&job.setting, address)
}

/// Tells where a server listens.
pub(crate) fn listening(address: SocketAddr) -> Result<(), Failure> {
    say(&format!("{LISTENING}{address}"))
}

/// Answers in a thread of its own. The process ends with its input.
pub(crate) fn answer_questions_until_the_end() {
    std::thread::spawn(|| {
        if let Err(failure) = answer_questions() {
            eprintln!("{failure}");
        }
        std::process::exit(0);
    });
}

fn answer_questions() -> Result<(), Failure> {
    for line in std::io::stdin().lock().lines() {
        if line? == USED {
            let (cpu, memory) = (cpu::used().as_nanos(), cpu::resident_bytes()?);
            say(&format!("{cpu} {memory} {}", cpu::peak_bytes()?))?;
        }
    }
    Ok(())
}

/// Writes a line to the process that started this one.
pub(crate) fn say(line: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
