// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of events: the log of a host's firmware, and what a vendor accepts in it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use smt_bootstrap::{
    AcceptSyntaxError, AcceptedEvents, EVENT_LOG_LEN_MAX, EventLog, EventLogError,
};

use crate::bootstrap::wrong;
use crate::command_error::CommandError;

/// Prints the events of a log as the lines by which a vendor accepts them, and before them the
/// digest of the registers that they lead to.
pub(crate) fn print_events(path: &Path) -> Result<(), CommandError> {
    let log = EventLog::parse(&read_log(path)?).map_err(|error| wrong(path, &error))?;
    let mut out = io::stdout().lock();
    writeln!(out, "# registers {}", HEXLOWER.encode(&log.digest()))?;
    for event in log.events() {
        writeln!(out, "{event}")?;
    }
    Ok(())
}

/// Reads a log, and no more of it than the longest one that is taken and a byte.
pub(crate) fn read_log(path: &Path) -> Result<Vec<u8>, CommandError> {
    let mut log = Vec::new();
    File::open(path)
        .and_then(|it| it.take(EVENT_LOG_LEN_MAX as u64 + 1).read_to_end(&mut log))
        .map_err(|error| wrong(path, &error))?;
    if log.len() > EVENT_LOG_LEN_MAX {
        return Err(wrong(path, &EventLogError::TooLong));
    }
    Ok(log)
}

pub(crate) fn read_accepted(path: &Path) -> Result<AcceptedEvents, CommandError> {
    let text = fs::read_to_string(path).map_err(|error| wrong(path, &error))?;
    text.parse().map_err(|error: AcceptSyntaxError| wrong(path, &error))
}
