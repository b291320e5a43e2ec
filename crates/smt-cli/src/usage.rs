// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The answers of the parser of arguments: help and the version on standard output, and what is
//! wrong with the words on standard error.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};

use crate::exit_code;
use crate::failure::Failure;
use crate::standard_output;

/// Tells it, and gives the exit code.
pub(crate) fn answer(mut error: clap::Error) -> ExitCode {
    shorten(&mut error);
    if error.use_stderr() {
        // Without a reader the exit code alone tells it.
        let _ = error.print();
        return ExitCode::from(exit_code::USAGE);
    }
    match standard_output::named(error.print().and_then(|()| io::stdout().flush())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::from(error).report(),
    }
}

/// Cuts what a user has written and is quoted: it may be a whole file.
fn shorten(error: &mut clap::Error) {
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
    {
        let Some(ContextValue::String(text)) = error.get(kind) else {
            continue;
        };
        if let Some(short) = beginning(text) {
            // The tips quote it too.
            error.remove(ContextKind::Suggested);
            error.insert(kind, ContextValue::String(short));
        }
    }
}

/// The beginning of a long text.
fn beginning(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(QUOTED_MAX)?;
    Some(format!("{}...", &text[..end]))
}

/// Without whose fault it is: all that the parser refuses is the caller's, and it does not say so.
pub(crate) fn without_fault(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    let bare = ["caller: ", "limit: "].iter().find_map(|fault| text.strip_prefix(fault));
    bare.unwrap_or(&text).to_owned()
}

/// Characters of a word that are quoted.
const QUOTED_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_is_cut_between_letters_and_a_short_one_is_left() {
        assert_eq!(beginning(&"ä".repeat(60)), None);
        assert_eq!(beginning(&"ä".repeat(61)), Some("ä".repeat(60) + "..."));
    }
}
