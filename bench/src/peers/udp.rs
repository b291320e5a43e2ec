// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams and nothing else: no encryption, no acknowledgement, no repetition. The floor, not a
//! transport: a lost datagram ends the measurement.
//!
//! A message is cut into datagrams of the path's size, each headed by the message's number, its own
//! place, the message's length and the length of the reply. All that is ready leaves by one
//! segmented send if it is equally long.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::{Arrival, Batch, Carrier, Path, ReceiveError, Wait};
use smt_io::{UdpCarrier, UdpOptions};

use super::{Newcomer, Peer, Shape};
use crate::failure::{Doing, Failure};
use crate::job::{Setting, Work};
use crate::load::{Callers, Exchange, Turns};
use crate::{frame, server};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Udp {
    is_busy: bool,
}

impl Udp {
    /// Sleeps in the kernel until something comes.
    pub(super) const BLOCKING: Self = Self { is_busy: false };
    /// Never sleeps.
    pub(super) const BUSY: Self = Self { is_busy: true };
}

impl Peer for Udp {
    fn name(&self) -> &'static str {
        if self.is_busy { "udp-busy" } else { "udp" }
    }

    fn settings(&self) -> &'static str {
        if self.is_busy {
            "as udp, but both sides poll without sleeping, and yield between looks"
        } else {
            "bare UDP with GSO and GRO, one thread on each side: the floor; no encryption, no reliability; messages to 64 KB"
        }
    }

    fn refuses(&self, work: &Work) -> Option<&'static str> {
        match work {
            Work::Fresh => Some("UDP has no connections"),
            Work::Closed { sessions: 1.., .. } => Some("UDP has no sessions"),
            Work::Closed { groups, .. }
                if groups
                    .iter()
                    .any(|group| group.callers * group.request as usize > IN_FLIGHT_BYTES) =>
            {
                Some("more in flight than socket buffers hold, and nobody repeats what is lost")
            }
            _ => None,
        }
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let socket = UdpOptions::new().bind(address)?;
        server::listening(socket.local_address())?;
        let mut end = End::new(socket, *self, setting, address.ip());
        loop {
            let Some(path) = end.receive(None)? else {
                continue;
            };
            let ended = std::mem::take(&mut end.ended);
            for header in &ended {
                end.send(path, header.number, &frame::zeros(header.wanted as usize))?;
            }
            end.ended = ended;
            end.flush(path)?;
        }
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let socket = UdpOptions::new().connect(server)?;
        let end = End::new(socket, *self, setting, server.ip());
        let client = Client { end, path: Path::to(server) };
        Ok(Box::new(Turns::new(client, shape.callers)))
    }

    fn newcomer(&self, _: &Setting, _: SocketAddr) -> Result<Newcomer, Failure> {
        Err(Failure::new("UDP has no connections"))
    }
}

/// The header before a datagram's part of a message.
struct Header {
    number: u32,
    offset: u32,
    length: u32,
    /// The reply's length.
    wanted: u32,
}

impl Header {
    fn of(datagram: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = datagram.first_chunk()?;
        let word = |at: usize| {
            header[at..at + 4].iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
        };
        Some(Self { number: word(0), offset: word(4), length: word(8), wanted: word(12) })
    }

    /// The last part stands for the message: order is kept on loopback and veth.
    fn is_last(&self, datagram: &[u8]) -> bool {
        self.offset as usize + datagram.len() - HEADER == self.length as usize
    }

    fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.number.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes[12..].copy_from_slice(&self.wanted.to_be_bytes());
        bytes
    }
}

/// One side.
struct End {
    socket: UdpCarrier,
    is_busy: bool,
    datagram_max: usize,
    /// The last parts of the messages that the last batch has brought.
    ended: Vec<Header>,
    /// Datagrams to be sent, all of one size but the last.
    out: Vec<u8>,
    segment: usize,
}

impl End {
    fn new(socket: UdpCarrier, peer: Udp, setting: &Setting, address: IpAddr) -> Self {
        let headers = if address.is_ipv4() { 28 } else { 48 };
        Self {
            socket,
            is_busy: peer.is_busy,
            datagram_max: (setting.mtu as usize - headers).min(DATAGRAM_MAX),
            ended: Vec::new(),
            out: Vec::new(),
            segment: 0,
        }
    }

    /// One batch, whose path it tells; `None` if nothing comes in time.
    fn receive(&mut self, wait: Option<Duration>) -> Result<Option<Path>, Failure> {
        let bounded = match wait {
            Some(wait) if self.is_busy || wait.is_zero() => Wait::Never,
            None if self.is_busy => Wait::Never,
            Some(wait) => Wait::AtMost(wait),
            None => Wait::AtMost(LONG),
        };
        self.ended.clear();
        let (ended, mut path) = (&mut self.ended, None);
        let mut sink = |arrival: Arrival<'_>| {
            path = Some(arrival.path);
            let parts = arrival.segments().filter_map(|datagram| {
                let header = Header::of(datagram)?;
                header.is_last(datagram).then_some(header)
            });
            ended.extend(parts);
        };
        match self.socket.receive(&mut sink, bounded) {
            Ok(0) if self.is_busy => {
                std::thread::yield_now();
                Ok(None)
            }
            Ok(_) => Ok(path),
            // An ICMP report about a client that has gone.
            Err(ReceiveError::Unreachable { .. }) => Ok(None),
            Err(error) => Err(Failure::new(format!("receiving: {error:?}"))),
        }
    }

    /// Queues a message, and sends before it what has another size.
    fn send(&mut self, path: Path, number: u32, body: &[u8]) -> Result<(), Failure> {
        let part = self.datagram_max - HEADER;
        let segment = body.len().min(part) + HEADER;
        let is_whole = self.out.len().is_multiple_of(self.segment.max(1));
        if segment != self.segment || !is_whole || self.out.len() >= BATCH_BYTES {
            self.flush(path)?;
            self.segment = segment;
        }
        let (length, wanted) = (body.len() as u32, frame::reply_length(body) as u32);
        for (place, bytes) in body.chunks(part).enumerate() {
            let header = Header { number, offset: (place * part) as u32, length, wanted };
            self.out.extend_from_slice(&header.bytes());
            self.out.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn flush(&mut self, path: Path) -> Result<(), Failure> {
        if self.out.is_empty() {
            return Ok(());
        }
        let batch = Batch::datagrams(path, self.segment, &self.out);
        self.socket.send(&batch).doing("sending")?;
        self.out.clear();
        Ok(())
    }
}

struct Client {
    end: End,
    path: Path,
}

impl Exchange for Client {
    fn connections(&self) -> usize {
        1
    }

    fn begin(&mut self, _: usize, number: u32, request: &Bytes) -> Result<(), Failure> {
        self.end.send(self.path, number, request)
    }

    fn turn(&mut self, wait: Duration, ended: &mut Vec<(u32, usize)>) -> Result<(), Failure> {
        self.end.flush(self.path)?;
        self.end.receive(Some(wait))?;
        let messages = self.end.ended.iter();
        ended.extend(messages.map(|header| (header.number, header.length as usize)));
        Ok(())
    }
}

const HEADER: usize = 16;
/// UDP takes no larger one over IPv4.
const DATAGRAM_MAX: usize = 65_507;
/// Sent at once.
const BATCH_BYTES: usize = 60_000;
/// Half of a socket buffer of 4 MB, as the kernel counts; kept well below.
const IN_FLIGHT_BYTES: usize = 1 << 20;
const LONG: Duration = Duration::from_secs(1);
