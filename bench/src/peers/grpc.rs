// SPDX-License-Identifier: Apache-2.0 OR MIT
//! gRPC by tonic over TLS: unary calls whose messages are bytes as they are, without protobuf.
//!
//! tonic is given TLS streams instead of certificates: its own configuration of TLS resumes
//! sessions, and has no setting for that.

mod service;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_rustls::{TlsAcceptor, TlsConnector, client as tls_client, server as tls_server};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Request;
use tonic::client;
use tonic::transport::{Channel, Endpoint, Server};
use tower::service_fn;

use service::{Echo, PARTS_PATH, PATH, Raw};

use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::job::{Setting, Work};
use crate::load::{Callers, TaskCaller, Tasks, deal, runtime};
use crate::parts::Wanted;
use crate::{frame, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grpc {
    /// At least so many.
    connections: usize,
}

impl Grpc {
    /// On one connection, which is what users have.
    pub(super) const ONE: Self = Self { connections: 1 };
    /// On four, for replies in parts.
    pub(super) const FOUR: Self = Self { connections: 4 };
}

impl Peer for Grpc {
    fn name(&self) -> &'static str {
        match self.connections {
            1 => "grpc",
            _ => "grpc-4",
        }
    }

    fn settings(&self) -> &'static str {
        if self.connections > 1 {
            return "as grpc, on four channels that callers share evenly; for replies in parts alone";
        }
        "gRPC by tonic over TLS/TCP (rustls); current-thread runtimes; one channel, unary calls; windows of 16 MB; 4,096 \
         streams; NODELAY; messages are bytes, without protobuf"
    }

    fn refuses(&self, work: &Work) -> Option<&'static str> {
        let is_one = self.connections == 1 || work.has_parts();
        (!is_one).then_some("it is for replies in parts; see grpc")
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let acceptor = TlsAcceptor::from(Arc::new(tls::server_config(&setting.directory, ALPN)?));
        runtime(setting.on_tokio.flavor)?.block_on(async {
            let listener = TcpListener::bind(address).await?;
            crate::server::listening(listener.local_addr()?)?;
            let (streams, accepted) = mpsc::unbounded_channel();
            tokio::spawn(accept(listener, acceptor, streams));
            Server::builder()
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .max_concurrent_streams(STREAMS.max(setting.callers))
                .add_service(Echo)
                .serve_with_incoming(UnboundedReceiverStream::new(accepted))
                .await?;
            Ok(())
        })
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let (runtime, dial) = (runtime(setting.on_tokio.flavor)?, Dial::new(setting, server)?);
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..shape.connections_shared().max(self.connections) {
                connections.push(Caller::connect(&dial).await?);
            }
            Ok::<_, Failure>(connections)
        })?;
        Ok(Box::new(Tasks::new(runtime, deal(connections, shape.callers))))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (runtime, dial) = (runtime(setting.on_tokio.flavor)?, Dial::new(setting, server)?);
        Ok(Box::new(move || runtime.block_on(Caller::connect(&dial)).map(drop)))
    }
}

type Accepted = io::Result<tls_server::TlsStream<TcpStream>>;

/// Accepts for ever; handshakes do not wait for each other.
async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    streams: UnboundedSender<Accepted>,
) -> io::Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (acceptor, streams) = (acceptor.clone(), streams.clone());
        // A client whose handshake fails tells why; the server takes streams until the process
        // ends.
        tokio::spawn(async move {
            let stream = acceptor.accept(socket).await?;
            streams.send(Ok(stream)).map_err(io::Error::other)
        });
    }
}

/// How clients connect.
struct Dial {
    endpoint: Endpoint,
    connector: TlsConnector,
    name: ServerName<'static>,
    server: SocketAddr,
}

impl Dial {
    fn new(setting: &Setting, server: SocketAddr) -> Result<Self, Failure> {
        let config = tls::client_config(&setting.directory, ALPN)?;
        // With "https" tonic would look for a TLS of its own.
        let endpoint = Endpoint::from_shared(format!("http://{server}"))?
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES);
        Ok(Self {
            endpoint,
            connector: TlsConnector::from(Arc::new(config)),
            name: tls::server_name()?,
            server,
        })
    }

    async fn connect(&self) -> Result<Channel, Failure> {
        let (connector, name, server) = (self.connector.clone(), self.name.clone(), self.server);
        let connect = service_fn(move |_: Uri| {
            let (connector, name) = (connector.clone(), name.clone());
            async move {
                let socket = TcpStream::connect(server).await?;
                socket.set_nodelay(true)?;
                let stream = connector.connect(name, socket).await?;
                Ok::<TokioIo<tls_client::TlsStream<TcpStream>>, io::Error>(TokioIo::new(stream))
            }
        });
        Ok(self.endpoint.connect_with_connector(connect).await?)
    }
}

#[derive(Clone)]
struct Caller(client::Grpc<Channel>);

impl Caller {
    /// Has made one call when it returns.
    async fn connect(dial: &Dial) -> Result<Self, Failure> {
        let mut caller = Self(client::Grpc::new(dial.connect().await?));
        caller.call(&frame::request(64, 64)).await?;
        Ok(caller)
    }
}

impl TaskCaller for Caller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        self.0.ready().await?;
        let path = PathAndQuery::from_static(PATH);
        let reply = self.0.unary(Request::new(request.clone()), path, Raw).await?;
        Ok(reply.into_inner().len())
    }

    async fn call_in_parts(&mut self, wanted: Wanted, length: u32) -> Result<(), Failure> {
        self.0.ready().await?;
        let path = PathAndQuery::from_static(PARTS_PATH);
        let request = Request::new(wanted.request(length));
        let reply = self.0.server_streaming(request, path, Raw).await?;
        let mut parts = reply.into_inner();
        let mut check = wanted.check();
        while let Some(part) = parts.message().await? {
            check.take(&part)?;
        }
        check.end()
    }
}

/// The ALPN protocol name of HTTP/2.
const ALPN: &[u8] = b"h2";
const STREAMS: u32 = 4_096;
const WINDOW_BYTES: u32 = 16 << 20;
