// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS server of a comparison: a thread or a task for each connection.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::tls::{Messages, server_config};
use super::tls_tasks::{self, big_reads};
use super::{caller, server};
use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};
use crate::interrupt::Interrupt;

/// Serves until it is told to end; connections then end with the process.
pub(super) fn run(
    credentials: &ServerCredentials,
    address: &str,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let config = server_config(credentials)?;
    let listener = TcpListener::bind(address).doing(format!("listening on {address}"))?;
    server::listening(listener.local_addr()?)?;
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                if let Err(error) = socket.and_then(|socket| serve(config, socket)) {
                    tracing::debug!(%error, "connection ended");
                }
            });
        }
    });
    interrupt.wait();
    Ok(())
}

/// The same by tasks.
pub(super) fn run_tasks(
    credentials: &ServerCredentials,
    address: &str,
    runtime: &Runtime,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let acceptor = TlsAcceptor::from(server_config(credentials)?);
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address));
    let listener = listener.doing(format!("listening on {address}"))?;
    server::listening(listener.local_addr()?)?;
    runtime.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Err(error) = serve_task(&acceptor, socket).await {
                    tracing::debug!(%error, "connection ended");
                }
            });
        }
    });
    interrupt.wait();
    Ok(())
}

async fn serve_task(acceptor: &TlsAcceptor, socket: tokio::net::TcpStream) -> io::Result<()> {
    let stream = acceptor
        .accept_with(big_reads(socket)?, |connection| {
            connection.set_buffer_limit(None);
        })
        .await?;
    let mut messages = tls_tasks::Messages::new(stream);
    let mut message = Vec::new();
    loop {
        messages.read(&mut message).await?;
        match caller::answer(&message) {
            Some(answer) => messages.write(answer.as_bytes()).await?,
            None => messages.write(&message).await?,
        }
    }
}

fn serve(config: Arc<ServerConfig>, socket: TcpStream) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut messages = Messages::new(connection, socket)?;
    let mut message = Vec::new();
    loop {
        messages.read(&mut message)?;
        match caller::answer(&message) {
            Some(answer) => messages.write(answer.as_bytes())?,
            None => messages.write(&message)?,
        }
    }
}
