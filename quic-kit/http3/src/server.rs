// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server: h3 over quinn, which runs on the engine and does not know of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use h3::error::Code;
use h3::server::{RequestResolver, RequestStream};
use http::{Method, Request, Response, StatusCode, header};
use kit_offload::capture::capturing;
use kit_offload::{SharedDevice, server};
use kit_process::{Doing, Failure, tls};
use quinn::{Endpoint, EndpointConfig, Incoming, TransportConfig};
use rustls::crypto::aws_lc_rs::default_provider;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::files::file_of;

/// An endpoint for HTTP/3 with this certificate. Sessions are resumed, with requests in 0-RTT
/// packets: a repeated `GET` changes nothing here.
///
/// # Errors
/// A file cannot be read, or the address cannot be had.
pub fn endpoint(
    listen: SocketAddr,
    (certificate, key): (&Path, &Path),
    device: &SharedDevice,
) -> Result<Endpoint, Failure> {
    let provider = capturing(default_provider());
    let mut of_tls = tls::server_config(provider, certificate, key)?;
    of_tls.alpn_protocols = vec![b"h3".to_vec()];
    of_tls.send_tls13_tickets = 2;
    of_tls.max_early_data_size = u32::MAX;
    let transport = Arc::new(TransportConfig::default());
    server::endpoint(listen, of_tls, transport, EndpointConfig::default(), device)
}

/// Serves the files of a folder until the endpoint is closed.
pub async fn serve(endpoint: Endpoint, folder: Arc<Path>) {
    while let Some(incoming) = endpoint.accept().await {
        let folder = Arc::clone(&folder);
        tokio::spawn(async move {
            if let Err(failure) = serve_one(incoming, folder).await {
                eprintln!("kit-http3: {failure}");
            }
        });
    }
}

async fn serve_one(incoming: Incoming, folder: Arc<Path>) -> Result<(), Failure> {
    let mut connecting = incoming.accept().doing("accepting a connection")?;
    // A `ClientHello` of several packets is not whole yet. Before it is, the client's limits are
    // unknown, and quinn wakes nobody who has begun a stream by then. 0-RTT packets come behind it.
    connecting.handshake_data().await.doing("waiting for a whole ClientHello")?;
    let connection = match connecting.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await.doing("accepting a connection")?,
    };
    let connection = h3_quinn::Connection::new(connection);
    let mut requests =
        h3::server::Connection::<_, Bytes>::new(connection).await.doing("beginning HTTP/3")?;
    loop {
        match requests.accept().await {
            Ok(Some(request)) => {
                let folder = Arc::clone(&folder);
                tokio::spawn(async move {
                    if let Err(failure) = answer(request, &folder).await {
                        eprintln!("kit-http3: {failure}");
                    }
                });
            }
            Ok(None) => return Ok(()),
            Err(error) if error.is_h3_no_error() => return Ok(()),
            Err(error) => return Err(Failure::new(format!("waiting for a request: {error}"))),
        }
    }
}

type Requested = RequestResolver<h3_quinn::Connection, Bytes>;
type Answering = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

async fn answer(request: Requested, folder: &Path) -> Result<(), Failure> {
    let (request, mut stream) = request.resolve_request().await.doing("reading a request")?;
    match file(&request, folder).await {
        Ok((file, length)) => {
            respond(&mut stream, StatusCode::OK, length).await?;
            if request.method() == Method::GET {
                send(&mut stream, file).await?;
            }
        }
        Err(status) => respond(&mut stream, status, 0).await?,
    }
    stream.finish().await.doing("ending an answer")?;
    // A stream that is dropped before the request's end has come would be refused, and a client
    // may take that for the answer's.
    match *request.method() {
        Method::GET | Method::HEAD => {
            while stream.recv_data().await.doing("reading a body")?.is_some() {}
        }
        _ => stream.stop_sending(Code::H3_NO_ERROR),
    }
    Ok(())
}

async fn file(request: &Request<()>, folder: &Path) -> Result<(File, u64), StatusCode> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let path = file_of(folder, request.uri().path()).ok_or(StatusCode::NOT_FOUND)?;
    let not_found = |_| StatusCode::NOT_FOUND;
    // Opening a pipe would wait for its other end.
    let about = tokio::fs::metadata(&path).await.map_err(not_found)?;
    if !about.is_file() {
        return Err(StatusCode::NOT_FOUND);
    }
    let file = File::open(path).await.map_err(not_found)?;
    Ok((file, about.len()))
}

async fn respond(stream: &mut Answering, status: StatusCode, length: u64) -> Result<(), Failure> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_LENGTH, length)
        .body(())
        .doing("building an answer")?;
    stream.send_response(response).await.doing("answering")
}

async fn send(stream: &mut Answering, mut file: File) -> Result<(), Failure> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let mut part = (&mut file).take(PIECE_BYTES as u64);
        if part.read_to_end(&mut piece).await.doing("reading a file")? == 0 {
            return Ok(());
        }
        stream.send_data(piece.into()).await.doing("answering")?;
    }
}

const PIECE_BYTES: usize = 64 << 10;
