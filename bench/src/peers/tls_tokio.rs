// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TLS connection for each outstanding call, on tokio.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::job::Setting;
use crate::load::{Callers, TaskCaller, Tasks, runtime};
use crate::{frame, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsTokio;

impl Peer for TlsTokio {
    fn name(&self) -> &'static str {
        "tls-tokio"
    }

    fn settings(&self) -> &'static str {
        "TLS/TCP by tokio-rustls; current-thread runtimes; a connection, and a task on both sides, per outstanding call; \
         NODELAY; reads of 64 KB"
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        runtime(setting.on_tokio.flavor)?.block_on(serve(Accept::new(setting)?, address, echo))
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let (runtime, dial) = (runtime(setting.on_tokio.flavor)?, Dial::new(setting, server)?);
        let mut hands: Vec<Vec<Caller>> = Vec::new();
        hands.resize_with(shape.callers, Vec::new);
        runtime.block_on(async {
            for number in 0..shape.connections_exclusive() {
                let mut caller =
                    Caller { stream: dial.connect().await?, out: Vec::new(), reply: Vec::new() };
                caller.call(&frame::request(64, 64)).await?;
                hands[number % shape.callers].push(caller);
            }
            Ok::<(), Failure>(())
        })?;
        Ok(Box::new(Tasks::new(runtime, hands)))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (runtime, dial) = (runtime(setting.on_tokio.flavor)?, Dial::new(setting, server)?);
        let request = frame::request(64, 64);
        Ok(Box::new(move || {
            runtime.block_on(async {
                let mut caller =
                    Caller { stream: dial.connect().await?, out: Vec::new(), reply: Vec::new() };
                caller.call(&request).await.map(drop)
            })
        }))
    }
}

/// How clients on tokio connect.
pub(super) struct Dial {
    connector: TlsConnector,
    name: ServerName<'static>,
    server: SocketAddr,
    pub(super) read_bytes: usize,
}

impl Dial {
    pub(super) fn new(setting: &Setting, server: SocketAddr) -> Result<Self, Failure> {
        let config: ClientConfig = tls::client_config(&setting.directory, b"")?;
        let connector = TlsConnector::from(Arc::new(config));
        let name = tls::server_name()?;
        Ok(Self { connector, name, server, read_bytes: setting.read_bytes })
    }

    pub(super) async fn connect(&self) -> io::Result<client::TlsStream<BufReader<TcpStream>>> {
        let socket = TcpStream::connect(self.server).await?;
        socket.set_nodelay(true)?;
        let socket = BufReader::with_capacity(self.read_bytes, socket);
        let mut stream = self.connector.connect(self.name.clone(), socket).await?;
        stream.get_mut().1.set_buffer_limit(None);
        Ok(stream)
    }
}

/// How servers on tokio accept.
#[derive(Clone)]
pub(super) struct Accept {
    acceptor: TlsAcceptor,
    read_bytes: usize,
}

impl Accept {
    pub(super) fn new(setting: &Setting) -> Result<Self, Failure> {
        let config = tls::server_config(&setting.directory, b"")?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), read_bytes: setting.read_bytes })
    }

    async fn accept(
        &self,
        socket: TcpStream,
    ) -> io::Result<server::TlsStream<BufReader<TcpStream>>> {
        socket.set_nodelay(true)?;
        let socket = BufReader::with_capacity(self.read_bytes, socket);
        let mut stream = self.acceptor.accept(socket).await?;
        stream.get_mut().1.set_buffer_limit(None);
        Ok(stream)
    }
}

/// Accepts for ever. `work` serves a connection, in a task of its own; it learns how much is read
/// at once.
pub(super) async fn serve<F: Future<Output = io::Result<()>> + Send + 'static>(
    accept: Accept,
    address: SocketAddr,
    work: fn(server::TlsStream<BufReader<TcpStream>>, usize) -> F,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    crate::server::listening(listener.local_addr()?)?;
    loop {
        let (socket, _) = listener.accept().await?;
        let accept = accept.clone();
        tokio::spawn(async move { work(accept.accept(socket).await?, accept.read_bytes).await });
    }
}

async fn echo(mut stream: server::TlsStream<BufReader<TcpStream>>, _: usize) -> io::Result<()> {
    let (mut message, mut out) = (Vec::new(), Vec::new());
    loop {
        read_message(&mut stream, &mut message).await?;
        frame::work(&message);
        match frame::reply_length(&message) {
            length if length == message.len() => {
                write_message(&mut stream, &message, &mut out).await?
            }
            length => write_message(&mut stream, &frame::zeros(length), &mut out).await?,
        }
    }
}

struct Caller {
    stream: client::TlsStream<BufReader<TcpStream>>,
    out: Vec<u8>,
    reply: Vec<u8>,
}

impl TaskCaller for Caller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        write_message(&mut self.stream, request, &mut self.out).await?;
        read_message(&mut self.stream, &mut self.reply).await?;
        Ok(self.reply.len())
    }
}

async fn write_message(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<()> {
    out.clear();
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    stream.write_all(out).await?;
    stream.flush().await
}

async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    message: &mut Vec<u8>,
) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    message.resize(u32::from_be_bytes(length) as usize, 0);
    stream.read_exact(message).await?;
    Ok(())
}
