// SPDX-License-Identifier: Apache-2.0 OR MIT
//! This program once more, as a process of its own: the server of `demo` and `perf loopback`.
//!
//! 1. It is started with a pipe as standard input, and ends when that ends: it cannot be left
//!    behind.
//! 2. Its first line says where it listens.
//! 3. Dropping it closes the pipe and waits for its graceful end.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;

use crate::failure::{Doing, Failure};

/// A server process.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    child: Child,
    input: Option<ChildStdin>,
    errors: Option<JoinHandle<String>>,
    address: String,
}

impl OwnProcess {
    /// Starts this program with these arguments, and waits until it listens.
    pub(crate) fn start<I, A>(arguments: I) -> Result<Self, Failure>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        let program = std::env::current_exe().doing("finding this program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing("starting this program again")?;
        let errors = child.stderr.take().map(collect);
        let input = child.stdin.take();
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).doing("waiting for the server process")?;
        }
        let address = line.trim_end().strip_prefix(LISTENING);
        let process =
            Self { address: address.unwrap_or_default().to_owned(), input, errors, child };
        if address.is_none() {
            let words = process.end();
            return Err(Failure::of(
                smt::Fault::Environment,
                format!("the server process did not start: {words}"),
            ));
        }
        Ok(process)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and gives what it said on standard error.
    pub(crate) fn end(mut self) -> String {
        drop(self.input.take());
        let words = self.errors.take().and_then(|errors| errors.join().ok());
        words.unwrap_or_default().trim_end().to_owned()
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Err(error) = self.child.wait() {
            tracing::warn!(%error, "the server process could not be waited for");
        }
    }
}

/// Reads what the process says, so that it never waits for a reader; keeps the first of it.
fn collect(errors: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut errors = BufReader::new(errors);
        let mut words = Vec::new();
        let read = errors
            .by_ref()
            .take(WORDS_BYTES_MAX)
            .read_to_end(&mut words)
            .and_then(|_| io::copy(&mut errors, &mut io::sink()));
        if let Err(error) = read {
            tracing::debug!(%error, "the server process's words are lost");
        }
        String::from_utf8_lossy(&words).into_owned()
    })
}

/// How a server's first line begins.
pub(crate) const LISTENING: &str = "listening on ";
/// Bytes that are kept of the process's standard error.
const WORDS_BYTES_MAX: u64 = 65_536;
