// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much is told on standard error: -q, -v, -vv, -vvv.

use tracing::level_filters::LevelFilter;

use crate::standard_error::Log;

/// Sets the level for the rest of the process.
pub(crate) fn install(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Log)
        .log_internal_errors(false)
        .with_target(verbose > 2)
        .init();
}
