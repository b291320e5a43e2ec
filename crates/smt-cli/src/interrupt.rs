// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a long-running subcommand: Ctrl-C, SIGTERM, or the end of standard input.
//!
//! The first signal asks for a graceful end; a second one ends the process at once.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::failure::{Doing, Failure};

/// Tells when the end is asked for.
#[derive(Debug)]
pub(crate) struct Interrupt {
    asked: Receiver<()>,
    ask: SyncSender<()>,
}

impl Interrupt {
    /// Takes the signals over from their default, which is to end at once.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let is_second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal raises the flag that makes the second one fatal.
            flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&is_second))
                .and_then(|_| flag::register(signal, Arc::clone(&is_second)))
                .doing("catching signals")?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM]).doing("catching signals")?;
        let (ask, asked) = sync_channel(1);
        let on_signal = ask.clone();
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                // Full: the end is asked for already.
                let _ = on_signal.try_send(());
            }
        });
        Ok(Self { asked, ask })
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
}

/// 128 and the number of SIGINT, as shells say it.
const EXIT_INTERRUPTED: i32 = 130;
