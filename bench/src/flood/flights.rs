// SPDX-License-Identifier: Apache-2.0 OR MIT
//! First flights as a client makes them, recorded, and sent from many addresses.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use smt::Trust;

use crate::certificates::{SERVER_NAME, authority};
use crate::failure::Failure;

/// The flights, and a socket for each address.
#[derive(Debug)]
pub(super) struct Flights {
    /// The datagrams of each: a hybrid key share takes two.
    flights: Vec<Vec<Vec<u8>>>,
    sockets: Vec<UdpSocket>,
}

/// The flights that have left.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) flights: u32,
    pub(super) flight_bytes: usize,
    pub(super) time: Duration,
}

impl Flights {
    /// Records so many flights of a client.
    pub(super) fn record(directory: &Path, flights: u16, addresses: u16) -> Result<Self, Failure> {
        let recorder = UdpSocket::bind("127.0.0.1:0")?;
        recorder.set_nonblocking(true)?;
        let trust = Trust::roots_from_pem_files(&[authority(directory)])?;
        let flights = (0..flights).map(|_| {
            let mut client = smt::client(trust.clone()).open_polled("127.0.0.1:0")?;
            let server = recorder.local_addr()?;
            client.connect(server, SERVER_NAME, RECORDED)?;
            client.process()?;
            let mut datagram = vec![0; 65_536];
            let mut flight = Vec::new();
            // Loopback hands over what was sent at once.
            while let Ok(length) = recorder.recv(&mut datagram) {
                flight.push(datagram[..length].to_vec());
            }
            match flight.is_empty() {
                true => Err(Failure::new("a client has sent no first flight")),
                false => Ok(flight),
            }
        });
        let flights = flights.collect::<Result<_, _>>()?;
        // All of 127.0.0.0/8 is this host's.
        let sockets = (0..addresses).map(|number| {
            let [high, low] = number.to_be_bytes();
            let address = Ipv4Addr::new(127, 77, high, low.max(1));
            UdpSocket::bind(SocketAddrV4::new(address, 0))
        });
        Ok(Self { flights, sockets: sockets.collect::<Result<_, _>>()? })
    }

    /// Sends at this rate for so long, each flight once.
    pub(super) fn send(
        &self,
        server: SocketAddr,
        rate: u32,
        time: Duration,
    ) -> Result<Sent, Failure> {
        let began = Instant::now();
        let mut sent = 0_u32;
        while began.elapsed() < time {
            let due = (began.elapsed().as_secs_f64() * f64::from(rate)) as u32;
            while sent < due {
                let socket = &self.sockets[sent as usize % self.sockets.len()];
                // Each turn of the sockets has another flight, and so another pair.
                let turn = sent as usize / self.sockets.len();
                let flight = &self.flights[(sent as usize + turn) % self.flights.len()];
                for datagram in flight {
                    socket.send_to(datagram, server)?;
                }
                sent += 1;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Sent {
            flights: sent,
            flight_bytes: self.flights.first().map_or(0, |it| it.iter().map(Vec::len).sum()),
            time: began.elapsed(),
        })
    }
}

const RECORDED: Duration = Duration::from_secs(5);
/// Flights leave in small groups: as many as were due since the last.
const PAUSE: Duration = Duration::from_micros(200);
