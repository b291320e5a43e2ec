// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member of a group as a process.
//!
//! Threads take messages from sessions, and one works on them: it takes all that wait, makes them
//! durable by one write, and then sends what follows from them. Each peer has a thread that sends.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use smt_mesh::{Arrival, Closer, Member, Mesh, Place, SessionError};

use crate::metrics_file::MetricsFile;

/// Messages from which on no further packet becomes durable with them.
const TOGETHER_MAX: usize = 4096;
/// Bytes from which on none does either.
const TOGETHER_BYTES_MAX: usize = 16 << 20;
/// Between two lines of metrics.
const METRICS_EVERY: Duration = Duration::from_secs(10);
/// For messages on their way when the process ends.
const GRACE: Duration = Duration::from_secs(1);

/// Why a process does not begin.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A file or a signal cannot be had.
    #[error("the operating system failed: {0}")]
    System(&'static str, #[source] io::Error),
}

/// The messages of a packet, as a system has taken them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// How many there were.
    pub count: usize,
    /// How many of them their sender may not send.
    pub refused: usize,
}

/// A member's half of a replicated system, as a state machine with a log.
pub trait System {
    /// Why it cannot go on.
    type Error: From<ProcessError>;
    /// Takes a packet of a member.
    fn take(&mut self, from: Member, packet: &[u8]) -> Taken;
    /// Takes what has come in other ways than by sessions, before each commit.
    ///
    /// # Errors
    /// The system's own.
    fn take_others(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Time passes.
    fn tick(&mut self);
    /// Makes all durable, sends what follows, and tells the log of what is new.
    ///
    /// # Errors
    /// The system's own.
    fn commit(&mut self, mesh: &mut Mesh) -> Result<(), Self::Error>;
    /// The numbers of this moment, as an object.
    fn numbers(&self) -> Value;
}

/// A process that has begun, and whose system is not there yet.
pub struct Process {
    metrics: Option<MetricsFile>,
    /// The end of the sessions, once there are some.
    closer: Arc<OnceLock<Closer>>,
}

impl Process {
    /// Opens the file of metrics, and catches signals. Until there are sessions, as while a log is
    /// read, the first one ends the process.
    ///
    /// # Errors
    /// [`ProcessError`]
    pub fn begin(metrics: Option<&Path>) -> Result<Self, ProcessError> {
        let metrics = metrics.map(MetricsFile::open).transpose();
        let metrics = metrics.map_err(|it| ProcessError::System("the file of --metrics", it))?;
        let signals = Signals::new([SIGINT, SIGTERM]);
        let signals = signals.map_err(|it| ProcessError::System("catching signals", it))?;
        let closer = Arc::new(OnceLock::new());
        let known = closer.clone();
        std::thread::spawn(move || end_by_signal(signals, &known));
        Ok(Self { metrics, closer })
    }

    /// Opens sessions, begins the system, and works until a signal asks for the end. Nothing of the
    /// system is at work while its credentials may be refused.
    ///
    /// # Errors
    /// [`ProcessError`]
    pub fn run<S: System>(
        self,
        place: &Place,
        tick: Duration,
        begin: impl FnOnce() -> S,
    ) -> Result<(), S::Error> {
        let mesh = Mesh::open(place).map_err(ProcessError::from)?;
        // It is set here alone.
        let _ = self.closer.set(mesh.closer());
        let mut out = io::stdout().lock();
        let told = writeln!(out, "listening on {}", mesh.local_address());
        told.and_then(|()| out.flush())
            .map_err(|it| ProcessError::System("standard output", it))?;
        drop(out);
        let (metrics, began) = (self.metrics, Instant::now());
        let mut running = Running { system: begin(), mesh, metrics, began };
        let ended = running.work(tick);
        running.mesh.close(GRACE);
        running.tell_end();
        ended
    }
}

/// A process whose sessions are open.
struct Running<S> {
    system: S,
    mesh: Mesh,
    metrics: Option<MetricsFile>,
    began: Instant,
}

impl<S: System> Running<S> {
    /// Works until the end is asked for.
    fn work(&mut self, tick: Duration) -> Result<(), S::Error> {
        let mut next_tick = Instant::now();
        let mut next_metrics = Instant::now() + METRICS_EVERY;
        loop {
            let mut wait = next_tick.saturating_duration_since(Instant::now());
            let (mut taken, mut bytes) = (0, 0);
            while taken < TOGETHER_MAX && bytes < TOGETHER_BYTES_MAX {
                match self.mesh.next(wait) {
                    Arrival::Packet(member, packet) => {
                        bytes += packet.len();
                        taken += self.take(member, &packet);
                    }
                    Arrival::Nothing => break,
                    Arrival::End => return self.commit_last(),
                }
                // Only those that are there already become durable together.
                wait = Duration::ZERO;
            }
            self.system.take_others()?;
            if Instant::now() >= next_tick {
                self.system.tick();
                // Ticks that were missed are not made up for: all timeouts would end at once.
                next_tick = Instant::now() + tick;
            }
            self.system.commit(&mut self.mesh)?;
            if Instant::now() >= next_metrics {
                next_metrics = Instant::now() + METRICS_EVERY;
                self.write_metrics();
            }
        }
    }

    /// Commits what has come, and then what that commit has noted, such as a digest of the steps
    /// that followed.
    fn commit_last(&mut self) -> Result<(), S::Error> {
        self.system.commit(&mut self.mesh)?;
        self.system.commit(&mut self.mesh)
    }

    /// Takes a packet, and returns how many messages it had.
    fn take(&mut self, from: Member, packet: &[u8]) -> usize {
        let taken = self.system.take(from, packet);
        let refused = &self.mesh.traffic().refused;
        refused.fetch_add(taken.refused as u64, Ordering::Relaxed);
        // A packet without messages is work as well.
        taken.count.max(1)
    }

    fn numbers(&self) -> Value {
        let (mut numbers, traffic) = (self.system.numbers(), self.mesh.traffic());
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        numbers["packets_received"] = count(&traffic.received).into();
        numbers["messages_sent"] = count(&traffic.sent).into();
        numbers["messages_dropped"] = count(&traffic.dropped).into();
        numbers["refused"] = count(&traffic.refused).into();
        numbers["seconds"] = self.began.elapsed().as_secs().into();
        numbers
    }

    fn write_metrics(&mut self) {
        let numbers = self.numbers();
        if let Some(file) = &mut self.metrics {
            file.write(numbers);
        }
    }

    /// The summary, when the process ends.
    fn tell_end(&mut self) {
        self.write_metrics();
        let numbers = self.numbers();
        tracing::warn!(%numbers, "ended");
    }
}

/// Has the mesh end on the first signal, and ends the process on the second, or if there is no mesh
/// yet.
fn end_by_signal(mut signals: Signals, closer: &OnceLock<Closer>) {
    let mut is_asked = false;
    for signal in signals.forever() {
        match closer.get() {
            Some(closer) if !is_asked => closer.end(),
            _ => std::process::exit(128 + signal),
        }
        is_asked = true;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::test_mesh::mesh;

    /// A system that counts its commits.
    struct Commits(u64);

    impl System for Commits {
        type Error = ProcessError;

        fn take(&mut self, _: Member, _: &[u8]) -> Taken {
            Taken::default()
        }

        fn tick(&mut self) {}

        fn commit(&mut self, _: &mut Mesh) -> Result<(), ProcessError> {
            self.0 += 1;
            Ok(())
        }

        fn numbers(&self) -> Value {
            Value::Null
        }
    }

    // Once, what a commit notes of the inputs that it had was lost at the end: it is durable with
    // the next one.
    #[test]
    fn a_system_is_committed_twice_when_the_end_is_asked_for() {
        let mesh = mesh("process");
        mesh.closer().end();
        let began = Instant::now();
        let mut running = Running { system: Commits(0), mesh, metrics: None, began };
        running.work(Duration::from_secs(1)).unwrap();
        running.mesh.close(Duration::ZERO);
        assert_eq!(running.system.0, 2);
    }
}
