// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server of calls in parts, the protocol core alone on a socket, for other implementations:
//! `interop/run` has a Go client call it. Prints its address, and serves until it is killed.
//!
//! The answer follows from the request's marks (SPEC §5.9):
//! 1. MORE and REPLY_IN_PARTS: each part of the request, as a part; then the request's own bytes.
//! 2. MORE alone: the bytes of all parts together.
//! 3. REPLY_IN_PARTS alone: the bytes of the request in parts of 1,000 bytes, then nothing.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt_carrier::{Arrival, Path};
use smt_handshake::{HmacTokens, KeyEnds, RegisteredKey, RegisteredProvider};
use smt_proto::{
    Config, Endpoint, Event, PartMarks, Refused, RpcId, TakenPart, Time, TransmitBuffer,
};
use smt_record::Suite;

fn main() -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let endpoint = endpoint();
    println!("parts at {}", socket.local_addr()?);
    let server = Server { endpoint, calls: Vec::new() };
    server.run(&socket)
}

/// Its key is one that everybody knows.
fn endpoint() -> Endpoint {
    let (own, peer) = ("store-1", "web-1");
    let ends = KeyEnds { own, peer };
    let secret = b"a secret that everybody may read";
    let key = RegisteredKey::from_secret(b"parts", ends, Suite::Aes128Gcm, secret);
    let provider = RegisteredProvider::server(vec![key.expect(FITS)]).expect(FITS);
    let mut config = Config::default();
    config.accept = true;
    // Small, so that it blocks.
    config.part_window = 16_384;
    Endpoint::new(config, Arc::new(provider), Arc::new(HmacTokens::new([1; 32])))
}

struct Server {
    endpoint: Endpoint,
    calls: Vec<Call>,
}

impl Server {
    fn run(mut self, socket: &UdpSocket) -> io::Result<()> {
        let began = Instant::now();
        // Cookies are valid for seconds since the beginning.
        let time = || Time::default() + Duration::from_secs(60) + began.elapsed();
        let (mut bytes, mut buffer) = (vec![0; 65_536], TransmitBuffer::default());
        loop {
            let due = self.endpoint.poll_timeout().map(|(due, _)| due);
            let wait = due.map_or(Duration::from_millis(100), |due| {
                Duration::from_nanos(due.as_nanos().saturating_sub(time().as_nanos()))
            });
            socket.set_read_timeout(Some(wait.max(Duration::from_micros(100))))?;
            let received = socket.recv_from(&mut bytes);
            let now = time();
            if let Ok((length, remote)) = received {
                let arrival = Arrival::datagram(Path::to(remote), &bytes[..length]);
                self.endpoint.handle_arrival(now, arrival);
            }
            self.endpoint.handle_timeout(now);
            self.serve(now);
            while let Some(transmit) = self.endpoint.poll_transmit(now, &mut buffer) {
                for datagram in transmit.segments(&buffer) {
                    socket.send_to(datagram, transmit.path.remote)?;
                }
            }
        }
    }

    fn serve(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Request { rpc, body, parts, .. } => {
                    self.calls.push(Call::new(rpc, body, parts))
                }
                Event::Cancelled(rpc) => self.calls.retain(|call| call.rpc != rpc),
                Event::SessionEnded { session, .. } => {
                    self.calls.retain(|call| call.rpc.session != session);
                }
                _ => {}
            }
        }
        let endpoint = &mut self.endpoint;
        self.calls.retain_mut(|call| call.advance(now, endpoint).is_ok());
    }
}

/// A call that is not answered.
struct Call {
    rpc: RpcId,
    marks: PartMarks,
    parts: VecDeque<Bytes>,
    reply: Vec<u8>,
    is_read: bool,
}

impl Call {
    fn new(rpc: RpcId, body: Bytes, marks: PartMarks) -> Self {
        let mut call =
            Self { rpc, marks, parts: VecDeque::new(), reply: Vec::new(), is_read: !marks.more };
        if marks.reply_in_parts && !marks.more {
            call.parts = body.chunks(1_000).map(Bytes::copy_from_slice).collect();
        } else if marks.reply_in_parts {
            call.reply = body.to_vec();
        }
        call
    }

    /// Reads and writes what is possible now. Fails once the call is answered or over.
    fn advance(&mut self, now: Time, endpoint: &mut Endpoint) -> Result<(), Refused> {
        loop {
            self.write(now, endpoint)?;
            if !self.parts.is_empty() {
                return Ok(());
            }
            if self.is_read {
                endpoint.reply(now, self.rpc, std::mem::take(&mut self.reply))?;
                return Err(Refused::NoRpc);
            }
            match endpoint.take_part(self.rpc)? {
                Some(TakenPart::Part(part)) if self.marks.reply_in_parts => {
                    self.parts.push_back(part);
                }
                Some(TakenPart::Part(part)) => self.reply.extend_from_slice(&part),
                Some(TakenPart::End) => self.is_read = true,
                None => return Ok(()),
            }
        }
    }

    /// Sends parts until the reader's window is full.
    fn write(&mut self, now: Time, endpoint: &mut Endpoint) -> Result<(), Refused> {
        while let Some(part) = self.parts.front() {
            match endpoint.send_part(now, self.rpc, part.clone(), true) {
                Ok(()) => _ = self.parts.pop_front(),
                Err(Refused::PartWindowFull | Refused::Blocked) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }
}

const FITS: &str = "the key is within bounds";
