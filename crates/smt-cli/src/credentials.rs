// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options about who this side is and whom it believes, shared by `serve`, `call` and `perf`.

use std::path::PathBuf;

use clap::Args;
use smt::{Builder, ClientAuth, Identity, Trust};

use crate::failure::Failure;

/// A server's certificate, and which clients it lets in.
#[derive(Args, Debug)]
pub(crate) struct ServerCredentials {
    /// The server's certificate, and the chain behind it (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: PathBuf,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// Let only clients in whose certificate this authority has signed (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
}

impl ServerCredentials {
    /// Whether only clients with a certificate are let in.
    pub(crate) fn has_client_authority(&self) -> bool {
        self.client_ca.is_some()
    }

    /// Applies them.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, Failure> {
        let builder = builder.identity(Identity::from_pem_files(&self.cert, &self.key)?);
        let Some(authority) = &self.client_ca else {
            return Ok(builder);
        };
        let trust = Trust::roots_from_pem_files(&[authority])?;
        Ok(builder.client_auth(ClientAuth::Required(trust)))
    }
}

/// Which servers a client believes, and who it is itself.
#[derive(Args, Debug)]
pub(crate) struct ClientCredentials {
    #[command(flatten)]
    pub(crate) anchors: Anchors,
    /// The client's certificate, for servers that ask for one (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that the server must prove; by default the host part of the address
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Exactly one of the two ways to believe a server.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Anchors {
    /// Believe servers whose certificate this authority has signed (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Believe exactly the certificates in this file (PEM)
    #[arg(long, value_name = "FILE")]
    pin: Option<PathBuf>,
}

impl ClientCredentials {
    /// Applies them.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, Failure> {
        let mut builder = builder.trust(self.anchors.trust()?);
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            builder = builder.identity(Identity::from_pem_files(cert, key)?);
        }
        if let Some(name) = &self.name {
            builder = builder.server_name(name);
        }
        Ok(builder)
    }
}

impl Anchors {
    fn trust(&self) -> Result<Trust, Failure> {
        match (&self.ca, &self.pin) {
            (Some(authority), _) => Ok(Trust::roots_from_pem_files(&[authority])?),
            (None, Some(pinned)) => Ok(Trust::pinned_from_pem_file(pinned)?),
            (None, None) => Err(Failure::new("give --ca or --pin: whom to believe")),
        }
    }
}
