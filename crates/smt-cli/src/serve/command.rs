// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A command that is run for each request.
//!
//! 1. The request goes to its standard input, and the reply comes from its standard output
//!    (`command_pipes`).
//! 2. Meanwhile the handler looks whether a caller still waits for the reply, and whether its time
//!    is over; then the command is killed with all of its group.
//! 3. Its end is the end of the reply, whoever still holds its pipes: a process that it has started
//!    in the background lives on. Exit code 0 makes what it wrote the reply. Its standard error is
//!    the server's.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};

use super::command_pipes::CommandPipes;
use super::environment::Environment;
use super::handler::Dropped;
use super::program;
use crate::failure::{Doing, Failure};
use crate::time_span;

/// A program and its arguments.
#[derive(Debug)]
pub(super) struct ExternalCommand {
    program: String,
    arguments: Vec<String>,
    limits: Limits,
}

/// The limits of a command's time and output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of a reply.
    pub(super) reply: u32,
    /// From its start to its end.
    pub(super) time: Duration,
}

impl ExternalCommand {
    /// The first word is the program. Replies of more than the limit are not sent.
    ///
    /// # Errors
    /// The program is not there, or cannot be executed.
    pub(super) fn new(words: &[String], limits: Limits) -> Result<Self, Failure> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| Failure::new("--exec needs a command"))?;
        program::find(program)?;
        Ok(Self { program: program.clone(), arguments: arguments.to_vec(), limits })
    }

    /// As it was named.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Runs it for one request.
    pub(super) fn run(
        &self,
        request: &Bytes,
        environment: &Environment,
        is_useless: &dyn Fn() -> bool,
    ) -> Result<Bytes, Dropped> {
        let child = self.start(environment).doing(format!("running {}", self.program));
        let child = child.map_err(Dropped::before_it_ran)?;
        self.finish(child, request, is_useless).map_err(Dropped::when_it_ran)
    }

    fn finish(
        &self,
        mut child: Child,
        request: &Bytes,
        is_useless: &dyn Fn() -> bool,
    ) -> Result<Bytes, Failure> {
        let began = Instant::now();
        let why_end = || self.why_end(began, is_useless);
        let exchanged = self.exchange(&mut child, request, &why_end);
        // Not read to its end, or not wanted: it must not be left behind. The number of one that
        // has ended may be another's by now.
        if exchanged.is_err() && matches!(child.try_wait(), Ok(None)) {
            kill_group(child.id());
        }
        let status = child.wait().doing(format!("waiting for {}", self.program))?;
        if let Some(groups) = running().as_mut() {
            groups.retain(|group| *group != child.id());
        }
        let reply = exchanged?;
        self.check(status)?;
        Ok(reply)
    }

    fn start(&self, environment: &Environment) -> io::Result<Child> {
        // Held until the command is among those that run: an end of the server must not miss it.
        let mut running = running();
        let Some(groups) = running.as_mut() else {
            return Err(io::Error::other("the server has ended"));
        };
        let mut command = Command::new(&self.program);
        environment.give_to(&mut command);
        let child = command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Processes that the command starts belong to its group, and end with it.
            .process_group(0)
            .spawn()?;
        groups.push(child.id());
        Ok(child)
    }

    /// All that the command has written when it ends; or why it must end, and may still run.
    fn exchange(
        &self,
        child: &mut Child,
        request: &Bytes,
        why_end: &dyn Fn() -> Option<Failure>,
    ) -> Result<Bytes, Failure> {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("the command has no pipes"));
        };
        let limit = self.limits.reply as usize;
        let pipes = CommandPipes::new(input, output, request.clone(), limit);
        let mut pipes = pipes.doing(format!("feeding {}", self.program))?;
        let end = end_of(child);
        let pause = if end.is_some() { LOOK_EVERY } else { LOOK_FOR_END_EVERY };
        loop {
            let exchanged = pipes.exchange(end.as_ref().map(AsFd::as_fd), pause);
            exchanged.doing(format!("exchanging with {}", self.program))?;
            let ended = child.try_wait().doing(format!("waiting for {}", self.program))?.is_some();
            if ended {
                // It may have written since.
                pipes.read_rest().doing(format!("reading from {}", self.program))?;
            }
            if pipes.is_too_long() {
                return Err(Failure::new(format!(
                    "{} replied with more than --message-limit, {limit} bytes",
                    self.program
                )));
            }
            if ended {
                return Ok(pipes.into_reply());
            }
            why_end().map_or(Ok(()), Err)?;
        }
    }

    /// Why a command that began then must end, if it must.
    fn why_end(&self, began: Instant, is_useless: &dyn Fn() -> bool) -> Option<Failure> {
        let why = if is_useless() {
            "nobody waits any more".to_owned()
        } else if began.elapsed() >= self.limits.time {
            let limit = time_span::display(self.limits.time);
            format!("it ran for longer than --exec-timeout, {limit}")
        } else {
            return None;
        };
        Some(Failure::new(format!("{}: {why}", self.program)))
    }

    fn check(&self, status: ExitStatus) -> Result<(), Failure> {
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("{} ended with {status}", self.program)))
    }
}

/// Readable when the command ends; `None` where the system has no such thing.
#[cfg(target_os = "linux")]
fn end_of(child: &Child) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    let number = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    pidfd_open(number, PidfdFlags::empty()).ok()
}

/// Nothing: this system tells of no end.
#[cfg(not(target_os = "linux"))]
fn end_of(_: &Child) -> Option<OwnedFd> {
    None
}

/// Ends a command that has not been waited for, and all that it has started and left in its group.
fn kill_group(number: u32) {
    if let Some(group) = Pid::from_raw(number as i32) {
        // It has ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Ends all commands; no further one starts. For a process that ends at once: in groups of their
/// own, they do not hear what a terminal tells it.
pub(super) fn kill_all() {
    let groups = running().take();
    groups.into_iter().flatten().for_each(kill_group);
}

/// The groups of the commands that run; nothing when none may start any more.
fn running() -> MutexGuard<'static, Option<Vec<u32>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

static RUNNING: Mutex<Option<Vec<u32>>> = Mutex::new(Some(Vec::new()));
/// How often it is asked whether a command must end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often it is asked whether a command has ended, where the system does not tell.
const LOOK_FOR_END_EVERY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { reply: 10, time: Duration::from_secs(600) };

    fn command(script: &str, limits: Limits) -> ExternalCommand {
        let words = ["sh", "-c", script].map(str::to_owned);
        ExternalCommand::new(&words, limits).unwrap()
    }

    fn run(script: &str, request: &str, is_useless: bool) -> Result<Bytes, Failure> {
        let request = Bytes::copy_from_slice(request.as_bytes());
        let outcome =
            command(script, LIMITS).run(&request, &Environment::default(), &|| is_useless);
        outcome.map_err(|dropped| dropped.failure)
    }

    mod run {
        use super::*;
        use crate::scratch::Scratch;
        use rustix::process::kill_process;

        #[test]
        fn input_becomes_output() {
            assert_eq!(run("tr a-z A-Z", "hello", false).unwrap(), "HELLO");
        }

        #[test]
        fn a_command_that_fails_gives_no_reply() {
            let failure = run("echo no; exit 3", "", false).unwrap_err();
            assert!(failure.text().contains("exit status: 3"), "{}", failure.text());
        }

        #[test]
        fn a_command_that_reads_nothing_may_reply() {
            let request = "x".repeat(1 << 20);
            assert_eq!(run("echo hi", &request, false).unwrap(), "hi\n");
        }

        #[test]
        fn a_reply_over_the_limit_is_refused() {
            let failure = run("yes", "", false).unwrap_err();
            assert!(failure.text().contains("10 bytes"), "{}", failure.text());
        }

        #[test]
        fn a_command_nobody_waits_for_is_killed() {
            let failure = run("exec sleep 1000", "", true).unwrap_err();
            assert!(failure.text().contains("nobody waits"), "{}", failure.text());
        }

        #[test]
        fn processes_started_by_a_command_nobody_waits_for_are_killed() {
            run("sleep 1000; true", "", true).unwrap_err();
        }

        #[test]
        fn the_end_of_a_command_ends_its_reply_and_what_it_has_started_lives_on() {
            for start in ["sleep 1000", "setsid sleep 1000", "sleep 1000 <&0"] {
                let scratch = Scratch::new().unwrap();
                let file = scratch.path().join("process");
                let script = format!("{start} & echo $! >{}; echo started", file.display());
                let request = "x".repeat(1 << 20);
                assert_eq!(run(&script, &request, false).unwrap(), "started\n");
                // It holds the pipes, and was neither waited for nor killed.
                kill_process(process_in(&file).unwrap(), Signal::KILL).unwrap();
            }
        }

        #[test]
        fn all_that_a_command_wrote_before_its_end_is_the_reply() {
            let script = "sleep 1000 & echo $! >&2; head -c 50000 /dev/zero; kill $!";
            let limits = Limits { reply: 50_000, ..LIMITS };
            let command = command(script, limits);
            let reply = command.run(&Bytes::new(), &Environment::default(), &|| false).unwrap();
            assert_eq!(reply.len(), 50_000);
        }

        #[test]
        fn what_has_left_the_group_of_a_killed_command_lives_on() {
            let scratch = Scratch::new().unwrap();
            let file = scratch.path().join("process");
            let script =
                format!("setsid sleep 1000 & echo $! >{}; exec sleep 1000", file.display());
            let command = command(&script, LIMITS);
            let is_useless = || process_in(&file).is_some();
            command.run(&Bytes::new(), &Environment::default(), &is_useless).unwrap_err();
            kill_process(process_in(&file).unwrap(), Signal::KILL).unwrap();
        }

        /// The number in a file, once its line is whole.
        fn process_in(file: &std::path::Path) -> Option<Pid> {
            let text = std::fs::read_to_string(file).ok()?;
            Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
        }

        #[test]
        fn a_command_nobody_waits_for_is_killed_although_it_has_closed_its_output() {
            run("exec >&-; exec sleep 1000", "", true).unwrap_err();
        }

        /// A command whose pipes are not waited for is killed as well.
        #[test]
        fn one_that_takes_too_long_is_killed_with_all_that_it_has_started() {
            for script in ["sleep 1000; true", "exec >&-; exec sleep 1000"] {
                let limits = Limits { time: Duration::from_millis(10), ..LIMITS };
                let outcome =
                    command(script, limits).run(&Bytes::new(), &Environment::default(), &|| false);
                let dropped = outcome.unwrap_err();
                assert!(dropped.has_run);
                assert_eq!(
                    dropped.failure.text(),
                    "sh: it ran for longer than --exec-timeout, 10.0 ms"
                );
            }
        }

        #[test]
        fn a_program_that_is_missing_is_named() {
            let words = ["/no/such/program".to_owned()];
            let failure = ExternalCommand::new(&words, LIMITS).unwrap_err();
            assert!(failure.text().contains("/no/such/program"));
        }

        #[test]
        fn a_program_that_is_gone_has_not_run() {
            let scratch = Scratch::new().unwrap();
            let program = scratch.path().join("program");
            std::os::unix::fs::symlink("/bin/true", &program).unwrap();
            let words = [program.to_str().unwrap().to_owned()];
            let command = ExternalCommand::new(&words, LIMITS).unwrap();
            command.run(&Bytes::new(), &Environment::default(), &|| false).unwrap();
            std::fs::remove_file(&program).unwrap();
            let dropped =
                command.run(&Bytes::new(), &Environment::default(), &|| false).unwrap_err();
            assert!(!dropped.has_run);
            assert!(dropped.failure.text().contains("No such file"));
        }
    }
}
