// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One socket for any number of connections.
//!
//! Requests of all connections leave together and replies come together, so that a datagram's way
//! through the kernel is shared: that is most of what a small command costs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult};
use smt::{Address, Builder, Endpoint, Incoming, OpenError, TlsClient};
use tokio::task::JoinHandle;

use crate::pushes::Routes;
use crate::stream::Stream;

/// A socket for any number of connections to any servers, each a session of its own; cheap to
/// clone. It is closed when the last clone and the last connection have gone.
///
/// A connection whose reader has stopped holds up the others' long replies and messages of
/// subscriptions, for at most ten seconds: then it ends, and its error says so. Readers that may
/// take their time have a socket of their own by [`Options::stream`](crate::Options::stream).
#[derive(Clone, Debug)]
pub struct Connector {
    socket: Arc<Socket>,
}

/// The endpoint, and the tasks that work for its connections.
#[derive(Debug)]
pub(crate) struct Socket {
    endpoint: Endpoint,
    routes: Arc<Routes>,
    tasks: [JoinHandle<()>; 2],
}

impl Socket {
    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The times of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// For how long a reader that has stopped may hold up others; without it for ever.
    pub(crate) stall_max: Option<Duration>,
    /// Between two looks whether servers are there, of which connections without requests do not
    /// hear otherwise.
    pub(crate) probe: Duration,
}

impl Connector {
    pub(crate) async fn open(builder: Builder<TlsClient>, times: Times) -> Result<Self, OpenError> {
        let endpoint = match builder.clone().open("[::]:0").await {
            // A host may have no IPv6.
            Err(_) => builder.open("0.0.0.0:0").await?,
            opened => opened?,
        };
        let routes = Arc::new(Routes::default());
        let taking = take(endpoint.clone(), Arc::clone(&routes), times.stall_max);
        let probing = probe(Arc::clone(&routes), times.probe);
        let tasks = [tokio::spawn(taking), tokio::spawn(probing)];
        let socket = Arc::new(Socket {
            endpoint,
            routes,
            tasks,
        });
        Ok(Self { socket })
    }

    /// Connects.
    ///
    /// # Errors
    /// No session came about; the text says why, and what to do.
    pub async fn stream(&self, address: impl Into<Address>) -> io::Result<Stream> {
        let client = self.socket.endpoint.client(address);
        let client = client.map_err(|error| refused(&error))?;
        let session = client.connect().await.map_err(|error| refused(&error))?;
        Ok(Stream::new(Arc::clone(&self.socket), client, session))
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
        let stream = self.stream(address).await?;
        let (connection, driver) =
            MultiplexedConnection::new_with_config(info, stream, config).await?;
        tokio::spawn(driver);
        Ok(connection)
    }
}

/// Hands the servers' one-way messages over, until the endpoint is closed.
async fn take(endpoint: Endpoint, routes: Arc<Routes>, stall_max: Option<Duration>) {
    while let Some(incoming) = endpoint.accept().await {
        // A server calls nobody; a request that is dropped is told to have failed.
        if let Incoming::Message(message) = incoming {
            routes.deliver(message, stall_max).await;
        }
    }
}

/// Sends each server a message of no bytes again and again: one that is gone does not take it.
async fn probe(routes: Arc<Routes>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        for session in routes.sessions() {
            let routes = Arc::clone(&routes);
            tokio::spawn(async move {
                if let Err(error) = session.send("").await {
                    routes.end(&session, error.to_string());
                }
            });
        }
    }
}

fn refused(error: &impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, error.to_string())
}
