// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The secret with which a member's statements are attested: in a file of it, or in a device.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use zeroize::Zeroizing;

use crate::source::{ConfigError, Source, read_secret};

/// The table `[device]` of a member's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceEntry {
    socket: PathBuf,
    secret: u32,
}

/// The field of a member's file that names the file of its secret.
#[derive(Clone, Copy)]
pub struct SecretField<'a> {
    /// The field.
    pub name: &'static str,
    /// Its value, if there is one.
    pub path: Option<&'a Path>,
}

/// Where a member's secret is.
pub enum OwnSecret {
    /// In a file.
    File(Zeroizing<[u8; 32]>),
    /// In a device process of this host.
    Device {
        /// The socket of the process.
        socket: PathBuf,
        /// The number under which it has the secret.
        number: u32,
    },
}

impl OwnSecret {
    /// Reads the secret that a member's file names, or the table `[device]` in its place.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn read(
        source: &Source,
        field: SecretField<'_>,
        device: Option<&Spanned<DeviceEntry>>,
    ) -> Result<Self, ConfigError> {
        match (field.path, device) {
            (Some(path), None) => Ok(Self::File(read_secret(&source.beside(path))?)),
            (None, Some(entry)) => {
                let DeviceEntry { socket, secret } = entry.get_ref();
                Ok(Self::Device { socket: source.beside(socket), number: *secret })
            }
            (None, None) => {
                let why = "is missing, and so is device".to_owned();
                Err(source.field(field.name, 0..0, why))
            }
            (Some(_), Some(entry)) => {
                let why = format!("a device has its secrets itself: remove {}", field.name);
                Err(source.field("device", entry.span(), why))
            }
        }
    }
}
