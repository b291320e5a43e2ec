// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a leader asks of the runtime's watch of the socket.

use smt_io::SocketWatch;

/// Tells whatever drives that something has come, while it is on.
pub(crate) trait Watch: Send {
    fn is_on(&self) -> bool;

    /// Turns it on or off. When it is turned on it tells of what has come meanwhile.
    fn turn(&mut self, on: bool);
}

impl Watch for SocketWatch {
    fn is_on(&self) -> bool {
        Self::is_on(self)
    }

    fn turn(&mut self, on: bool) {
        Self::turn(self, on);
    }
}
