// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connects, requests, and receives, on all connections at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use kit_process::lines::Transfer;
use kit_process::request::{Request, content, is_content};
use kit_process::{ClientOptions, Doing, Failure, SERVER_NAME, lines, tls};
use s2n_quic::Client;
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::tls::rustls as s2n_tls;
use tokio::task::JoinSet;

use crate::events::Total;
use crate::settings::{io, limits};

/// Transfers on order.
pub(crate) fn run(options: &ClientOptions) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("beginning the runtime")?;
    let total = Total::default();
    let client = runtime.block_on(async { client(options, total.clone()) })?;
    lines::client(move || runtime.block_on(all(options, &client)), || total.get())
}

fn client(options: &ClientOptions, total: Total) -> Result<Client, Failure> {
    let provider = tls::provider(options.stack.cipher);
    let config = tls::client_config(provider, &options.authority)?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Client::builder()
        .with_tls(s2n_tls::Client::from(Arc::new(config)))
        .doing("setting TLS")?
        .with_io(io(&options.stack, any)?)
        .doing("setting the socket")?
        .with_limits(limits()?)
        .doing("setting limits")?
        .with_event(total)
        .doing("setting events")?
        .start()
        .doing("beginning the client")
}

async fn all(options: &ClientOptions, client: &Client) -> Result<Vec<Transfer>, Failure> {
    let request = Request { download: options.bytes, upload: options.upload };
    let mut tasks = JoinSet::new();
    for _ in 0..options.connections {
        let (client, server) = (client.clone(), options.connect);
        tasks.spawn(async move { one(&client, server, request).await });
    }
    let mut transfers = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        transfers.push(ended.doing("transferring")??);
    }
    Ok(transfers)
}

async fn one(client: &Client, server: SocketAddr, request: Request) -> Result<Transfer, Failure> {
    let begin = Instant::now();
    let connect = Connect::new(server).with_server_name(SERVER_NAME);
    let connection = client.connect(connect).await.doing("connecting")?;
    let connected = Instant::now();
    let (mut handle, _acceptor) = connection.split();
    transfer(&mut handle, request).await?;
    let transfer = Transfer {
        bytes: request.download + request.upload,
        handshake: connected - begin,
        transfer: connected.elapsed(),
    };
    handle.close(0_u32.into());
    Ok(transfer)
}

async fn transfer(handle: &mut Handle, request: Request) -> Result<(), Failure> {
    let stream = handle.open_bidirectional_stream().await;
    let (mut receiving, mut sending) = stream.doing("opening a stream")?.split();
    let head = Bytes::copy_from_slice(&request.head());
    sending.send(head).await.doing("requesting")?;
    let mut sent = 0;
    while sent < request.upload {
        let piece = content(sent, request.upload);
        sent += piece.len() as u64;
        let piece = Bytes::from_static(piece);
        sending.send(piece).await.doing("sending")?;
    }
    sending.finish().doing("ending the request")?;
    let mut received = 0;
    while let Some(piece) = receiving.receive().await.doing("receiving")? {
        if !is_content(received, &piece) {
            return Err(Failure::new("a byte of the answer is wrong"));
        }
        received += piece.len() as u64;
    }
    match received == request.download {
        true => Ok(()),
        false => Err(Failure::new(format!("the answer has {received} bytes"))),
    }
}
