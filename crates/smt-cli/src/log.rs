// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log on standard error: its level (`--log`, -v, -q, `SMT_LOG`) and its format.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::failure::Failure;
use crate::standard_error::{self, Log};

/// Options of all subcommands about the log.
#[derive(Args, Debug)]
pub(crate) struct LogArguments {
    /// Log what is as grave as this or graver, on standard error: info has each session and each
    /// refused client; by default SMT_LOG says it, else warn
    #[arg(long, value_name = "LEVEL", global = true, display_order = LAST, value_parser = level())]
    log: Option<LevelFilter>,
    /// Log in lines for people, or in JSON: then all lines that this program itself writes to
    /// standard error are JSON objects
    #[arg(long, value_name = "FORMAT", global = true, display_order = LAST, default_value = "text")]
    log_format: LogFormat,
    /// Tell more on standard error, as --log info; -vv is debug, and -vvv trace
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "log", display_order = LAST)]
    verbose: u8,
    /// Tell nothing on standard error but failures, as --log error
    #[arg(short, long, global = true, conflicts_with_all = ["verbose", "log"], display_order = LAST)]
    quiet: bool,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum LogFormat {
    Json,
    Text,
}

impl LogArguments {
    /// Begins the log, for the rest of the process.
    ///
    /// # Errors
    /// `SMT_LOG` is no level.
    pub(crate) fn install(&self) -> Result<(), Failure> {
        // Before anything may fail, so that its failure has the format too.
        if self.log_format == LogFormat::Json {
            standard_error::write_json();
        }
        let level = self.level(std::env::var("SMT_LOG").ok())?;
        let log = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(|| Log)
            .log_internal_errors(false)
            .with_target(level == LevelFilter::TRACE);
        match self.log_format {
            LogFormat::Json => {
                log.json().flatten_event(true).with_span_list(false).with_target(true).init()
            }
            LogFormat::Text => log.init(),
        }
        Ok(())
    }

    fn level(&self, variable: Option<String>) -> Result<LevelFilter, Failure> {
        let of_option = match (self.quiet, self.verbose) {
            (true, _) => Some(LevelFilter::ERROR),
            (false, 0) => self.log,
            (false, 1) => Some(LevelFilter::INFO),
            (false, 2) => Some(LevelFilter::DEBUG),
            (false, _) => Some(LevelFilter::TRACE),
        };
        let variable = variable.filter(|text| !text.is_empty());
        match (of_option, variable) {
            (Some(level), _) => Ok(level),
            (None, None) => Ok(LevelFilter::WARN),
            (None, Some(text)) if LEVELS.contains(&text.as_str()) => Ok(text.parse()?),
            (None, Some(text)) => Err(Failure::usage(format!(
                "SMT_LOG is {text:?}, and no level: give one of {}",
                LEVELS.join(", ")
            ))),
        }
    }
}

fn level() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(LEVELS).try_map(|name| name.parse::<LevelFilter>())
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// In help texts these stand behind a subcommand's own options.
const LAST: usize = 900;

#[cfg(test)]
mod tests {
    use super::*;

    fn level_of(arguments: &[&str], variable: Option<&str>) -> Result<LevelFilter, Failure> {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            log: LogArguments,
        }
        let words = [&["program"], arguments].concat();
        let program: Program = clap::Parser::parse_from(words);
        program.log.level(variable.map(str::to_owned))
    }

    #[test]
    fn options_count_before_the_variable_and_warnings_are_the_default() {
        for (arguments, variable, level) in [
            (&[][..], None, LevelFilter::WARN),
            (&[], Some(""), LevelFilter::WARN),
            (&[], Some("trace"), LevelFilter::TRACE),
            (&["--log", "off"], Some("trace"), LevelFilter::OFF),
            (&["-q"], Some("trace"), LevelFilter::ERROR),
            (&["-v"], Some("off"), LevelFilter::INFO),
            (&["-vv"], None, LevelFilter::DEBUG),
            (&["-vvv"], None, LevelFilter::TRACE),
        ] {
            let found = level_of(arguments, variable).unwrap();
            assert_eq!(found, level, "{arguments:?} {variable:?}");
        }
    }

    #[test]
    fn a_variable_that_is_no_level_is_told() {
        let failure = level_of(&[], Some("loud")).unwrap_err();
        assert!(failure.text().contains("SMT_LOG is \"loud\""));
        level_of(&["-v"], Some("loud")).unwrap();
    }
}
