// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command lines.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// A key-value server
#[derive(Clone, Debug, Parser)]
pub struct ServerArguments {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long)]
    pub listen: String,
    /// Authority that signs the clients' certificates (PEM)
    #[arg(long)]
    pub ca: PathBuf,
    /// The server's certificate (PEM)
    #[arg(long)]
    pub cert: PathBuf,
    /// Its private key (PEM)
    #[arg(long)]
    pub key: PathBuf,
    /// Common name of a client that may write; may be repeated
    #[arg(long)]
    pub writer: Vec<String>,
    /// Operations on keys that begin with `held/` wait until this file exists
    #[arg(long)]
    pub hold: Option<PathBuf>,
}

/// A key-value client, which takes commands from standard input
#[derive(Clone, Debug, Parser)]
pub struct ClientArguments {
    /// The server's host and port
    #[arg(long)]
    pub server: String,
    /// Authority that signs the server's certificate (PEM)
    #[arg(long)]
    pub ca: PathBuf,
    /// The client's certificate (PEM)
    #[arg(long)]
    pub cert: PathBuf,
    /// Its private key (PEM)
    #[arg(long)]
    pub key: PathBuf,
    /// Milliseconds that an operation may take, attempts and pauses included
    #[arg(long, default_value = "5000", value_parser = milliseconds)]
    pub deadline: Duration,
}

impl ClientArguments {
    /// The host part of the server's address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.server.rsplit_once(':').map_or(&self.server, |(host, _)| host)
    }
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}
