// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whom a client trusts, who it is, and how it connects.

use std::io;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult};
use smt::{Address, Builder, Identity, TlsClient, Trust};

use crate::connector::{Connector, Times};
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
        Self { trust, identity: None, server_name: None, silence_max: SILENCE_MAX }
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

    /// Opens a socket for any number of connections.
    ///
    /// # Errors
    /// The system gives no socket, or name or certificate cannot be used; the text says why.
    pub async fn open(&self) -> io::Result<Connector> {
        let times = Times { stall_max: Some(STALL_MAX), probe: self.silence_max };
        let opened = Connector::open(self.builder(MEMORY_OF_ALL_MAX), times).await;
        opened.map_err(io::Error::other)
    }

    /// Connects by a socket of its own, whose reader may take its time: the server waits.
    ///
    /// # Errors
    /// No session came about; the text says why, and what to do.
    pub async fn stream(&self, address: impl Into<Address>) -> io::Result<Stream> {
        self.alone().await?.stream(address).await
    }

    /// Connects by a socket of its own, for the crate `redis`. User, password, database and
    /// protocol are those of `info`. The connection is driven by a task of the present runtime, and
    /// may be cloned.
    ///
    /// # Errors
    /// No session came about, or the server refused what `info` asks for.
    pub async fn connection(
        &self,
        address: impl Into<Address>,
        info: &RedisConnectionInfo,
    ) -> RedisResult<MultiplexedConnection> {
        self.alone().await?.connection(address, info).await
    }

    /// Connects with timeouts and receivers of push messages; by default a reply that takes longer
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
        let connector = self.alone().await?;
        connector.connection_with_config(address, info, config).await
    }

    /// A socket for one connection.
    async fn alone(&self) -> io::Result<Connector> {
        let times = Times { stall_max: None, probe: self.silence_max };
        let opened = Connector::open(self.builder(MEMORY_MAX), times).await;
        opened.map_err(io::Error::other)
    }

    fn builder(&self, memory_max: usize) -> Builder<TlsClient> {
        let mut builder = smt::client(self.trust.clone()).configure(|config| {
            config.silence_max = self.silence_max;
            config.memory_max = memory_max;
            config.message_limit = MESSAGE_MAX;
        });
        if let Some(identity) = &self.identity {
            builder = builder.identity(identity.clone());
        }
        if let Some(name) = &self.server_name {
            builder = builder.server_name(name.clone());
        }
        builder
    }
}

/// Longer than a server is busy with one command, as a rule.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Bytes of messages that wait for a reader. Behind that the server's own output buffer fills.
const MEMORY_MAX: usize = 8 << 20;
/// The same for all connections of one socket.
const MEMORY_OF_ALL_MAX: usize = 64 << 20;
/// For so long a reader that has stopped may hold up those of the same socket.
const STALL_MAX: Duration = Duration::from_secs(10);
/// Bytes of the largest message of a server; no module sends more than 128 KiB.
const MESSAGE_MAX: u32 = 1 << 20;
