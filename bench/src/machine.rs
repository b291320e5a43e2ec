// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine that a number was measured on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The machine, the build and the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Commit of the source tree that this program was built in; with `+` if files were changed
    /// since.
    pub(crate) commit: String,
    pub(crate) build: &'static str,
    pub(crate) load_average: String,
    pub(crate) started_unix_s: u64,
    pub(crate) command: String,
}

impl Machine {
    /// This one, now.
    pub(crate) fn here() -> Self {
        let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = facts
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        let model = model.map_or(std::env::consts::ARCH, |line| {
            line.trim_start_matches([' ', '\t', ':'])
        });
        let processors = facts.lines().filter(|line| line.starts_with("processor"));
        let read = |path| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            cpu: model.to_owned(),
            cores: processors.count(),
            kernel: read("/proc/sys/kernel/osrelease"),
            commit: commit(),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            load_average: read("/proc/loadavg"),
            started_unix_s: since.map_or(0, |since| since.as_secs()),
            command: command_line(),
        }
    }
}

fn command_line() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(arguments)
            .output();
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
