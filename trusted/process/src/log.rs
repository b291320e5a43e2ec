// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log on standard error: its level and its format, as of `smt`.

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;

/// Options of all subcommands about the log
#[derive(Args)]
pub struct LogArguments {
    /// Log what is as grave as this or graver, on standard error; by default SMT_LOG says it, else
    /// warn
    #[arg(long = "log", value_name = "LEVEL", global = true)]
    log_level: Option<LevelFilter>,
    /// Log in lines for people, or in JSON
    #[arg(long, value_name = "FORMAT", global = true, default_value = "text")]
    log_format: LogFormat,
}

/// The form of a line.
#[derive(Clone, Copy, Eq, PartialEq, ValueEnum)]
enum LogFormat {
    Json,
    Text,
}

impl LogArguments {
    /// Begins the log, for the rest of the process, unless the process has one. A variable that is
    /// no level is told.
    ///
    /// # Errors
    /// A text for the user.
    pub fn install(&self) -> Result<(), String> {
        let variable = std::env::var("SMT_LOG").ok().filter(|it| !it.is_empty());
        let level = match (self.log_level, variable) {
            (Some(level), _) => level,
            (None, None) => LevelFilter::WARN,
            (None, Some(text)) => {
                text.parse().map_err(|_| format!("your request: SMT_LOG is {text:?}, no level"))?
            }
        };
        let log = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_target(level == LevelFilter::TRACE)
            .log_internal_errors(false);
        let begun = match self.log_format {
            LogFormat::Json => log.json().flatten_event(true).with_span_list(false).try_init(),
            LogFormat::Text => log.try_init(),
        };
        // A program that has a log of its own keeps it.
        drop(begun);
        Ok(())
    }
}
