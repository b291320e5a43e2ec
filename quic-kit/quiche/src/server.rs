// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers the requests of all connections.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use kit_process::lines::{self, Order};
use kit_process::request::{PIECE_MAX, RequestReader, content};
use kit_process::socket::{Received, Socket};
use kit_process::{Counts, Doing, Failure, ServerOptions, Switch, Usage};
use quiche::{Config, ConnectionId, Header, MAX_CONN_ID_LEN, Type};

use crate::connection::{Connection, wait};
use crate::settings::config;

struct Server {
    socket: Socket,
    config: Config,
    is_paced: bool,
    /// By their places, which do not change.
    clients: BTreeMap<u64, Client>,
    /// Places by the ids that packets have.
    ids: BTreeMap<Vec<u8>, u64>,
    next: u64,
    ended: Counts,
}

struct Client {
    connection: Connection,
    /// Requests that have not come whole, by their streams.
    requests: BTreeMap<u64, RequestReader>,
    /// Answers that have not been written whole: bytes so far, and all.
    answers: BTreeMap<u64, (u64, u64)>,
}

/// Serves until the input ends.
pub(crate) fn run(options: &ServerOptions) -> Result<(), Failure> {
    let mut config = config(&options.stack)?;
    let path = |path: &std::path::Path| path.display().to_string();
    config
        .load_cert_chain_from_pem_file(&path(&options.certificate))
        .doing("reading the certificate")?;
    config.load_priv_key_from_pem_file(&path(&options.key)).doing("reading the private key")?;
    let socket = Socket::bind(options.listen, options.stack.segmentation != Switch::Off)?;
    lines::listening(socket.address());
    let since = Usage::now();
    let mut server = Server {
        socket,
        config,
        is_paced: options.stack.pacing == Switch::On,
        clients: BTreeMap::new(),
        ids: BTreeMap::new(),
        next: 0,
        ended: Counts::default(),
    };
    loop {
        let clients = server.clients.values();
        let timeout = clients.filter_map(|client| client.connection.timeout()).min();
        let input = std::io::stdin();
        let ready = wait(&[input.as_fd(), server.socket.as_fd()], timeout)?;
        if ready[0] {
            match lines::next_order()? {
                Order::End => return Ok(()),
                Order::Report => lines::report(&since, &server.counts()),
                Order::Go => {}
            }
        }
        server.turn()?;
    }
}

impl Server {
    fn turn(&mut self) -> Result<(), Failure> {
        let Self { socket, config, is_paced, clients, ids, next, .. } = self;
        let local = socket.address();
        for _ in 0..TURNS {
            let mut arrivals = Arrivals { config, clients, ids, next, is_paced: *is_paced };
            let is_more = socket.receive(|received| arrivals.take(received, local));
            if !is_more.doing("receiving")? {
                break;
            }
        }
        for client in self.clients.values_mut() {
            client.connection.handle_timeout();
            client.read();
            client.write();
            client.connection.send(&self.socket)?;
        }
        let ended = &mut self.ended;
        self.clients.retain(|_, client| {
            let is_closed = client.connection.quiche.is_closed();
            if is_closed {
                client.connection.count(ended);
            }
            !is_closed
        });
        let clients = &self.clients;
        self.ids.retain(|_, place| clients.contains_key(place));
        Ok(())
    }

    fn counts(&self) -> Counts {
        let mut counts = self.ended;
        for client in self.clients.values() {
            client.connection.count(&mut counts);
        }
        counts
    }
}

/// The state that a datagram may change.
struct Arrivals<'a> {
    config: &'a mut Config,
    clients: &'a mut BTreeMap<u64, Client>,
    ids: &'a mut BTreeMap<Vec<u8>, u64>,
    next: &'a mut u64,
    is_paced: bool,
}

impl Arrivals<'_> {
    fn take(&mut self, received: Received<'_>, local: std::net::SocketAddr) {
        let Ok(header) = Header::from_slice(received.bytes, MAX_CONN_ID_LEN) else {
            return;
        };
        let known = self.ids.get(&*header.dcid).copied();
        let place = match known {
            Some(place) => place,
            None if header.ty == Type::Initial && self.clients.len() < CLIENTS_MAX => {
                let Ok(place) = self.accept(&header, &received, local) else {
                    return;
                };
                place
            }
            None => return,
        };
        let info = quiche::RecvInfo { from: received.from, to: local };
        if let Some(client) = self.clients.get_mut(&place) {
            let _ = client.connection.quiche.recv(received.bytes, info);
        }
    }

    fn accept(
        &mut self,
        header: &Header<'_>,
        received: &Received<'_>,
        local: std::net::SocketAddr,
    ) -> Result<u64, quiche::Error> {
        let place = *self.next;
        let mut id = [0; MAX_CONN_ID_LEN];
        id[..8].copy_from_slice(&place.to_be_bytes());
        let id = ConnectionId::from_ref(&id);
        let quiche = quiche::accept(&id, None, local, received.from, self.config)?;
        *self.next += 1;
        self.ids.insert(id.to_vec(), place);
        self.ids.insert(header.dcid.to_vec(), place);
        let client = Client {
            connection: Connection::new(quiche, self.is_paced),
            requests: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        self.clients.insert(place, client);
        Ok(place)
    }
}

impl Client {
    fn read(&mut self) {
        let mut piece = [0; PIECE_MAX];
        while let Some(stream) = self.connection.quiche.stream_readable_next() {
            while let Ok((length, is_end)) = self.connection.quiche.stream_recv(stream, &mut piece)
            {
                let reader = self.requests.entry(stream).or_default();
                reader.take(&piece[..length]);
                if is_end {
                    match reader.finish() {
                        Some(request) => {
                            self.answers.insert(stream, (0, request.download));
                        }
                        None => eprintln!("kit-quiche: a stream holds no request"),
                    }
                    self.requests.remove(&stream);
                }
            }
        }
    }

    fn write(&mut self) {
        let quiche = &mut self.connection.quiche;
        self.answers.retain(|stream, (written, all)| {
            loop {
                let piece = content(*written, *all);
                let is_end = *written + piece.len() as u64 == *all;
                match quiche.stream_send(*stream, piece, is_end) {
                    Ok(length) => {
                        *written += length as u64;
                        if is_end && length == piece.len() {
                            return false;
                        }
                        if length < piece.len() {
                            return true;
                        }
                    }
                    Err(quiche::Error::Done) => return true,
                    Err(_) => return false,
                }
            }
        });
    }
}

const TURNS: usize = 16;
const CLIENTS_MAX: usize = 1_024;
