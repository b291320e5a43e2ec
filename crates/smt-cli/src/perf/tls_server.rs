// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS server of a comparison: a thread for each connection.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::tls::{Messages, server_config};
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
