// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One thread on each side, one connection for all outstanding calls: all frames that are ready are
//! sealed together and leave by one write, all that has come is read by one read. The strongest use
//! of TLS over TCP.

mod channel;
mod connection;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustls::{ClientConnection, ServerConnection};

use self::channel::{Channel, Plain, Sealed};
use self::connection::Connection;
use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::job::Setting;
use crate::load::{Callers, Exchange, Turns};
use crate::{frame, server, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneThread {
    is_tls: bool,
}

impl OneThread {
    /// With TLS.
    pub(super) const TLS: Self = Self { is_tls: true };
    /// Without.
    pub(super) const PLAIN: Self = Self { is_tls: false };
}

impl Peer for OneThread {
    fn name(&self) -> &'static str {
        if self.is_tls { "tls-one-thread" } else { "tcp-one-thread" }
    }

    fn settings(&self) -> &'static str {
        if self.is_tls {
            "TLS/TCP by rustls; one connection and one thread on each side (epoll, NODELAY, reads of 64 KB); all frames that \
             are ready share records and one write"
        } else {
            "TCP without encryption, otherwise as tls-one-thread"
        }
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let listener = TcpListener::bind(address)?;
        server::listening(listener.local_addr()?)?;
        if !self.is_tls {
            return serve(&listener, || Ok(Plain));
        }
        let config = Arc::new(tls::server_config(&setting.directory, b"")?);
        serve(&listener, || Ok(Sealed::new(ServerConnection::new(Arc::clone(&config))?)))
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let count = shape.connections_shared();
        if !self.is_tls {
            let exchange = Client::connect(server, count, || Ok(Plain))?;
            return Ok(Box::new(Turns::new(exchange, shape.callers)));
        }
        let config = Arc::new(tls::client_config(&setting.directory, b"")?);
        let exchange = Client::connect(server, count, || {
            let connection = ClientConnection::new(Arc::clone(&config), tls::server_name()?)?;
            Ok(Sealed::new(connection))
        })?;
        Ok(Box::new(Turns::new(exchange, shape.callers)))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (peer, setting) = (*self, setting.clone());
        if !peer.is_tls {
            return Ok(Box::new(move || Client::connect(server, 1, || Ok(Plain)).map(drop)));
        }
        let config = Arc::new(tls::client_config(&setting.directory, b"")?);
        Ok(Box::new(move || {
            let channel = || {
                let connection = ClientConnection::new(Arc::clone(&config), tls::server_name()?)?;
                Ok(Sealed::new(connection))
            };
            Client::connect(server, 1, channel).map(drop)
        }))
    }
}

struct Client<C> {
    connections: Vec<Connection<C>>,
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
    buffer: Vec<u8>,
    /// Connections that have frames to send.
    begun: Vec<usize>,
}

impl<C: Channel> Client<C> {
    /// Each connection has made one call when this returns.
    fn connect(
        server: SocketAddr,
        count: usize,
        channel: impl Fn() -> Result<C, Failure>,
    ) -> Result<Self, Failure> {
        let mut client = Self {
            connections: Vec::new(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ready: Vec::with_capacity(READY),
            buffer: vec![0; READ_BYTES],
            begun: Vec::new(),
        };
        let (request, mut ended) = (frame::request(64, 64), Vec::new());
        for number in 0..count {
            let connection = Connection::new(TcpStream::connect(server)?, channel()?)?;
            connection.register(&client.epoll, number as u64)?;
            client.connections.push(connection);
            client.begin(number, 0, &request)?;
            while ended.is_empty() {
                client.turn(FIRST_CALL, &mut ended)?;
            }
            ended.clear();
        }
        Ok(client)
    }
}

impl<C: Channel> Exchange for Client<C> {
    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn begin(&mut self, connection: usize, number: u32, request: &Bytes) -> Result<(), Failure> {
        let chosen = &mut self.connections[connection];
        if !chosen.has_frames() {
            self.begun.push(connection);
        }
        chosen.put(number, request);
        Ok(())
    }

    fn turn(&mut self, wait: Duration, ended: &mut Vec<(u32, usize)>) -> Result<(), Failure> {
        for number in self.begun.drain(..) {
            self.connections[number].send(&self.epoll, number as u64)?;
        }
        wait_for(&self.epoll, &mut self.ready, Some(wait))?;
        for event in self.ready.drain(..) {
            let number = event.data.u64();
            let connection = &mut self.connections[number as usize];
            connection
                .receive(&mut self.buffer, |number, body| ended.push((number, body.len())))?;
            // A part of the handshake, or what the socket had no room for.
            connection.send(&self.epoll, number)?;
        }
        Ok(())
    }
}

fn serve<C: Channel>(
    listener: &TcpListener,
    channel: impl Fn() -> Result<C, Failure>,
) -> Result<(), Failure> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let data = epoll::EventData::new_u64(LISTENER);
    epoll::add(&epoll, listener, data, epoll::EventFlags::IN)?;
    let (mut ready, mut buffer) = (Vec::with_capacity(READY), vec![0; READ_BYTES]);
    let mut connections: Vec<Option<Connection<C>>> = Vec::new();
    loop {
        wait_for(&epoll, &mut ready, None)?;
        for event in ready.drain(..) {
            if event.data.u64() == LISTENER {
                accept(listener, &epoll, &mut connections, &channel)?;
                continue;
            }
            let number = event.data.u64() as usize;
            let Some(connection) = &mut connections[number] else {
                continue;
            };
            let outcome = connection.receive_and_reply(&mut buffer);
            let outcome = outcome.and_then(|()| connection.send(&epoll, number as u64));
            if outcome.is_err() {
                // A connection that ends is a client that has finished.
                connections[number] = None;
            }
        }
    }
}

fn accept<C: Channel>(
    listener: &TcpListener,
    epoll: &OwnedFd,
    connections: &mut Vec<Option<Connection<C>>>,
    channel: &impl Fn() -> Result<C, Failure>,
) -> Result<(), Failure> {
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let connection = Connection::new(socket, channel()?)?;
        connection.register(epoll, connections.len() as u64)?;
        connections.push(Some(connection));
    }
}

fn wait_for(
    epoll: &OwnedFd,
    ready: &mut Vec<epoll::Event>,
    wait: Option<Duration>,
) -> Result<(), Failure> {
    let timeout = wait.map(|wait| Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: i64::from(wait.subsec_nanos()),
    });
    match epoll::wait(epoll, spare_capacity(ready), timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes of one system call.
const READ_BYTES: usize = 65_536;
/// The listener's number among the connections'.
const LISTENER: u64 = u64::MAX;
/// Events of one call of the system.
const READY: usize = 1_024;
const FIRST_CALL: Duration = Duration::from_secs(1);
