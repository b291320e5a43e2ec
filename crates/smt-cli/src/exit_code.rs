// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exit codes: they tell a script what has become of its request.

use std::io;

use smt::{CallFailure, ConnectError, Error, ErrorKind, Execution, OpenError};

/// Any failure that no other code tells.
pub(crate) const FAILURE: u8 = 1;
/// Wrong arguments, as clap ends.
pub(crate) const USAGE: u8 = 2;
/// The request did not run.
pub(crate) const DID_NOT_RUN: u8 = 3;
/// The request may have run.
pub(crate) const MAY_HAVE_RUN: u8 = 4;
/// The server's application refused the request, which did not run.
pub(crate) const REFUSED: u8 = 5;
/// No server was reached.
pub(crate) const NO_SERVER: u8 = 6;
/// The request has run, and its reply could not be written.
pub(crate) const OUTPUT_FAILED: u8 = 7;

/// The codes, for help texts.
pub(crate) const HELP: &str = "\
Exit codes:
  0    success: the reply is there, or the reader of the pipe wanted no more
  1    any other failure, before a request was made
  2    wrong usage
  3    the request did not run: it is safe to repeat it
  4    the request may have run
  5    the server's application refused the request, which did not run
  6    no server was reached, so the request did not run: none is there, none answers,
       or its name has no address
  7    the request has run, but its reply could not be written
  128+N  ended by signal N, for example 130 by Ctrl-C";

/// The code of an operation with a server.
pub(crate) fn of_error(error: &Error) -> u8 {
    of_kind(error.kind(), error.execution())
}

fn of_kind(kind: &ErrorKind, execution: Execution) -> u8 {
    match kind {
        ErrorKind::Unresolved(_)
        | ErrorKind::Connect(
            ConnectError::NoServer
            | ConnectError::NoAnswer(_)
            | ConnectError::NotSent(_)
            | ConnectError::PathTooSmall
            | ConnectError::NotSmt(_),
        ) => NO_SERVER,
        ErrorKind::Call(call) if matches!(call.reason, CallFailure::Refused(_)) => REFUSED,
        ErrorKind::NotDelivered(CallFailure::Refused(_)) => REFUSED,
        _ => match execution {
            Execution::DidNotRun => DID_NOT_RUN,
            Execution::MayHaveRun => MAY_HAVE_RUN,
        },
    }
}

/// The code of an endpoint that was not opened.
pub(crate) fn of_open_error(error: &OpenError) -> u8 {
    match error {
        OpenError::Connect(error) => of_error(error),
        // Such an address can be none of any host; one that does not resolve may do so later.
        OpenError::Address { reason, .. } if reason.kind() == io::ErrorKind::InvalidInput => USAGE,
        OpenError::Address { .. } => NO_SERVER,
        _ => FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt::{CallError, Failure, Refused, SessionEnd, Unavailability};
    use std::time::Duration;

    fn call(reason: CallFailure, execution: Execution) -> (ErrorKind, Execution) {
        (CallError { reason, execution }.into(), execution)
    }

    fn not_run(kind: impl Into<ErrorKind>) -> (ErrorKind, Execution) {
        (kind.into(), Execution::DidNotRun)
    }

    #[test]
    fn a_code_tells_what_has_become_of_the_request() {
        use Execution::{DidNotRun, MayHaveRun};
        let refused = CallFailure::Refused(Box::new(Failure::refusal(1, "no")));
        let time = Duration::from_secs(1);
        let silent = CallFailure::SessionEnded(SessionEnd::Silent(time));
        let full = ConnectError::Unavailable(Unavailability::Full);
        let too_large = Refused::TooLarge { length: 2, limit: 1 };
        for ((kind, execution), code) in [
            (call(refused, DidNotRun), 5),
            (call(CallFailure::DeadlineExceeded, DidNotRun), 3),
            (call(CallFailure::DeadlineExceeded, MayHaveRun), 4),
            (call(CallFailure::Dropped, MayHaveRun), 4),
            (call(silent, MayHaveRun), 4),
            (not_run(ConnectError::NoServer), 6),
            (not_run(ConnectError::NoAnswer(time)), 6),
            (not_run(ConnectError::NotSmt(time)), 6),
            (not_run(ErrorKind::Unresolved(String::new())), 6),
            (not_run(full), 3),
            (not_run(too_large), 3),
            (not_run(ErrorKind::NotDelivered(CallFailure::TooLarge)), 3),
            ((ErrorKind::MayHaveBeenDelivered(CallFailure::Forgotten), MayHaveRun), 4),
        ] {
            assert_eq!(of_kind(&kind, execution), code, "{kind}");
            assert!(HELP.contains(&format!("\n  {code}  ")));
        }
    }

    #[test]
    fn an_address_that_can_be_none_is_wrong_usage_and_another_is_no_server() {
        for (kind, code) in [(io::ErrorKind::InvalidInput, 2), (io::ErrorKind::NotFound, 6)] {
            let address = OpenError::Address { address: "nowhere".to_owned(), reason: kind.into() };
            assert_eq!(of_open_error(&address), code);
        }
        assert_eq!(of_open_error(&OpenError::Options("no")), 1);
    }
}
