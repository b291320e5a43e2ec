// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of CPU time with call stacks: by perf, or by the sampler of `kit-aioquic`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kit_process::{Doing, Failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::rules::Rules;

/// Stacks, the innermost frame first, and how often each was met.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<(Vec<String>, u64)>);

/// The classes that samples went to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    /// Samples by class; those that no rule catches are of the class [`UNCAUGHT`].
    pub(crate) classes: BTreeMap<String, u64>,
    /// Innermost symbols of samples that no rule catches, the most frequent first.
    pub(crate) uncaught: Vec<(String, u64)>,
}

/// The class of samples that no rule catches.
pub(crate) const UNCAUGHT: &str = "uncaught";

impl Samples {
    /// The shares of the classes.
    pub(crate) fn classified(&self, rules: &Rules) -> Shares {
        let mut shares = Shares::default();
        let mut uncaught: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, count) in &self.0 {
            let frames: Vec<&str> = stack.iter().map(String::as_str).collect();
            let class = rules.class_of(&frames);
            if class.is_none() {
                let symbol = frames.first().copied().unwrap_or("?");
                *uncaught.entry(symbol).or_default() += count;
            }
            let class = class.unwrap_or(UNCAUGHT).to_owned();
            *shares.classes.entry(class).or_default() += count;
        }
        let uncaught = uncaught.into_iter().map(|(name, count)| (name.to_owned(), count));
        shares.uncaught = uncaught.collect();
        shares.uncaught.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        shares
    }
}

/// Reads a file of either kind.
pub(crate) fn read(path: &Path) -> Result<Samples, Failure> {
    let text = fs::read_to_string(path);
    let text = text.doing(&format!("reading {}", path.display()))?;
    let is_perf = text.starts_with(char::is_whitespace);
    Ok(match is_perf {
        true => of_perf(&text),
        false => of_collapsed(&text),
    })
}

/// Lines of `function;function COUNT`.
fn of_collapsed(text: &str) -> Samples {
    let stacks = text.lines().filter_map(|line| {
        let (stack, count) = line.rsplit_once(' ')?;
        let frames = stack.split(';').map(str::to_owned).collect();
        Some((frames, count.parse().ok()?))
    });
    Samples(stacks.collect())
}

/// The output of `perf script -F ip,sym,dso`: a line for each frame, an empty line behind a stack.
fn of_perf(text: &str) -> Samples {
    let mut stacks = Vec::new();
    let mut frames: Vec<String> = Vec::new();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        match line.split_once(' ') {
            Some((_address, rest)) => {
                let symbol = rest.rsplit_once(" (").map_or(rest, |(symbol, _)| symbol);
                frames.push(symbol.to_owned());
            }
            None if frames.is_empty() => {}
            None => stacks.push((std::mem::take(&mut frames), 1)),
        }
    }
    Samples(stacks)
}

/// perf, while it samples a process.
pub(crate) struct Perf {
    child: Child,
    data: PathBuf,
}

impl Perf {
    /// Samples a process from now on. `Ok(None)`: perf cannot be had, or may not sample here.
    pub(crate) fn begin(process: u32, folder: &Path, name: &str) -> Result<Option<Self>, Failure> {
        let path = |end: &str| folder.join(format!("{name}.{end}"));
        let (control, answer) = (path("control"), path("answer"));
        for path in [&control, &answer] {
            let _ = fs::remove_file(path);
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).doing("making a pipe")?;
        }
        // Open for both directions, so that opening waits for nobody.
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let mut orders = open(&control).doing("opening a pipe")?;
        let answers = open(&answer).doing("opening a pipe")?;
        let data = path("perf");
        let child = Command::new("perf")
            .args(["record", "--quiet", "--event", "cpu-clock", "--freq", FREQUENCY])
            .args(["--call-graph", "fp", "--delay", "-1", "--pid", &process.to_string()])
            .arg(format!("--control=fifo:{},{}", control.display(), answer.display()))
            .arg("--output")
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            return Ok(None);
        };
        let perf = Self { child, data };
        orders.write_all(b"enable\n").doing("ordering perf")?;
        Ok(is_answered(answers).then_some(perf))
    }

    /// Ends sampling, and reads what there is.
    pub(crate) fn end(mut self) -> Result<Samples, Failure> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(id) = id {
            let interrupt = rustix::process::Signal::INT;
            rustix::process::kill_process(id, interrupt).doing("ending perf")?;
        }
        self.child.wait().doing("ending perf")?;
        let script = Command::new("perf")
            .args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"])
            .arg(&self.data)
            .stderr(Stdio::null())
            .output()
            .doing("reading samples")?;
        let text = String::from_utf8_lossy(&script.stdout).into_owned();
        fs::write(self.data.with_extension("stacks"), &text).doing("keeping samples")?;
        Ok(of_perf(&text))
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_answered(mut answers: File) -> bool {
    let timeout = Timespec { tv_sec: ANSWER_TIME.as_secs() as i64, tv_nsec: 0 };
    let mut polled = [PollFd::new(&answers, PollFlags::IN)];
    let is_there = poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0);
    let mut answer = [0; 8];
    is_there && answers.read(&mut answer).is_ok_and(|length| length > 0)
}

/// Samples for each second of CPU time; not a divisor of the tick.
const FREQUENCY: &str = "1997";
/// perf answers when it samples.
const ANSWER_TIME: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn stacks_of_perf_and_collapsed_ones_are_read() {
        let perf = "        55d0 aes::seal<T, U>+0x1 (/bin/a b)\n   55d1 main (/bin/a)\n\n\n  1 [unknown] ([kernel])\n\n";
        let Samples(stacks) = of_perf(perf);
        assert_eq!(stacks.len(), 2);
        assert_eq!(stacks[0], (vec!["aes::seal<T, U>+0x1".to_owned(), "main".to_owned()], 1));
        assert_eq!(stacks[1].0, ["[unknown]"]);
        let Samples(stacks) = of_collapsed("a:b;c:d 7\nx 1\n");
        assert_eq!(stacks[0], (vec!["a:b".to_owned(), "c:d".to_owned()], 7));
        assert_eq!(stacks[1], (vec!["x".to_owned()], 1));
    }
}
