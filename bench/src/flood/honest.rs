// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that connects anew for each call.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use smt::Trust;

use crate::certificates::{SERVER_NAME, authority};
use crate::failure::Failure;

/// The sessions of a while.
#[derive(Debug)]
pub(super) struct Connections {
    /// Until the first reply of each, in order of their length.
    times: Vec<Duration>,
    pub(super) failed: u32,
    pub(super) time: Duration,
}

impl Connections {
    pub(super) fn came(&self) -> usize {
        self.times.len()
    }

    /// Microseconds until the first reply; 0 if there was none.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let time = self.times.get(last * percent / 100);
        time.map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// Connects again and again for so long, with a pause after each session.
pub(super) fn connect_for(
    directory: &Path,
    server: SocketAddr,
    time: Duration,
) -> Result<Connections, Failure> {
    let trust = Trust::roots_from_pem_files(&[authority(directory)])?;
    let (mut times, mut failed) = (Vec::new(), 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let begin = Instant::now();
        let client = smt::client(trust.clone()).server_name(SERVER_NAME);
        let reply = client
            .connect_blocking(server)
            .map_err(Failure::from)
            .and_then(|client| Ok(client.call([7; 64].as_slice()).wait()?));
        match reply {
            Ok(_) => times.push(begin.elapsed()),
            Err(failure) => {
                eprintln!("an honest client: {failure}");
                failed += 1;
            }
        }
        std::thread::sleep(PAUSE);
    }
    times.sort();
    Ok(Connections { times, failed, time: began.elapsed() })
}

const PAUSE: Duration = Duration::from_millis(10);
