// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.3 over TCP by rustls, with blocking sockets: a connection for each reply.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::super::tls::{self, Messages};
use super::{Algorithms, Arguments, BODY, Kind};
use crate::failure::Failure;
use crate::scratch::EphemeralFiles;

/// The kind, with a server of its own.
pub(super) fn over_tcp(
    files: &EphemeralFiles,
    arguments: &Arguments,
) -> Result<Box<dyn Kind>, Failure> {
    let group = match arguments.algorithms {
        Algorithms::Paper => kx_group::SECP256R1,
        Algorithms::Default | Algorithms::PostQuantum => kx_group::X25519MLKEM768,
    };
    let configs = tls::configs_of(files, group, arguments.mutual)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    // It ends with this process.
    std::thread::spawn(move || serve(&listener, &configs.server));
    Ok(Box::new(Tcp { address, config: configs.client }))
}

struct Tcp {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Kind for Tcp {
    fn name(&self) -> &'static str {
        "TLS 1.3 over TCP (rustls)"
    }

    fn first_reply(&mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        let name =
            ServerName::try_from("localhost").map_err(|_| Failure::new("localhost is no name"))?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        let socket = TcpStream::connect(self.address)?;
        let mut messages = Messages::new(connection, socket)?;
        messages.write(&BODY)?;
        let mut reply = Vec::new();
        messages.read(&mut reply)?;
        Ok(began.elapsed())
    }
}

/// One connection after the other, as they come.
fn serve(listener: &TcpListener, config: &Arc<ServerConfig>) {
    for socket in listener.incoming() {
        // The client tells of what failed.
        let _ = socket.map_err(Failure::from).and_then(|socket| echo(socket, config));
    }
}

fn echo(socket: TcpStream, config: &Arc<ServerConfig>) -> Result<(), Failure> {
    let connection = ServerConnection::new(Arc::clone(config))?;
    let mut messages = Messages::new(connection, socket)?;
    let mut request = Vec::new();
    messages.read(&mut request)?;
    messages.write(&request)?;
    Ok(())
}
