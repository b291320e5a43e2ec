// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine that a number was measured on, in one line.

use std::fmt;
use std::fs;

use serde::Serialize;

/// The machine and the build.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    os: &'static str,
    kernel: String,
    version: &'static str,
    build: &'static str,
    /// `None`: the system does not tell.
    aes: Option<bool>,
}

impl Machine {
    /// This machine, as far as it tells.
    pub(crate) fn here() -> Self {
        let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        // Not `available_parallelism`: a process that is pinned has one core of many.
        let listed = facts.lines().filter(|line| line.starts_with("processor")).count();
        Self {
            cpu: field(&facts, "model name").unwrap_or(std::env::consts::ARCH).to_owned(),
            cores: if listed == 0 { cores() } else { listed },
            os: std::env::consts::OS,
            kernel: kernel.trim().to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            build: if is_debug() { "debug" } else { "release" },
            // x86 and Arm name the list differently, and the instruction alike.
            aes: field(&facts, "flags")
                .or_else(|| field(&facts, "Features"))
                .map(|list| list.split(' ').any(|word| word == "aes")),
        }
    }

    /// Whether the CPU has instructions for AES; `None` if the system does not tell.
    pub(crate) fn has_aes(&self) -> Option<bool> {
        self.aes
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, os, kernel, version, build, aes: _ } = self;
        write!(f, "{cpu}, {cores} cores, {os} {kernel}, smt {version} ({build})")
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Whether measuring is pointless.
pub(crate) const fn is_debug() -> bool {
    cfg!(debug_assertions)
}

/// The value of the first `name : value`.
fn field<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    };
    facts.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    mod field {
        use super::super::field;

        #[test]
        fn is_the_first_of_its_name() {
            let facts = "processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n";
            assert_eq!(field(facts, "model name"), Some("A: B"));
            assert_eq!(field(facts, "model"), None);
        }
    }
}
