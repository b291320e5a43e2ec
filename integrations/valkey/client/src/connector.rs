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
use smt::{Address, Builder, Endpoint, Incoming, OpenError, Session, TlsClient};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use crate::pushes::Routes;
use crate::stream::Stream;

/// A socket for any number of connections to any servers, each a session of its own; cheap to
/// clone. It is closed when the last clone and the last connection have gone.
///
/// Long replies and messages of subscriptions go through one queue. A slow reader slows those of
/// the other connections down to its pace, and one that takes nothing for ten seconds ends, with an
/// error that says so. A reader that may take its time gets a socket of its own by
/// [`Options::stream`](crate::Options::stream), as does a subscriber whose task waits for another
/// connection between two messages: the two could wait for each other.
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
        let (lost, losses) = mpsc::unbounded_channel();
        let taking = take(endpoint.clone(), Arc::clone(&routes), losses, times.stall_max);
        let probing = probe(Arc::clone(&routes), lost, times.probe);
        let tasks = [tokio::spawn(taking), tokio::spawn(probing)];
        let socket = Arc::new(Socket { endpoint, routes, tasks });
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
        Ok(Stream::new(Arc::clone(&self.socket), session))
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

/// A session whose server is not there any more, and why that is known.
type Loss = (Session, String);

/// Hands the servers' one-way messages over, until the endpoint is closed. A session ends behind
/// all messages that have come by it: a server may close it while some wait here.
async fn take(
    endpoint: Endpoint,
    routes: Arc<Routes>,
    mut losses: UnboundedReceiver<Loss>,
    stall_max: Option<Duration>,
) {
    loop {
        tokio::select! {
            biased;
            incoming = endpoint.accept() => match incoming {
                Some(Incoming::Message(message)) => routes.deliver(message, stall_max).await,
                // A server calls nobody; a request that is dropped is told to have failed.
                Some(_) => {}
                None => return,
            },
            Some((session, why)) = losses.recv() => routes.end(&session, why),
        }
    }
}

/// Sends each server a message of no bytes again and again: one that is gone does not take it.
async fn probe(routes: Arc<Routes>, lost: UnboundedSender<Loss>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        for session in routes.sessions() {
            let lost = lost.clone();
            tokio::spawn(async move {
                if let Err(error) = session.send("").await {
                    // The socket may be closed.
                    let _ = lost.send((session, error.to_string()));
                }
            });
        }
    }
}

fn refused(error: &impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, error.to_string())
}
