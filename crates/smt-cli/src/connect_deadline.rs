// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The deadline of connecting, of which the library takes less than of calls.

use std::time::Duration;

use smt::{ConnectError, ErrorKind, OpenError};

/// The one that the library takes and that is next to this deadline of a call.
pub(crate) fn accepted(deadline: Duration) -> Duration {
    deadline.clamp(LEAST, MOST)
}

/// Whether a connect has ended by a deadline too short for a handshake, so that the silence says
/// nothing of the server.
pub(crate) fn was_too_short(error: &OpenError) -> bool {
    let OpenError::Connect(error) = error else {
        return false;
    };
    match error.kind() {
        ErrorKind::Connect(ConnectError::Unfinished { .. }) => true,
        ErrorKind::Connect(ConnectError::NoAnswer(deadline)) => *deadline < HANDSHAKE,
        _ => false,
    }
}

/// The least that `Builder::connect_deadline` takes.
const LEAST: Duration = Duration::from_millis(1);
/// The most that it takes.
const MOST: Duration = Duration::from_secs(3_600);
/// Time in which a server on a busy host answers the first packet of a client.
const HANDSHAKE: Duration = Duration::from_millis(100);
