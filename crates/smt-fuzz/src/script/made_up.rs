// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A datagram that the input made up.

use arbitrary::Arbitrary;

use crate::world::{Datagram, STRANGER};

/// Its bytes, and between whom.
#[derive(Arbitrary, Debug)]
pub(super) struct MadeUp {
    to_server: bool,
    is_from_stranger: bool,
    bytes: Vec<u8>,
}

impl MadeUp {
    /// As it arrives.
    pub(super) fn datagram(&self) -> Datagram {
        let to = usize::from(self.to_server);
        let from = if self.is_from_stranger { STRANGER } else { 1 - to };
        let bytes = self.bytes.clone();
        Datagram { from, to, bytes }
    }
}
