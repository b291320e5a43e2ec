// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whom a client trusts, who it is, and how it connects.

use std::io;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult};
use smt::{Address, Identity, Trust};

use crate::stream::Stream;

/// Choices of a client.
#[derive(Clone, Debug)]
#[must_use = "options connect nothing by themselves"]
pub struct Options {
    trust: Trust,
    identity: Option<Identity>,
    server_name: Option<String>,
    silence_max: Duration,
}

impl Options {
    /// A client that accepts servers by this trust.
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            identity: None,
            server_name: None,
            silence_max: SILENCE_MAX,
        }
    }

    /// Shows this certificate to servers that ask for one.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Demands a certificate of this name, and not of the host in the address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets how long a server may be silent before it is taken for dead; 15 s by default. A Valkey
    /// that works on one command for longer answers nothing meanwhile. Scripts are no such command:
    /// behind `busy-reply-threshold`, 5 s, the server answers again.
    pub fn silence_max(mut self, time: Duration) -> Self {
        self.silence_max = time;
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// No session came about; the text says why, and what to do.
    pub async fn stream(&self, address: impl Into<Address>) -> io::Result<Stream> {
        let mut builder = smt::client(self.trust.clone()).configure(|config| {
            config.silence_max = self.silence_max;
            config.memory_max = MEMORY_MAX;
            config.message_limit = MESSAGE_MAX;
        });
        if let Some(identity) = &self.identity {
            builder = builder.identity(identity.clone());
        }
        if let Some(name) = &self.server_name {
            builder = builder.server_name(name.clone());
        }
        let client = builder.connect(address).await;
        let client = client.map_err(|error| refused(&error))?;
        let session = client.connect().await.map_err(|error| refused(&error))?;
        Ok(Stream::new(client, session))
    }

    /// Connects, for the crate `redis`. User, password, database and protocol are those of `info`.
    /// The connection is driven by a task of the present runtime, and may be cloned.
    ///
    /// # Errors
    /// No session came about, or the server refused what `info` asks for.
    pub async fn connection(
        &self,
        address: impl Into<Address>,
        info: &RedisConnectionInfo,
    ) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::default();
        self.connection_with_config(address, info, config).await
    }

    /// The same with timeouts and receivers of push messages; by default a reply that takes longer
    /// than 500 ms fails.
    ///
    /// # Errors
    /// As of [`Self::connection`].
    pub async fn connection_with_config(
        &self,
        address: impl Into<Address>,
        info: &RedisConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let stream = self.stream(address).await?;
        let (connection, driver) =
            MultiplexedConnection::new_with_config(info, stream, config).await?;
        tokio::spawn(driver);
        Ok(connection)
    }
}

fn refused(error: &impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, error.to_string())
}

/// Longer than a server is busy with one command, as a rule.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Bytes of messages that wait for a reader. Behind that the server's own output buffer fills.
const MEMORY_MAX: usize = 8 << 20;
/// Bytes of the largest message of a server; no module sends more than 128 KiB.
const MESSAGE_MAX: u32 = 1 << 20;
