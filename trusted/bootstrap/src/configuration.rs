// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The configuration that a vendor gives a device.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// The secrets of a device's groups, by the numbers under which its host names them. Wiped when
/// dropped, and never printed.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct Configuration {
    /// The device that it is for.
    pub device: u32,
    /// Number and secret of each group.
    pub secrets: Vec<(u32, [u8; 32])>,
}

impl Drop for Configuration {
    fn drop(&mut self) {
        self.secrets.iter_mut().for_each(|(_, secret)| secret.zeroize());
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Configuration of device {} with {} secrets", self.device, self.secrets.len())
    }
}
