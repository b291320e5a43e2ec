// SPDX-License-Identifier: Apache-2.0 OR MIT
//! gRPC by tonic over TLS: unary calls whose messages are bytes as they are, without protobuf.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::client;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{self, NamedService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{
    Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig,
};
use tonic::{Request, Response, Status};
use tower::Service;

use super::{Newcomer, Peer, Shape};
use crate::certificates::{SERVER_NAME, authority, certificate, key};
use crate::failure::Failure;
use crate::job::Setting;
use crate::load::{Callers, TaskCaller, Tasks, deal, runtime};
use crate::{frame, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grpc;

impl Peer for Grpc {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn settings(&self) -> &'static str {
        "gRPC by tonic over TLS/TCP (rustls); current-thread runtimes; one channel, unary calls; windows of 16 MB; 4,096 \
         streams; NODELAY; messages are bytes, without protobuf"
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        use_one_suite()?;
        let chain = std::fs::read(certificate(&setting.directory))?;
        let key = std::fs::read(key(&setting.directory))?;
        let config = ServerTlsConfig::new().identity(Identity::from_pem(chain, key));
        runtime()?.block_on(async {
            let listener = tokio::net::TcpListener::bind(address).await?;
            crate::server::listening(listener.local_addr()?)?;
            Server::builder()
                .tls_config(config)?
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .max_concurrent_streams(STREAMS)
                .add_service(Echo)
                .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
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
        let (runtime, endpoint) = (runtime()?, endpoint(setting, server)?);
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..shape.connections_shared() {
                connections.push(Caller::connect(&endpoint).await?);
            }
            Ok::<_, Failure>(connections)
        })?;
        Ok(Box::new(Tasks::new(
            runtime,
            deal(connections, shape.callers),
        )))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (runtime, endpoint) = (runtime()?, endpoint(setting, server)?);
        Ok(Box::new(move || {
            runtime.block_on(Caller::connect(&endpoint)).map(drop)
        }))
    }
}

/// tonic takes no configuration of TLS but the process's default.
fn use_one_suite() -> Result<(), Failure> {
    let provider = tls::provider().as_ref().clone();
    let installed = provider.install_default();
    installed.map_err(|_| Failure::new("the process has a default for TLS already"))
}

fn endpoint(setting: &Setting, server: SocketAddr) -> Result<Endpoint, Failure> {
    use_one_suite()?;
    let authority = Certificate::from_pem(std::fs::read(authority(&setting.directory))?);
    let config = ClientTlsConfig::new()
        .ca_certificate(authority)
        .domain_name(SERVER_NAME);
    Ok(Endpoint::from_shared(format!("https://{server}"))?
        .tls_config(config)?
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES))
}

#[derive(Clone)]
struct Caller(client::Grpc<Channel>);

impl Caller {
    /// Has made one call when it returns.
    async fn connect(endpoint: &Endpoint) -> Result<Self, Failure> {
        let mut caller = Self(client::Grpc::new(endpoint.connect().await?));
        caller.call(&frame::request(64, 64)).await?;
        Ok(caller)
    }
}

impl TaskCaller for Caller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        self.0.ready().await?;
        let path = PathAndQuery::from_static(PATH);
        let reply = self
            .0
            .unary(Request::new(request.clone()), path, Raw)
            .await?;
        Ok(reply.into_inner().len())
    }
}

/// The server's only service.
#[derive(Clone, Copy)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async { Ok(server::Grpc::new(Raw).unary(Method, request).await) })
    }
}

/// The service's only method.
struct Method;

impl Service<Request<Bytes>> for Method {
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(frame::answer(request.into_inner()))))
    }
}

/// Bytes as they are.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

const PATH: &str = "/bench.Echo/Call";
const STREAMS: u32 = 4_096;
const WINDOW_BYTES: u32 = 16 << 20;
