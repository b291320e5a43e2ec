// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A line of JSON for each request that a server has had.
//!
//! 1. Workers hand entries over, and never wait: what does not fit is counted.
//! 2. One thread writes them, and flushes when no more have come.
//! 3. On SIGUSR1 it opens the file again by its name, once `logrotate` has renamed it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::caller::Caller;
use crate::failure::{Doing, Failure};
use crate::moment;

/// One request.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    /// When it was answered: RFC 3339, UTC.
    time: String,
    /// Address and port of the caller.
    peer: String,
    /// First name in its certificate, or else the subject.
    name: Option<String>,
    /// Serial number of its certificate, by which it is revoked.
    serial: Option<String>,
    /// Echo, file or command.
    handler: &'static str,
    /// Path of the file, or the program.
    request: Option<String>,
    bytes_in: usize,
    bytes_out: usize,
    duration_us: u64,
    outcome: Outcome,
    /// Why there is no reply.
    reason: Option<String>,
}

/// The fate of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// A message that has no reply was handled.
    Done,
    /// It may have had an effect, and failed.
    Failed,
    /// There was a reply that could not be sent: it is too large for the caller, for example, or
    /// the caller has gone.
    NotSent,
    /// It had no effect.
    Refused,
    Replied,
}

impl Entry {
    /// A request that was just answered.
    pub(super) fn new(caller: &Caller, handler: &'static str, request: Option<String>) -> Self {
        Self {
            time: moment::now(),
            peer: caller.address.to_string(),
            name: caller.name().map(str::to_owned),
            serial: caller.serial.clone(),
            handler,
            request,
            bytes_in: 0,
            bytes_out: 0,
            duration_us: 0,
            outcome: Outcome::Replied,
            reason: None,
        }
    }

    /// The bytes of the request and of its reply.
    pub(super) fn with_bytes(mut self, bytes_in: usize, bytes_out: usize) -> Self {
        (self.bytes_in, self.bytes_out) = (bytes_in, bytes_out);
        self
    }

    /// How it went.
    pub(super) fn with_outcome(
        mut self,
        outcome: Outcome,
        reason: Option<String>,
        duration: Duration,
    ) -> Self {
        (self.outcome, self.reason) = (outcome, reason);
        self.duration_us = duration.as_micros().try_into().unwrap_or(u64::MAX);
        self
    }
}

/// An open log, for all workers.
#[derive(Debug)]
pub(super) struct AccessLog {
    /// Until the log is finished.
    entries: Mutex<Option<SyncSender<Work>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    left_out: AtomicU64,
}

#[derive(Debug)]
enum Work {
    Write(Box<Entry>),
    /// Entries before this one did not fit.
    LeftOut(u64),
    OpenAgain,
}

impl AccessLog {
    /// Appends to this file, or to standard output if it is `-`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let place = Place::open(path).doing(format!("opening {}", path.display()))?;
        let (entries, work) = sync_channel(WAITING_MAX);
        let writer = std::thread::Builder::new();
        let writer = writer.spawn(move || write_all(place, &work));
        let writer = writer.doing("starting the thread of the access log")?;
        Ok(Self {
            entries: Mutex::new(Some(entries)),
            writer: Mutex::new(Some(writer)),
            left_out: AtomicU64::new(0),
        })
    }

    /// Hands an entry over. It is left out if many wait already.
    pub(super) fn write(&self, entry: Entry) {
        let Some(entries) = self.entries() else {
            return;
        };
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 && entries.try_send(Work::LeftOut(left_out)).is_err() {
            self.left_out.fetch_add(left_out, Ordering::Relaxed);
        }
        if entries.try_send(Work::Write(Box::new(entry))).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens the file again by its name, behind the entries so far.
    pub(super) fn open_again(&self) {
        if let Some(entries) = self.entries() {
            // Its receiver lives as long as the log.
            let _ = entries.send(Work::OpenAgain);
        }
    }

    /// Writes what is left; further entries are not taken.
    pub(super) fn finish(&self) {
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(entries) = entries.filter(|_| left_out > 0) {
            let _ = entries.send(Work::LeftOut(left_out));
        }
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic there has told itself.
        drop(writer.map(JoinHandle::join));
    }

    fn entries(&self) -> Option<SyncSender<Work>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clone()
    }
}

/// Where the lines go.
#[derive(Debug)]
enum Place {
    File { path: PathBuf, file: BufWriter<File> },
    Standard(BufWriter<io::Stdout>),
}

impl Place {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard(BufWriter::new(io::stdout())));
        }
        // It has names of callers and paths: for its owner and a group, such as that of logs.
        let file = OpenOptions::new().append(true).create(true).mode(0o640).open(path)?;
        Ok(Self::File { path: path.to_owned(), file: BufWriter::new(file) })
    }

    fn take(&mut self, work: Work) -> io::Result<()> {
        match work {
            Work::Write(entry) => self.line(&serde_json::to_string(&entry)?),
            Work::LeftOut(count) => {
                let object = json!({ "time": moment::now(), "left_out": count });
                self.line(&object.to_string())
            }
            Work::OpenAgain => self.open_again(),
        }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let writer: &mut dyn Write = match self {
            Self::File { file, .. } => file,
            Self::Standard(output) => output,
        };
        writer.write_all(text.as_bytes())?;
        writer.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.flush(),
            Self::Standard(output) => output.flush(),
        }
    }

    /// If there is no new one, the old one is written to further on. One that takes no more is left
    /// for the new one all the same, or its disk would stay full.
    fn open_again(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        if let Self::File { path, .. } = self {
            *self = Self::open(&path.clone())?;
        }
        flushed
    }
}

/// Writes until all workers have gone.
fn write_all(mut place: Place, work: &Receiver<Work>) {
    let mut is_failing = false;
    while let Ok(first) = work.recv() {
        let mut written = place.take(first);
        while let Ok(next) = work.try_recv() {
            let next = place.take(next);
            written = written.and(next);
        }
        let written = written.and_then(|()| place.flush());
        // Once, and not with every line.
        if let (Err(error), false) = (&written, is_failing) {
            tracing::error!("the access log cannot be written: {error}; lines of it are lost");
        }
        is_failing = written.is_err();
    }
}

/// Entries that wait to be written: a few MB.
const WAITING_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch::Scratch;

    fn entry(request: &str) -> Entry {
        let caller = Caller {
            address: ([127, 0, 0, 1], 7).into(),
            subject: Some("CN=alice".to_owned()),
            serial: Some("0abc".to_owned()),
            public_key: None,
            names: Vec::new(),
            uris: Vec::new(),
            spiffe_id: None,
        };
        Entry::new(&caller, "dir", Some(request.to_owned())).with_bytes(3, 5)
    }

    /// The lines of a log, which must be JSON.
    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn each_entry_is_a_line_of_json() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("log");
        let log = AccessLog::open(&path).unwrap();
        let why = Some("gone\n".to_owned());
        log.write(entry("a\"b").with_outcome(Outcome::NotSent, why, Duration::from_millis(2)));
        log.finish();
        log.write(entry("too late"));
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{mode:o}");
        let [line] = &lines(&path)[..] else { panic!("one line") };
        for (field, value) in [
            ("peer", json!("127.0.0.1:7")),
            ("name", json!("CN=alice")),
            ("serial", json!("0abc")),
            ("handler", json!("dir")),
            ("request", json!("a\"b")),
            ("bytes_in", json!(3)),
            ("bytes_out", json!(5)),
            ("duration_us", json!(2_000)),
            ("outcome", json!("not_sent")),
            ("reason", json!("gone\n")),
        ] {
            assert_eq!(line[field], value, "{field}");
        }
    }

    #[test]
    fn a_renamed_file_is_followed_by_a_new_one_and_no_entry_is_lost() {
        let scratch = Scratch::new().unwrap();
        let (path, renamed) = (scratch.path().join("log"), scratch.path().join("log.1"));
        let log = AccessLog::open(&path).unwrap();
        log.write(entry("1"));
        std::fs::rename(&path, &renamed).unwrap();
        log.write(entry("2"));
        log.open_again();
        log.write(entry("3"));
        log.finish();
        let requests = |path: &Path| -> Vec<_> {
            lines(path).iter().map(|line| line["request"].clone()).collect()
        };
        assert_eq!(requests(&renamed), ["1", "2"]);
        assert_eq!(requests(&path), ["3"]);
    }

    /// A disk stays full as long as a file is open that was removed to make room.
    #[test]
    fn a_file_that_takes_no_more_is_left_for_the_new_one() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let log = AccessLog::open(&path).unwrap();
        log.write(entry("lost"));
        std::fs::remove_file(&path).unwrap();
        log.open_again();
        log.write(entry("2"));
        log.finish();
        let [line] = &lines(&path)[..] else { panic!("one line") };
        assert_eq!(line["request"], "2");
    }

    /// The thread that writes is not there: whoever waited for it would wait for ever.
    #[test]
    fn entries_that_do_not_fit_are_counted() {
        let (entries, work) = sync_channel(2);
        let log = AccessLog {
            entries: Mutex::new(Some(entries)),
            writer: Mutex::new(None),
            left_out: AtomicU64::new(0),
        };
        for request in ["1", "2", "3", "4"] {
            log.write(entry(request));
        }
        assert_eq!(log.left_out.load(Ordering::Relaxed), 2);
        work.recv().unwrap();
        work.recv().unwrap();
        log.write(entry("5"));
        assert!(matches!(work.recv().unwrap(), Work::LeftOut(2)));
        assert!(matches!(work.recv().unwrap(), Work::Write(_)));
        for request in ["6", "7", "8"] {
            log.write(entry(request));
        }
        work.recv().unwrap();
        work.recv().unwrap();
        log.finish();
        assert!(matches!(work.recv().unwrap(), Work::LeftOut(1)), "the last ones are told too");
    }
}
