// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program under test as processes, and the files that it needs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How a process has ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

impl Outcome {
    /// The output as text, of a process that must have succeeded.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert!(self.status.success(), "{self:?}");
        std::str::from_utf8(&self.output).unwrap()
    }

    /// It must have failed with exit code 1, no output, and one line in which all of these stand.
    #[track_caller]
    pub(crate) fn fails_with(&self, words: &[&str]) {
        self.fails(1, words);
    }

    /// The same with another exit code.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert!(self.output.is_empty(), "{self:?}");
        assert_eq!(self.errors.lines().count(), 1, "{}", self.errors);
        for word in words {
            assert!(self.errors.contains(word), "{word:?} is not in: {}", self.errors);
        }
    }
}

/// Runs `smt` to its end.
pub(crate) fn smt(arguments: &[&str]) -> Outcome {
    smt_with_input(arguments, b"")
}

/// Runs `smt` to its end with this on standard input.
pub(crate) fn smt_with_input(arguments: &[&str], input: &[u8]) -> Outcome {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A process that fails early does not read it.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Outcome {
        status: output.status,
        output: output.stdout,
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `smt` with its output in pipes.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server process that listens. Killed on drop.
pub(crate) struct Serving {
    child: Child,
    errors: Option<BufReader<ChildStderr>>,
    address: String,
}

impl Serving {
    /// `smt serve 127.0.0.1:0` with the server's certificate of `files`, and with these arguments.
    pub(crate) fn start(files: &Files, arguments: &[&str]) -> Self {
        Self::start_with(files, arguments, &[])
    }

    /// The same with these environment variables.
    pub(crate) fn start_with(
        files: &Files,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
        let mut words =
            vec!["serve", "127.0.0.1:0", "--cert", &cert, "--key", &key, "--until-input-ends"];
        words.extend(arguments);
        let mut command = command(&words);
        command.envs(variables.iter().copied());
        Self::spawn(command)
    }

    /// The same as `nohup` starts it.
    pub(crate) fn start_without_terminal(files: &Files, arguments: &[&str]) -> Self {
        let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
            .args([env!("CARGO_BIN_EXE_smt"), "serve", "127.0.0.1:0"])
            .args(["--cert", &cert, "--key", &key, "--until-input-ends"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self::spawn(shell)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let errors = child.stderr.take().map(BufReader::new);
        let address = line.trim_end().strip_prefix("listening on ");
        Self {
            address: address.expect("the first line says where it listens").to_owned(),
            child,
            errors,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says on standard error.
    pub(crate) fn next_words(&mut self) -> String {
        let mut line = String::new();
        let errors = self.errors.as_mut().expect("somebody reads them");
        errors.read_line(&mut line).unwrap();
        line
    }

    /// The next line that it says on standard error with these words.
    pub(crate) fn next_words_with(&mut self, words: &str) -> String {
        loop {
            let line = self.next_words();
            assert!(!line.is_empty(), "it never said: {words}");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.id().try_into().unwrap()).unwrap();
        kill_process(process, signal).unwrap();
    }

    /// Closes the reading end of the program's standard error.
    pub(crate) fn close_errors(&mut self) {
        self.errors = None;
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends its input, and waits for its end.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        drop(self.child.stdin.take());
        self.wait()
    }

    /// Waits for its end, and gives what it said on standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut words = String::new();
        if let Some(errors) = &mut self.errors {
            errors.read_to_string(&mut words).unwrap();
        }
        (self.child.wait().unwrap(), words)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended already in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with an authority, a server called localhost and a client called alice. Removed on
/// drop.
pub(crate) struct Files {
    path: PathBuf,
}

impl Files {
    pub(crate) fn new() -> Self {
        let files = Self::empty();
        let directory = files.path("");
        for words in [
            &["keys", "ca", "--out", &directory][..],
            &["keys", "server", "localhost", "127.0.0.1", "--ca", &directory, "--out", &directory],
            &["keys", "client", "alice", "--ca", &directory, "--out", &directory],
        ] {
            smt(words).text();
        }
        files
    }

    /// Without certificates.
    pub(crate) fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("smt-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    /// A file's path as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.path.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and gives its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Arguments of `smt call` for a server that has its certificate from here.
    pub(crate) fn call<'a>(&self, address: &'a str, more: &[&'a str]) -> Vec<String> {
        let words = ["call", address, "--ca", &self.path("ca.pem")].map(str::to_owned);
        words.into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Calls with this request.
    pub(crate) fn run_call(&self, address: &str, more: &[&str], request: &[u8]) -> Outcome {
        let words = self.call(address, more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        smt_with_input(&words, request)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Bytes that do not repeat soon.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 251 + place / 7_919) as u8).collect()
}

/// Waits until something holds, as long as the machine takes; a minute is never.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::yield_now();
    }
}

/// Makes a FIFO among the files.
pub(crate) fn fifo(files: &Files) -> String {
    let path = files.path("fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}
