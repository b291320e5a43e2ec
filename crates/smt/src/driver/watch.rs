// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The runtime's watch of the socket, as a leader uses it.

use smt_io::CarrierWatch;

/// Tells whatever drives that something has come, while it is on.
pub(crate) trait Watch: Send {
    fn is_on(&self) -> bool;

    /// Turns it on or off. When it is turned on it tells of what has come meanwhile.
    fn turn(&mut self, on: bool);
}

impl Watch for CarrierWatch {
    fn is_on(&self) -> bool {
        Self::is_on(self)
    }

    fn turn(&mut self, on: bool) {
        Self::turn(self, on);
    }
}
