// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far something is that takes long: one line on standard error, rewritten in place; without a
//! terminal a new line now and then.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::standard_error;

/// A line that is told again and again.
#[derive(Debug)]
pub(super) struct StatusLine {
    told: Instant,
    is_terminal: bool,
}

impl StatusLine {
    /// Nothing is told yet.
    pub(super) fn new() -> Self {
        Self { told: Instant::now(), is_terminal: std::io::stderr().is_terminal() }
    }

    /// Tells it, unless it was told lately.
    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        let interval = match self.is_terminal {
            true => REWRITE_INTERVAL,
            false => LINE_INTERVAL,
        };
        if self.told.elapsed() < interval {
            return;
        }
        self.told = Instant::now();
        let line = line();
        match self.is_terminal {
            true => standard_error::tell_part(format_args!("\r{line:WIDTH$}")),
            false => standard_error::tell(line),
        }
    }

    /// Makes room for other words.
    pub(super) fn clear(&self) {
        if self.is_terminal {
            standard_error::tell_part(format_args!("\r{:WIDTH$}\r", ""));
        }
    }
}

/// On a terminal.
const REWRITE_INTERVAL: Duration = Duration::from_millis(200);
/// In a log.
const LINE_INTERVAL: Duration = Duration::from_secs(30);
/// Covers a longer line that was there before; a terminal has 80 columns.
const WIDTH: usize = 78;
