// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection and a thread for each outstanding call, on TCP, with TLS or without.

use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, SideData,
    Stream,
};

use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::job::Setting;
use crate::load::{Callers, ThreadCaller, Threads, deal};
use crate::{frame, server, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamBlocking {
    is_tls: bool,
}

impl StreamBlocking {
    /// The usual way to call by TLS without a runtime.
    pub(super) const TLS: Self = Self { is_tls: true };
    /// The same without encryption.
    pub(super) const PLAIN: Self = Self { is_tls: false };
}

impl Peer for StreamBlocking {
    fn name(&self) -> &'static str {
        if self.is_tls { "tls-blocking" } else { "tcp-blocking" }
    }

    fn settings(&self) -> &'static str {
        if self.is_tls {
            "TLS/TCP by rustls; blocking sockets; a connection, and a thread on both sides, per outstanding call; NODELAY; \
             reads of 64 KB; a call is written by one call of the system"
        } else {
            "TCP without encryption, otherwise as tls-blocking"
        }
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let listener = TcpListener::bind(address)?;
        server::listening(listener.local_addr()?)?;
        let config = Arc::new(tls::server_config(&setting.directory, b"")?);
        let (is_tls, read_bytes) = (self.is_tls, setting.read_bytes);
        for socket in listener.incoming() {
            let (socket, config) = (socket?, Arc::clone(&config));
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
                // A connection that ends is a client that has finished.
                let _ = if is_tls {
                    serve_tls(config, socket, read_bytes)
                } else {
                    BigReads::new(socket, read_bytes).and_then(echo)
                };
            })?;
        }
        Ok(())
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let count = shape.connections_exclusive();
        if !self.is_tls {
            let read_bytes = setting.read_bytes;
            let connect =
                |_| BigReads::new(TcpStream::connect(server)?, read_bytes).map(Caller::new);
            let connections = (0..count).map(connect).collect::<Result<Vec<_>, _>>()?;
            return Ok(Box::new(threads(connections, shape)));
        }
        let dial = Dial::new(setting, server)?;
        let connections = (0..count).map(|_| dial.call_first());
        let connections = connections.collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(threads(connections, shape)))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        if self.is_tls {
            let dial = Dial::new(setting, server)?;
            return Ok(Box::new(move || dial.call_first().map(drop)));
        }
        let read_bytes = setting.read_bytes;
        Ok(Box::new(move || {
            let mut caller = Caller::new(BigReads::new(TcpStream::connect(server)?, read_bytes)?);
            caller.call(&frame::request(64, 64))?;
            Ok(())
        }))
    }
}

/// Callers that share nothing.
fn threads<S: Read + Write + Send>(
    connections: Vec<Caller<S>>,
    shape: Shape,
) -> Threads<Caller<S>> {
    let numbers = deal((0..connections.len()).collect(), shape.callers);
    let mut connections: Vec<_> = connections.into_iter().map(Some).collect();
    let hand = |numbers: Vec<usize>| {
        let taken = numbers.into_iter().filter_map(|number| connections[number].take());
        taken.collect()
    };
    Threads(numbers.into_iter().map(hand).collect())
}

struct Dial {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    server: SocketAddr,
    read_bytes: usize,
}

impl Dial {
    fn new(setting: &Setting, server: SocketAddr) -> Result<Self, Failure> {
        Ok(Self {
            config: Arc::new(tls::client_config(&setting.directory, b"")?),
            name: tls::server_name()?,
            server,
            read_bytes: setting.read_bytes,
        })
    }

    /// A connection that has made one call, so that its handshake is over.
    fn call_first(&self) -> Result<Caller<Encrypted<ClientConnection>>, Failure> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        let socket = BigReads::new(TcpStream::connect(self.server)?, self.read_bytes)?;
        let mut caller = Caller::new(Encrypted::new(connection, socket));
        caller.call(&frame::request(64, 64))?;
        Ok(caller)
    }
}

fn serve_tls(config: Arc<ServerConfig>, socket: TcpStream, read_bytes: usize) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    echo(Encrypted::new(connection, BigReads::new(socket, read_bytes)?))
}

fn echo(mut stream: impl Read + Write) -> io::Result<()> {
    let (mut message, mut out) = (Vec::new(), Vec::new());
    loop {
        read_message(&mut stream, &mut message)?;
        frame::work(&message);
        match frame::reply_length(&message) {
            length if length == message.len() => write_message(&mut stream, &message, &mut out)?,
            length => write_message(&mut stream, &frame::zeros(length), &mut out)?,
        }
    }
}

struct Caller<S> {
    stream: S,
    reply: Vec<u8>,
    out: Vec<u8>,
}

impl<S> Caller<S> {
    fn new(stream: S) -> Self {
        Self { stream, reply: Vec::new(), out: Vec::new() }
    }
}

impl<S: Read + Write + Send> ThreadCaller for Caller<S> {
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        write_message(&mut self.stream, request, &mut self.out)?;
        read_message(&mut self.stream, &mut self.reply)?;
        Ok(self.reply.len())
    }
}

fn write_message(stream: &mut impl Write, message: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    stream.write_all(out)?;
    stream.flush()
}

fn read_message(stream: &mut impl Read, message: &mut Vec<u8>) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    message.resize(u32::from_be_bytes(length) as usize, 0);
    stream.read_exact(message)
}

/// A TLS connection that reads much at once.
struct Encrypted<C> {
    connection: C,
    socket: BigReads,
}

impl<C, S> Encrypted<C>
where
    C: Deref<Target = ConnectionCommon<S>> + DerefMut,
    S: SideData,
{
    fn new(mut connection: C, socket: BigReads) -> Self {
        // A message is sealed whole and leaves by as few calls as the socket takes.
        connection.set_buffer_limit(None);
        Self { connection, socket }
    }
}

impl<C, S> Read for Encrypted<C>
where
    C: Deref<Target = ConnectionCommon<S>> + DerefMut,
    S: SideData,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Stream::new(&mut self.connection, &mut self.socket).read(buffer)
    }
}

impl<C, S> Write for Encrypted<C>
where
    C: Deref<Target = ConnectionCommon<S>> + DerefMut,
    S: SideData,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stream::new(&mut self.connection, &mut self.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Stream::new(&mut self.connection, &mut self.socket).flush()
    }
}

/// Reads much at once, writes directly. rustls by itself reads 4 KB.
struct BigReads(BufReader<TcpStream>);

impl BigReads {
    fn new(socket: TcpStream, read_bytes: usize) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self(BufReader::with_capacity(read_bytes, socket)))
    }
}

impl Read for BigReads {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for BigReads {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.get_mut().write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

/// Ten thousand threads are to fit.
const STACK_BYTES: usize = 128 * 1024;
