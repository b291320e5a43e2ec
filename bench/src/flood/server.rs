// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server process: echoes, and tells what it has used and counted when asked.

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smt::Identity;
use smt::blocking::Server;

use crate::certificates::{certificate, key};
use crate::cpu;
use crate::failure::{Doing, Failure};
use crate::process::Process;
use crate::server::{listening, say};

/// The counts of a server since it began.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Use {
    pub(super) cpu: Duration,
    pub(super) peak_bytes: u64,
    pub(super) datagrams: u64,
    pub(super) cookies: u64,
    pub(super) sessions: u64,
    pub(super) failures: u64,
}

impl Use {
    /// Asks the server.
    pub(super) fn of(server: &mut Process) -> Result<Self, Failure> {
        server.say(ASK)?;
        let line = server.hear(ANSWER).doing("the server")?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// Serves until the input ends.
pub(crate) fn run(directory: &str) -> Result<(), Failure> {
    let directory = Path::new(directory);
    let identity = Identity::from_pem_files(certificate(directory), key(directory))?;
    let server = smt::server(identity).bind_blocking("127.0.0.1:0")?;
    listening(server.local_address())?;
    let echoing = server.clone();
    std::thread::spawn(move || {
        while let Some(request) = echoing.accept_request() {
            let body = request.body().clone();
            // A client that is gone hears nothing.
            let _ = request.reply(body);
        }
    });
    for line in std::io::stdin().lock().lines() {
        line?;
        say(&serde_json::to_string(&used(&server)?)?)?;
    }
    Ok(())
}

fn used(server: &Server) -> Result<Use, Failure> {
    let counted = server.statistics().protocol;
    Ok(Use {
        cpu: cpu::used(),
        peak_bytes: cpu::peak_bytes()?,
        datagrams: counted.datagrams_received,
        cookies: counted.cookies_sent,
        sessions: counted.sessions_begun,
        failures: counted.handshakes_failed,
    })
}

const ASK: &str = "used";
const ANSWER: Duration = Duration::from_secs(20);
