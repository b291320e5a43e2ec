// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processor time of processes.

use crate::Failure;

/// Ticks of `/proc/PID/stat` in a second: USER_HZ, which is 100 on all of Linux's architectures
/// that this runs on.
const TICKS: f64 = 100.0;

/// Seconds that a process has computed, its threads and the kernel's work for it included.
pub(crate) fn seconds_of(process: u32) -> Result<f64, Failure> {
    seconds_in(&std::fs::read_to_string(format!("/proc/{process}/stat"))?)
}

/// Reads the fields 14 and 15 (proc(5)): the name before may have any characters.
fn seconds_in(stat: &str) -> Result<f64, Failure> {
    let after_name = stat.rsplit_once(')').ok_or("no name in /proc/PID/stat")?.1;
    let fields = after_name.split_whitespace().skip(11).take(2);
    let ticks: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    match ticks[..] {
        [user, system] => Ok((user + system) / TICKS),
        _ => Err("too few fields in /proc/PID/stat".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_no_field() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        assert!((seconds_in(stat).unwrap() - 2.0).abs() < 1e-9);
        assert!(seconds_in("7 (a) S 1").is_err());
    }

    #[test]
    fn the_own_process_has_a_time() {
        assert!(seconds_of(std::process::id()).unwrap() >= 0.0);
    }
}
