// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process of a measurement: orders go in, lines come out, and it ends with its measurement.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use kit_process::{Doing, Failure};

/// A process, which is killed when this is dropped.
pub(crate) struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

/// The numbers of a line.
pub(crate) type Fields = BTreeMap<String, u64>;

impl Process {
    /// Begins a process.
    pub(crate) fn begin(name: &str, mut command: Command) -> Result<Self, Failure> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.doing(&format!("beginning {name}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (say, lines) = channel();
        let output = output.ok_or_else(|| Failure::new("a process has no output"))?;
        // The thread ends with the process, whose output ends.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { name: name.to_owned(), child, input, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order.
    pub(crate) fn order(&mut self, order: &str) -> Result<(), Failure> {
        let input = self.input.as_mut();
        let input = input.ok_or_else(|| Failure::new("the process has no input any more"))?;
        writeln!(input, "{order}").doing(&format!("ordering {}", self.name))
    }

    /// The next line that begins with this word, without it.
    pub(crate) fn expect(&self, word: &str, until: Instant) -> Result<String, Failure> {
        loop {
            let line = self.line(until)?;
            if let Some(rest) = line.strip_prefix(word) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// The next line.
    pub(crate) fn line(&self, until: Instant) -> Result<String, Failure> {
        let left = until.saturating_duration_since(Instant::now());
        let line = self.lines.recv_timeout(left);
        line.map_err(|_| Failure::new(format!("{} has ended, or is late", self.name)))
    }

    /// The CPU time it has used, and its counts.
    pub(crate) fn report(&mut self) -> Result<Fields, Failure> {
        self.order("report")?;
        let line = self.expect("report", Instant::now() + REPORT_TIME)?;
        Ok(fields(&line))
    }

    /// Ends its input, and waits for its end.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.input = None;
        let until = Instant::now() + END_TIME;
        while Instant::now() < until {
            match self.child.try_wait().doing(&format!("ending {}", self.name))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(Failure::new(format!("{} has ended: {status}", self.name)));
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
        Err(Failure::new(format!("{} does not end", self.name)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers of a line of `name=number`.
pub(crate) fn fields(line: &str) -> Fields {
    let fields = line.split_whitespace().filter_map(|field| {
        let (name, value) = field.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    fields.collect()
}

/// A busy process may be late with its report.
const REPORT_TIME: Duration = Duration::from_secs(20);
const END_TIME: Duration = Duration::from_secs(20);
