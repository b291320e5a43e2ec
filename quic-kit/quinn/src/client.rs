// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connects, requests, and receives, on all connections at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use kit_process::lines::Transfer;
use kit_process::request::{PIECE_MAX, Request, content, is_content};
use kit_process::{ClientOptions, Doing, Failure, SERVER_NAME, lines, tls};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, VarInt};
use tokio::task::JoinSet;

use crate::counts::Total;
use crate::transport::{endpoint, transport};

/// Transfers on order.
pub(crate) fn run(options: &ClientOptions) -> Result<(), Failure> {
    let provider = tls::provider(options.stack.cipher);
    let config = tls::client_config(provider, &options.authority)?;
    let config = QuicClientConfig::try_from(config).doing("configuring QUIC")?;
    let mut config = ClientConfig::new(Arc::new(config));
    config.transport_config(transport(&options.stack)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("beginning the runtime")?;
    let total = Total::default();
    let counted = total.clone();
    lines::client(move || runtime.block_on(all(options, &config, &total)), || counted.get())
}

async fn all(
    options: &ClientOptions,
    config: &ClientConfig,
    total: &Total,
) -> Result<Vec<Transfer>, Failure> {
    let endpoint = endpoint(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None)?;
    let request = Request { download: options.bytes, upload: options.upload };
    let mut tasks = JoinSet::new();
    for _ in 0..options.connections {
        let (endpoint, config) = (endpoint.clone(), config.clone());
        let (server, total) = (options.connect, total.clone());
        tasks.spawn(async move { one(&endpoint, config, server, request, &total).await });
    }
    let mut transfers = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        transfers.push(ended.doing("transferring")??);
    }
    endpoint.wait_idle().await;
    Ok(transfers)
}

async fn one(
    endpoint: &Endpoint,
    config: ClientConfig,
    server: SocketAddr,
    request: Request,
    total: &Total,
) -> Result<Transfer, Failure> {
    let begin = Instant::now();
    let connecting = endpoint.connect_with(config, server, SERVER_NAME);
    let connection = connecting.doing("connecting")?.await.doing("connecting")?;
    let connected = Instant::now();
    transfer(&connection, request).await?;
    let transfer = Transfer {
        bytes: request.download + request.upload,
        handshake: connected - begin,
        transfer: connected.elapsed(),
    };
    total.add(&connection);
    connection.close(VarInt::from_u32(0), b"");
    Ok(transfer)
}

async fn transfer(connection: &Connection, request: Request) -> Result<(), Failure> {
    let (mut sending, mut receiving) = connection.open_bi().await.doing("opening a stream")?;
    sending.write_all(&request.head()).await.doing("requesting")?;
    let mut sent = 0;
    while sent < request.upload {
        let piece = content(sent, request.upload);
        sending.write_all(piece).await.doing("sending")?;
        sent += piece.len() as u64;
    }
    sending.finish().doing("ending the request")?;
    let mut received = 0;
    while let Some(chunk) = receiving.read_chunk(PIECE_MAX, true).await.doing("receiving")? {
        if !is_content(received, &chunk.bytes) {
            return Err(Failure::new("a byte of the answer is wrong"));
        }
        received += chunk.bytes.len() as u64;
    }
    match received == request.download {
        true => Ok(()),
        false => Err(Failure::new(format!("the answer has {received} bytes"))),
    }
}
