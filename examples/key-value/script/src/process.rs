// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process that is talked to by its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// A process whose output is read line by line. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it.
    ///
    /// # Panics
    /// There is no such program.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program was built");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, input, output }
    }

    /// Gives it a line.
    ///
    /// # Panics
    /// The process has ended.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the process is there");
    }

    /// Its next line.
    ///
    /// # Panics
    /// The process has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("lines are text");
        assert!(line.ends_with('\n'), "the process has ended, after {line:?}");
        line.trim_end().to_owned()
    }

    /// Its answer to a line.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.line()
    }

    /// Reads up to this line.
    pub fn await_line(&mut self, wanted: &str) {
        while self.line() != wanted {}
    }

    /// Sends it SIGTERM.
    ///
    /// # Panics
    /// There is no `kill`.
    pub fn terminate(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").arg(id).status();
        assert!(sent.expect("there is a `kill`").success());
    }

    /// Kills it.
    ///
    /// # Panics
    /// The system does not.
    pub fn kill(mut self) {
        self.child.kill().expect("it is this process's child");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// The system does not let it.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it is this process's child")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
