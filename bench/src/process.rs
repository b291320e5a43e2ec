// SPDX-License-Identifier: Apache-2.0 OR MIT
//! This program once more, as a process of its own, with which one talks by lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::failure::{Doing, Failure};

/// A process. It ends when its input ends, or with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts this program with these arguments. `wrapper` is a command that starts what follows
    /// it, or nothing.
    pub(crate) fn start(wrapper: &[String], arguments: &[&str]) -> Result<Self, Failure> {
        let program = std::env::current_exe().doing("finding this program")?;
        let mut words = wrapper.iter().map(Into::into).chain([program.into_os_string()]);
        let first = words.next().unwrap_or_default();
        let mut child = Command::new(first)
            .args(words)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing("starting a process")?;
        let (sender, lines) = channel();
        let output = child.stdout.take();
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            // The receiver is gone while a process is being ended.
            lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let errors = child.stderr.take().map(|mut output| {
            std::thread::spawn(move || {
                let mut text = String::new();
                // Output that is not text explains nothing.
                let _ = output.read_to_string(&mut text);
                text
            })
        });
        let input = child.stdin.take();
        Ok(Self { child, input, lines, errors })
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) -> Result<(), Failure> {
        let Some(input) = &mut self.input else {
            return Err(Failure::new("the process is being ended"));
        };
        writeln!(input, "{line}").doing("talking to a process")
    }

    /// The process's next line; if there is none in time, the text of its standard error.
    pub(crate) fn hear(&mut self, limit: Duration) -> Result<String, Failure> {
        if let Ok(line) = self.lines.recv_timeout(limit) {
            return Ok(line);
        }
        let is_over = self.child.try_wait()?.is_some();
        self.end();
        let words = self.errors.take().and_then(|errors| errors.join().ok());
        let words = words.unwrap_or_default();
        Err(Failure::new(match words.trim() {
            "" if is_over => "a process ended without a word".to_owned(),
            "" => format!("a process said nothing for {limit:?}"),
            words => words.replace('\n', "; "),
        }))
    }

    fn end(&mut self) {
        self.input = None;
        // It may have ended already.
        let _ = self.child.kill();
        if let Err(error) = self.child.wait() {
            eprintln!("a process could not be waited for: {error}");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
