// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a subcommand: Ctrl-C, SIGTERM, a terminal that has gone (SIGHUP), or the end of
//! standard input.
//!
//! The first signal asks for a graceful end; a second one ends the process at once, after removing
//! files that must not be left behind.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Doing, Failure};

/// Tells when the end is asked for.
#[derive(Debug)]
pub(crate) struct Interrupt {
    asked: Receiver<()>,
    ask: SyncSender<()>,
    is_forced: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes the signals over from their default, which is to end at once.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        Ok(Self::by(signals()?, || {}))
    }

    /// The same without SIGHUP; a second signal does this before it ends the process.
    pub(crate) fn with_last_act(act: impl FnOnce() + Send + 'static) -> Result<Self, Failure> {
        let signals = Signals::new([SIGINT, SIGTERM]).doing("catching signals")?;
        Ok(Self::by(signals, act))
    }

    fn by(mut signals: Signals, act: impl FnOnce() + Send + 'static) -> Self {
        let (ask, asked) = sync_channel(1);
        let on_signal = ask.clone();
        let is_forced = Arc::new(AtomicBool::new(false));
        let force = Arc::clone(&is_forced);
        std::thread::spawn(move || {
            let mut signals = signals.forever();
            signals.next();
            // Full: the end is asked for already.
            let _ = on_signal.try_send(());
            let signal = signals.next();
            force.store(true, Ordering::Release);
            act();
            std::process::exit(signal.map_or(EXIT_INTERRUPTED, exit_code).into());
        });
        Self { asked, ask, is_forced }
    }

    /// The end of standard input is the end too: a parent that dies takes this process along.
    pub(crate) fn or_end_of_input(self) -> Self {
        let on_end = self.ask.clone();
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            while matches!(input.read(&mut [0; 512]), Ok(1..)) {}
            let _ = on_end.try_send(());
        });
        self
    }

    /// Waits until the end is asked for.
    pub(crate) fn wait(&self) {
        // This side holds a sender too, so there is always one.
        let _ = self.asked.recv();
    }

    /// After a second signal the process ends in its thread, with its exit code: then this does not
    /// return.
    pub(crate) fn give_way(&self) {
        while self.is_forced.load(Ordering::Acquire) {
            std::thread::park();
        }
    }
}

/// The signals that ask a process to end. A process that was started to outlive its terminal
/// (`nohup`) ignores SIGHUP, and goes on ignoring it.
///
/// # Errors
/// The system does not let them be caught.
pub(crate) fn signals() -> Result<Signals, Failure> {
    let caught: &[i32] = match is_ignored(SIGHUP) {
        true => &[SIGINT, SIGTERM],
        false => &[SIGINT, SIGTERM, SIGHUP],
    };
    Signals::new(caught).doing("catching signals")
}

/// Whether this process was started with the signal ignored, as far as the system says so.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The mask of ignored signals in a process's status (proc_pid_status(5)); signal 1 is its lowest
/// bit.
fn ignored(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// 128 and the number of the signal, as shells say it.
pub(crate) fn exit_code(signal: i32) -> u8 {
    128 + signal as u8
}

/// The exit code of a process that SIGINT has ended.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_found_among_others() {
        let status = "Name:\tsmt\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored(status), Some(0x1001));
        assert_eq!(ignored("Name:\tsmt\n"), None);
    }
}
