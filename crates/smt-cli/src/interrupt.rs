// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a long-running subcommand: Ctrl-C, SIGTERM, or the end of standard input.
//!
//! The first signal asks for a graceful end; a second one ends the process at once, but for what must not be left behind.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use signal_hook::consts::{SIGINT, SIGTERM};
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
        Self::with_last_act(|| {})
    }

    /// The same; a second signal does this before it ends the process.
    pub(crate) fn with_last_act(act: impl FnOnce() + Send + 'static) -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).doing("catching signals")?;
        let (ask, asked) = sync_channel(1);
        let on_signal = ask.clone();
        std::thread::spawn(move || {
            let mut signals = signals.forever();
            signals.next();
            // Full: the end is asked for already.
            let _ = on_signal.try_send(());
            signals.next();
            act();
            std::process::exit(EXIT_INTERRUPTED);
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
pub(crate) const EXIT_INTERRUPTED: i32 = 130;
