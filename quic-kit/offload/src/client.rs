// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client over a UDP socket: transfers by the kit's requests, on all connections at once.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kit_process::lines::{self, Transfer};
use kit_process::request::{PIECE_MAX, Request, content, is_content};
use kit_process::socket::{Burst, Socket};
use kit_process::{
    ClientOptions, Counts, Doing, Failure, IDLE, SERVER_NAME, StackOptions, Switch, WINDOW_BYTES,
    tls,
};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    Connection, ConnectionHandle, Dir, Event, ReadError, ReadableError, StreamId, TransportConfig,
    VarInt, WriteError,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::capture::capturing;
use crate::device::{DeviceConfig, OffloadCounts};
use crate::driver::{Driver, DriverConfig};

/// Transfers on order.
///
/// # Errors
/// The reason for which the process ends.
pub fn run(options: &ClientOptions, device: DeviceConfig) -> Result<(), Failure> {
    let config = DriverConfig { device, id_lifetime: None };
    let counts = std::cell::Cell::new(Counts::default());
    lines::client(
        || {
            let mut client = Client::new(options, config.clone())?;
            let transfers = client.transfer_all()?;
            let counted = client.driver.counts();
            counts.set(Counts {
                eligible: Some(counted.eligible),
                opened: Some(counted.opened),
                sealed: Some(counted.sealed),
                ..Counts::default()
            });
            Ok(transfers)
        },
        || counts.get(),
    )
}

/// Transfers of one process.
pub struct Client {
    driver: Driver,
    socket: Socket,
    transfers: BTreeMap<usize, Progress>,
    buffer: Vec<u8>,
    /// Key updates that each connection makes, spread over its transfer.
    pub key_updates: u32,
}

/// One transfer: a request on a stream, and its answer.
pub struct Progress {
    request: Request,
    begin: Instant,
    connected: Option<Instant>,
    ended: Option<Instant>,
    stream: Option<StreamId>,
    /// Bytes of the request that quinn has taken, its head included.
    sent: u64,
    is_sent: bool,
    received: u64,
    updates: u32,
    failed: Option<String>,
}

impl Client {
    /// Begins all connections.
    ///
    /// # Errors
    /// A file, the socket or a setting.
    pub fn new(options: &ClientOptions, config: DriverConfig) -> Result<Self, Failure> {
        let provider = capturing(tls::provider(options.stack.cipher));
        let of_tls = tls::client_config(provider, &options.authority)?;
        let of_tls = QuicClientConfig::try_from(of_tls).doing("configuring QUIC")?;
        let of_tls = Arc::new(of_tls);
        let transport = Arc::new(transport(&options.stack)?);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let is_segmented = options.stack.segmentation != Switch::Off;
        let mut client = Self {
            driver: Driver::new(config)?,
            socket: Socket::bind(any, is_segmented)?,
            transfers: BTreeMap::new(),
            buffer: Vec::new(),
            key_updates: 0,
        };
        for _ in 0..options.connections {
            let begin = Instant::now();
            let peer = (options.connect, SERVER_NAME);
            let handle = client.driver.connect(begin, &of_tls, &transport, peer)?;
            let request = Request { download: options.bytes, upload: options.upload };
            client.transfers.insert(handle.0, Progress::new(begin, request));
        }
        Ok(client)
    }

    /// The driver's counts.
    #[must_use]
    pub fn counts(&mut self) -> OffloadCounts {
        self.driver.counts()
    }

    /// Turns until all transfers have ended.
    ///
    /// # Errors
    /// A transfer has failed.
    pub fn transfer_all(&mut self) -> Result<Vec<Transfer>, Failure> {
        loop {
            self.turn()?;
            let progresses = self.transfers.values();
            if let Some(failed) = progresses.clone().find_map(|of| of.failed.as_ref()) {
                return Err(Failure::new(failed.clone()));
            }
            if progresses.clone().all(|of| of.ended.is_some()) {
                // The last turn has sent the ends of the connections.
                return Ok(progresses.filter_map(Progress::transfer).collect());
            }
            self.wait()?;
        }
    }

    fn turn(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        let Self { driver, socket, .. } = self;
        for _ in 0..TURNS {
            let is_more = socket.receive(|received| {
                let ecn = received.ecn.and_then(of_quinn);
                driver.receive(now, (received.from, ecn), received.bytes);
            });
            if !is_more.doing("receiving")? {
                break;
            }
        }
        self.driver.handle_timeout(now);
        let handles: Vec<usize> = self.transfers.keys().copied().collect();
        for handle in handles {
            let handle = ConnectionHandle(handle);
            let progress = self.transfers.get_mut(&handle.0);
            let connection = self.driver.connection(handle);
            if let (Some(progress), Some(connection)) = (progress, connection) {
                progress.advance(connection, now, self.key_updates);
            }
            self.transmit(now, handle)?;
        }
        Ok(())
    }

    fn transmit(&mut self, now: Instant, handle: ConnectionHandle) -> Result<(), Failure> {
        let datagrams = self.socket.burst_max().min(DATAGRAMS_MAX);
        while let Some(transmit) =
            self.driver.poll_transmit(now, handle, (datagrams, &mut self.buffer))
        {
            let burst = Burst {
                to: transmit.destination,
                ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                bytes: &self.buffer[..transmit.size],
                stride: transmit.segment_size.unwrap_or(transmit.size),
            };
            // A full socket loses them, as a path would.
            match self.socket.send(&burst) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error).doing("sending"),
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let timeout = self.driver.timeout();
        let timeout = timeout.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut polled = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).doing("waiting for packets"),
        }
    }
}

impl Progress {
    /// One that begins with its connection.
    #[must_use]
    pub fn new(begin: Instant, request: Request) -> Self {
        Self {
            request,
            begin,
            connected: None,
            ended: None,
            stream: None,
            sent: 0,
            is_sent: false,
            received: 0,
            updates: 0,
            failed: None,
        }
    }

    /// Whether the whole answer has come, and was right.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Bytes of the answer that have come.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Why it has failed, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Does what can be done now: requests, receives, updates keys so many times on the way, and
    /// closes the connection at the end.
    pub fn advance(&mut self, connection: &mut Connection, now: Instant, key_updates: u32) {
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    self.connected = Some(now);
                    if self.stream.is_none() {
                        self.stream = connection.streams().open(Dir::Bi);
                    }
                }
                Event::ConnectionLost { reason } if self.ended.is_none() => {
                    self.failed = Some(format!("a connection was lost: {reason}"));
                }
                _ => {}
            }
        }
        // A session that is resumed sends its request before its handshake is over.
        if self.stream.is_none() && connection.has_0rtt() {
            self.stream = connection.streams().open(Dir::Bi);
        }
        let Some(stream) = self.stream.filter(|_| self.ended.is_none()) else {
            return;
        };
        if let Err(failed) =
            self.send(connection, stream).and_then(|()| self.read(connection, stream, now))
        {
            self.failed = Some(failed);
        }
        // The n-th update comes when this share of the transfer is over.
        let done = self.received + self.sent;
        let all = self.request.download + self.request.upload;
        if self.updates < key_updates
            && done > all / u64::from(key_updates + 1) * u64::from(self.updates + 1)
        {
            connection.force_key_update();
            self.updates += 1;
        }
        if self.ended.is_some() {
            connection.close(now, VarInt::from_u32(0), Bytes::new());
        }
    }

    fn send(&mut self, connection: &mut Connection, stream: StreamId) -> Result<(), String> {
        let head = self.request.head();
        let all = head.len() as u64 + self.request.upload;
        let mut sending = connection.send_stream(stream);
        while self.sent < all {
            let body = self.sent.checked_sub(head.len() as u64);
            let piece = match body {
                Some(body) => content(body, self.request.upload),
                None => &head[self.sent as usize..],
            };
            match sending.write(piece) {
                Ok(written) => self.sent += written as u64,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(format!("requesting: {error}")),
            }
        }
        if !self.is_sent {
            sending.finish().map_err(|error| format!("ending the request: {error}"))?;
            self.is_sent = true;
        }
        Ok(())
    }

    fn read(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
        now: Instant,
    ) -> Result<(), String> {
        let mut receiving = connection.recv_stream(stream);
        let mut chunks = match receiving.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream) => return Ok(()),
            Err(error) => return Err(format!("receiving: {error}")),
        };
        let outcome = loop {
            match chunks.next(PIECE_MAX) {
                Ok(Some(chunk)) if is_content(self.received, &chunk.bytes) => {
                    self.received += chunk.bytes.len() as u64;
                }
                Ok(Some(_)) => break Err("a byte of the answer is wrong".to_owned()),
                Ok(None) if self.received == self.request.download => {
                    self.ended = Some(now);
                    break Ok(());
                }
                Ok(None) => break Err(format!("the answer has {} bytes", self.received)),
                Err(ReadError::Blocked) => break Ok(()),
                Err(error) => break Err(format!("receiving: {error}")),
            }
        };
        // Credit for the peer leaves with the next packets, which are asked for in any case.
        let _ = chunks.finalize();
        outcome
    }

    fn transfer(&self) -> Option<Transfer> {
        let (connected, ended) = (self.connected?, self.ended?);
        Some(Transfer {
            bytes: self.request.download + self.request.upload,
            handshake: connected - self.begin,
            transfer: ended - connected,
        })
    }
}

fn of_quinn(ecn: quinn_udp::EcnCodepoint) -> Option<quinn_proto::EcnCodepoint> {
    quinn_proto::EcnCodepoint::from_bits(ecn as u8)
}

/// quinn's settings.
pub(crate) fn transport(options: &StackOptions) -> Result<TransportConfig, Failure> {
    if options.pacing != Switch::Default {
        return Err(Failure::new("quinn's pacing cannot be turned on or off"));
    }
    let mut transport = TransportConfig::default();
    let idle = VarInt::from_u32(IDLE.as_millis() as u32);
    transport
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(Some(idle.into()))
        .keep_alive_interval(None::<Duration>)
        .initial_mtu(options.datagram)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(options.segmentation != Switch::Off);
    Ok(transport)
}

const TURNS: usize = 16;
/// quinn's own driver asks for as many at once.
const DATAGRAMS_MAX: usize = 10;
