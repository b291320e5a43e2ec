// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates by the options of a command.

use std::error::Error;
use std::path::PathBuf;

use smt::{Identity, Trust};

use crate::Options;

/// The options `--cacert`, `--cert`, `--key` and `--sni` of a command.
#[derive(Clone, Debug, clap::Args)]
pub struct Credentials {
    /// PEM file of the authorities that may vouch for the server.
    #[arg(long)]
    cacert: PathBuf,
    /// PEM file of this client's certificate.
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of its private key.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// Name that the server's certificate must have, if not that of the host.
    #[arg(long)]
    sni: Option<String>,
}

impl Credentials {
    /// Options of a client, of the files as they are now.
    ///
    /// # Errors
    /// A file cannot be read, or has no certificate or key that may be used.
    pub fn options(&self) -> Result<Options, Box<dyn Error>> {
        let mut options = Options::new(Trust::roots_from_pem_files(&[&self.cacert])?);
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            options = options.identity(Identity::from_pem_files(cert, key)?);
        }
        if let Some(name) = &self.sni {
            options = options.server_name(name.clone());
        }
        Ok(options)
    }
}
