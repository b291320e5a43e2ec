// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine that a number was measured on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine, the build and the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Commit of the source tree that this program was built in; with `+` if files were changed
    /// since.
    pub(crate) commit: String,
    pub(crate) build: String,
    pub(crate) load_average: String,
    pub(crate) started_unix_s: u64,
    pub(crate) command: String,
}

impl Machine {
    /// This one, now.
    pub(crate) fn here() -> Self {
        let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = facts.lines().find_map(|line| line.strip_prefix("model name"));
        let model =
            model.map_or(std::env::consts::ARCH, |line| line.trim_start_matches([' ', '\t', ':']));
        let processors = facts.lines().filter(|line| line.starts_with("processor"));
        let read = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            cpu: model.to_owned(),
            cores: processors.count(),
            kernel: read("/proc/sys/kernel/osrelease"),
            commit: commit(),
            build: match cfg!(debug_assertions) {
                true => "debug".to_owned(),
                false => RELEASE.to_owned(),
            },
            load_average: read("/proc/loadavg"),
            started_unix_s: since.map_or(0, |since| since.as_secs()),
            command: command_line(),
        }
    }

    /// Whether it measured what users run.
    pub(crate) fn is_release_build(&self) -> bool {
        self.build == RELEASE
    }

    /// The day of the run, in UTC.
    pub(crate) fn date(&self) -> String {
        date(self.started_unix_s)
    }
}

/// A time as the day that it is in, as 2026-11-25.
fn date(unix_s: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut days, mut year, mut month) = (unix_s / 86_400, 1970, 1);
    let days_of = |year| if is_leap(year) { 366 } else { 365 };
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

fn command_line() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if !changes.is_empty() => commit + "+",
        _ => commit,
    }
}

const RELEASE: &str = "release";

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn a_time_is_in_its_day() {
        for (unix_s, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_795_564_800, "2026-11-25"),
        ] {
            assert_eq!(date(unix_s), day);
        }
    }
}
