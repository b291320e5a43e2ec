// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connects, requests, and receives, on all connections at once: each has a socket of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Instant;

use kit_process::lines::{self, Transfer};
use kit_process::request::{PIECE_MAX, Request, content, is_content};
use kit_process::socket::Socket;
use kit_process::{ClientOptions, Counts, Doing, Failure, SERVER_NAME, Switch};
use quiche::{Config, ConnectionId, MAX_CONN_ID_LEN};

use crate::connection::{Connection, wait};
use crate::settings::config;

struct Client {
    socket: Socket,
    connection: Connection,
    request: Request,
    begin: Instant,
    connected: Option<Instant>,
    ended: Option<Instant>,
    /// Bytes of the request that quiche has taken, its head included.
    sent: u64,
    received: u64,
}

/// Transfers on order.
pub(crate) fn run(options: &ClientOptions) -> Result<(), Failure> {
    let mut config = config(&options.stack)?;
    config
        .load_verify_locations_from_file(&options.authority.display().to_string())
        .doing("reading the authority")?;
    config.verify_peer(true);
    let counts = std::cell::Cell::new(Counts::default());
    lines::client(
        || {
            let (transfers, counted) = all(options, &mut config)?;
            counts.set(counted);
            Ok(transfers)
        },
        || counts.get(),
    )
}

fn all(options: &ClientOptions, config: &mut Config) -> Result<(Vec<Transfer>, Counts), Failure> {
    let clients = (0..options.connections).map(|number| Client::new(options, config, number));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    let mut ready = vec![true; clients.len()];
    while clients.iter().any(|client| !client.connection.quiche.is_closed()) {
        for (client, is_ready) in clients.iter_mut().zip(&ready) {
            client.turn(*is_ready)?;
        }
        let open = clients.iter().filter(|client| !client.connection.quiche.is_closed());
        let timeout = open.filter_map(|client| client.connection.timeout()).min();
        // The last turn may have closed all of them.
        let timeout = timeout.or(Some(std::time::Duration::ZERO));
        let sockets: Vec<_> = clients.iter().map(|client| client.socket.as_fd()).collect();
        ready = wait(&sockets, timeout)?;
    }
    let mut counts = Counts::default();
    let mut transfers = Vec::new();
    for client in &clients {
        client.connection.count(&mut counts);
        transfers.push(client.transfer()?);
    }
    Ok((transfers, counts))
}

impl Client {
    fn new(options: &ClientOptions, config: &mut Config, number: u32) -> Result<Self, Failure> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = Socket::bind(any, options.stack.segmentation != Switch::Off)?;
        let mut id = [0x5a; MAX_CONN_ID_LEN];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let id = ConnectionId::from_ref(&id);
        let (local, server) = (socket.address(), options.connect);
        let quiche = quiche::connect(Some(SERVER_NAME), &id, local, server, config);
        let quiche = quiche.doing("connecting")?;
        Ok(Self {
            socket,
            connection: Connection::new(quiche, options.stack.pacing == Switch::On),
            request: Request { download: options.bytes, upload: options.upload },
            begin: Instant::now(),
            connected: None,
            ended: None,
            sent: 0,
            received: 0,
        })
    }

    fn turn(&mut self, is_ready: bool) -> Result<(), Failure> {
        if self.connection.quiche.is_closed() {
            return Ok(());
        }
        let Self { socket, connection, .. } = self;
        let local = socket.address();
        for _ in 0..if is_ready { TURNS } else { 0 } {
            let is_more = socket.receive(|received| {
                let info = quiche::RecvInfo { from: received.from, to: local };
                let _ = connection.quiche.recv(received.bytes, info);
            });
            if !is_more.doing("receiving")? {
                break;
            }
        }
        self.connection.handle_timeout();
        if self.connection.quiche.is_established() {
            self.connected.get_or_insert_with(Instant::now);
            self.write()?;
            self.read()?;
        }
        self.connection.send(&self.socket)
    }

    fn write(&mut self) -> Result<(), Failure> {
        let head = self.request.head();
        let all = head.len() as u64 + self.request.upload;
        while self.sent < all {
            let body = self.sent.checked_sub(head.len() as u64);
            let piece = match body {
                Some(body) => content(body, self.request.upload),
                None => &head[self.sent as usize..],
            };
            let is_end = self.sent + piece.len() as u64 == all;
            match self.connection.quiche.stream_send(STREAM, piece, is_end) {
                Ok(length) => self.sent += length as u64,
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(Failure::new(format!("requesting: {error}"))),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Failure> {
        let mut piece = [0; PIECE_MAX];
        while self.ended.is_none() {
            match self.connection.quiche.stream_recv(STREAM, &mut piece) {
                Ok((length, is_end)) => {
                    if !is_content(self.received, &piece[..length]) {
                        return Err(Failure::new("a byte of the answer is wrong"));
                    }
                    self.received += length as u64;
                    if is_end {
                        self.ended = Some(Instant::now());
                        let _ = self.connection.quiche.close(true, 0, b"");
                    }
                }
                Err(quiche::Error::Done | quiche::Error::InvalidStreamState(_)) => break,
                Err(error) => return Err(Failure::new(format!("receiving: {error}"))),
            }
        }
        Ok(())
    }

    fn transfer(&self) -> Result<Transfer, Failure> {
        let (Some(connected), Some(ended)) = (self.connected, self.ended) else {
            return Err(Failure::new("a connection has ended before its answer"));
        };
        if self.received != self.request.download {
            return Err(Failure::new(format!("the answer has {} bytes", self.received)));
        }
        Ok(Transfer {
            bytes: self.request.download + self.request.upload,
            handshake: connected - self.begin,
            transfer: ended - connected,
        })
    }
}

/// Receiving calls for each time that the socket is ready: what is left makes it ready again.
const TURNS: usize = 64;
/// The first stream of a client.
const STREAM: u64 = 0;
