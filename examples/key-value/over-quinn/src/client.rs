// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value client over QUIC.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{ClientArguments, Failure, Parser, Refusal, Storage, Store};
use kv_quinn::{ALPN, CANCELLED, Reply, Request, SHUTTING_DOWN, credentials, transport};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ApplicationClose, ClientConfig, Connection, ConnectionError, Endpoint, ReadError,
    ReadToEndError, TransportErrorCode, WriteError,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = ClientArguments::parse();
    let mut endpoint = Endpoint::client(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    endpoint.set_default_client_config(config(&arguments)?);
    let store = QuinnStore { endpoint, arguments, connection: Mutex::new(None) };
    common::run(&store).await?;
    store.endpoint.close(0_u32.into(), b"done");
    store.endpoint.wait_idle().await;
    Ok(())
}

fn config(arguments: &ClientArguments) -> Result<ClientConfig, Box<dyn Error>> {
    let (roots, chain, key) = credentials(&arguments.ca, &arguments.cert, &arguments.key)?;
    let mut tls = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    Ok(config)
}

struct QuinnStore {
    endpoint: Endpoint,
    arguments: ClientArguments,
    connection: Mutex<Option<Connection>>,
}

impl Store for QuinnStore {
    async fn get(&self, key: String) -> Result<Option<Bytes>, Failure> {
        match self.call(Request::Get { key }).await? {
            Reply::Value(value) => Ok(value),
            _ => Err(unexpected()),
        }
    }

    async fn set(&self, key: String, value: Bytes) -> Result<(), Failure> {
        match self.call(Request::Set { key, value }).await? {
            Reply::Stored => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn delete(&self, key: String) -> Result<bool, Failure> {
        match self.call(Request::Delete { key }).await? {
            Reply::Deleted(was_there) => Ok(was_there),
            _ => Err(unexpected()),
        }
    }

    async fn list(&self, prefix: String) -> Result<Vec<String>, Failure> {
        match self.call(Request::List { prefix }).await? {
            Reply::Keys(keys) => Ok(keys),
            _ => Err(unexpected()),
        }
    }
}

impl QuinnStore {
    /// Calls, and again within the deadline as long as the request has not run.
    async fn call(&self, request: Request) -> Result<Reply, Failure> {
        let request = postcard::to_allocvec(&request).map_err(|_| unexpected())?;
        let due = Instant::now() + self.arguments.deadline;
        let mut pause = PAUSE_FIRST;
        loop {
            let attempt = tokio::time::timeout_at(due, self.attempt(&request)).await;
            let failed = match attempt {
                Ok(Ok(Reply::Refused { code, text })) => {
                    return Err(Failure::Refused(Refusal { code, text }));
                }
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(failed)) => failed,
                Err(_) => return Err(Failure::DeadlineExceeded),
            };
            if !failed.may_retry || due - Instant::now() <= pause {
                return Err(failed.failure);
            }
            tokio::time::sleep(pause).await;
            pause = PAUSE_MAX.min(2 * pause);
        }
    }

    async fn attempt(&self, request: &[u8]) -> Result<Reply, Failed> {
        let connection = self.connection().await?;
        let (send, mut recv) = connection.open_bi().await.map_err(not_run)?;
        // A future that is dropped by the deadline cancels the request.
        let mut send = ResetOnDrop(send);
        send.0.write_all(request).await.map_err(Failed::of_write)?;
        send.0.finish().map_err(may_have_run)?;
        let reply = recv.read_to_end(Storage::MESSAGE_MAX).await;
        let reply = reply.map_err(Failed::of_read)?;
        postcard::from_bytes(&reply).map_err(may_have_run)
    }

    /// The live connection, or another one.
    async fn connection(&self) -> Result<Connection, Failed> {
        let mut current = self.connection.lock().await;
        if let Some(connection) = &*current
            && connection.close_reason().is_none()
        {
            return Ok(connection.clone());
        }
        let server = &self.arguments.server;
        let mut addresses = tokio::net::lookup_host(server).await.map_err(not_run)?;
        let address = addresses.find(SocketAddr::is_ipv4);
        let address = address.ok_or_else(|| not_run(format!("{server} has no IPv4 address")))?;
        let connecting = self.endpoint.connect(address, self.arguments.host());
        let connection = connecting.map_err(never)?.await;
        let connection = connection.map_err(Failed::of_connect)?;
        Ok(current.insert(connection).clone())
    }
}

/// A stream whose request is given up if it is dropped before its end.
struct ResetOnDrop(quinn::SendStream);

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        let _ = self.0.reset(CANCELLED);
    }
}

/// An attempt that failed.
struct Failed {
    failure: Failure,
    may_retry: bool,
}

impl Failed {
    fn of_connect(error: ConnectionError) -> Self {
        match error {
            // Certificates or versions do not fit, now or later.
            ConnectionError::TransportError(_) | ConnectionError::VersionMismatch => never(error),
            ConnectionError::ConnectionClosed(ref close)
                if close.error_code != TransportErrorCode::CONNECTION_REFUSED =>
            {
                never(error)
            }
            _ => not_run(error),
        }
    }

    fn of_write(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(SHUTTING_DOWN) => not_run(error),
            WriteError::ConnectionLost(error) => Self::of_lost(error),
            _ => may_have_run(error),
        }
    }

    fn of_read(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::Read(ReadError::Reset(SHUTTING_DOWN)) => not_run(error),
            ReadToEndError::Read(ReadError::ConnectionLost(error)) => Self::of_lost(error),
            _ => may_have_run(error),
        }
    }

    /// The connection ended while the request was under way.
    fn of_lost(error: ConnectionError) -> Self {
        match &error {
            // The server answers what it has begun before it closes.
            ConnectionError::ApplicationClosed(ApplicationClose { error_code, .. })
                if *error_code == SHUTTING_DOWN =>
            {
                not_run(error)
            }
            // The server did not take this client's certificate.
            ConnectionError::ConnectionClosed(_) => never(error),
            _ => may_have_run(error),
        }
    }
}

fn not_run(error: impl ToString) -> Failed {
    Failed { failure: Failure::DidNotRun(error.to_string()), may_retry: true }
}

fn never(error: impl ToString) -> Failed {
    Failed { failure: Failure::DidNotRun(error.to_string()), may_retry: false }
}

fn may_have_run(error: impl ToString) -> Failed {
    Failed { failure: Failure::MayHaveRun(error.to_string()), may_retry: false }
}

fn unexpected() -> Failure {
    Failure::MayHaveRun("the server's reply is not understood".to_owned())
}

const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
