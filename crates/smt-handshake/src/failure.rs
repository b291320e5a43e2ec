// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why an attempt failed, in one line: the failures that are not TLS's own.
//!
//! One rule for the fault: the side that refuses blames its peer, and the side that is refused is
//! told what to change (the caller). For what TLS says see `tls/failure.rs`.

use smt_proto::key_exchange::{FailureKind, Fault, HandshakeFailure};
use smt_record::{Side, Suite};
use smt_wire::Params;

/// The peer sent what cannot be. A forged packet does this too, so the attempt is repeated
/// (SPEC §6.2).
pub(crate) fn malformed(text: String) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Peer, kind: FailureKind::Malformed, text }
}

/// The two sides have nothing in common.
pub(crate) fn nothing_common(text: String) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Peer, kind: FailureKind::NoCommonParameters, text }
}

/// The calling program or its configuration.
pub(crate) fn caller(text: String) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Caller, kind: FailureKind::Other, text }
}

/// This host.
pub(crate) fn environment(text: String) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Environment, kind: FailureKind::Other, text }
}

/// Parses the parameters that `sender` sent.
pub(crate) fn parse_params(params: &[u8], sender: Side) -> Result<Params<'_>, HandshakeFailure> {
    Params::parse(params).map_err(|error| malformed(format!("{error} (sent by the {sender})")))
}

/// Refuses a suite that `sender`'s parameters do not accept (SPEC §6.3, tag 4).
pub(crate) fn check_suite(
    suite: Suite,
    params: &[u8],
    sender: Side,
) -> Result<(), HandshakeFailure> {
    let accepted = parse_params(params, sender)?.suites;
    if accepted.iter().any(|code| code == suite.code()) {
        return Ok(());
    }
    Err(nothing_common(format!("TLS chose {suite}, which the {sender}'s parameters do not accept")))
}
