// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions of a request, by valgrind: the same at each run, whatever else the machine does.

use std::process::{Command, Stdio};

use super::system::System;
use crate::Failure;

/// Clients of a run that is counted.
const CLIENTS: u32 = 16;
/// Requests of each client in the shorter and the longer of two runs: start and end cancel out.
const REQUESTS: [u64; 2] = [4, 24];

/// Instructions of a request in this process: replicas, client and a library's devices, and not
/// those of device processes. Nothing if valgrind cannot be had, or the devices are emulated: a
/// busy wait is no work of the system.
pub(crate) fn per_request(system: &System) -> Result<Option<f64>, Failure> {
    let Some(arguments) = system.arguments() else {
        return Ok(None);
    };
    let mut counts = [0.0; 2];
    for (count, requests) in counts.iter_mut().zip(REQUESTS) {
        let Some(counted) = count_of(&arguments, requests)? else {
            return Ok(None);
        };
        *count = counted;
    }
    let requests = (REQUESTS[1] - REQUESTS[0]) * u64::from(CLIENTS);
    Ok(Some((counts[1] - counts[0]) / requests as f64))
}

fn count_of(system: &[String], requests: u64) -> Result<Option<f64>, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(std::env::current_exe()?).arg("in-memory").args(system);
    valgrind.arg(CLIENTS.to_string()).arg(requests.to_string()).stdin(Stdio::null());
    let output = match valgrind.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        output => output?,
    };
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("a run under valgrind has failed: {told}").into());
    }
    Ok(Some(collected(&told).ok_or("valgrind tells no count")?))
}

/// The number of the line "==PID== Collected : NUMBER".
fn collected(told: &str) -> Option<f64> {
    let line = told.lines().find_map(|line| line.split_once("Collected : "))?;
    line.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_instructions_is_read() {
        let told = "==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(told), Some(1_234_567.0));
        assert_eq!(collected("==7== nothing\n"), None);
    }
}
