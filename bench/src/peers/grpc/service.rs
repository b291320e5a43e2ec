// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service of gRPC: one method for whole replies, one for replies in parts. Messages are bytes
//! as they are.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{self, NamedService};
use tonic::{Request, Response, Status};
use tower::Service;

use crate::frame;
use crate::parts::Wanted;

/// The server's only service.
#[derive(Clone, Copy)]
pub(super) struct Echo;

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
        Box::pin(async {
            let mut grpc = server::Grpc::new(Raw);
            Ok(match request.uri().path() {
                PARTS_PATH => grpc.server_streaming(PartsMethod, request).await,
                _ => grpc.unary(Method, request).await,
            })
        })
    }
}

/// Answers in parts. All are ready at once: the cheapest stream that a server can have.
struct PartsMethod;

/// The parts of a reply.
type PartStream = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl Service<Request<Bytes>> for PartsMethod {
    type Response = Response<PartStream>;
    type Error = Status;
    type Future = Ready<Result<Response<PartStream>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let wanted = Wanted::of(&request.into_inner());
        let parts = wanted.into_iter().flat_map(Wanted::parts).map(Ok);
        let parts: PartStream = Box::pin(tokio_stream::iter(parts));
        ready(Ok(Response::new(parts)))
    }
}

/// The service's method for whole replies.
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
pub(super) struct Raw;

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

/// The path of calls whose replies have parts.
pub(super) const PARTS_PATH: &str = "/bench.Echo/Parts";
/// The path of calls whose replies are whole.
pub(super) const PATH: &str = "/bench.Echo/Call";
