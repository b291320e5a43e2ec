// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A UDP socket that takes and gives several datagrams with one system call (GSO and GRO), for
//! programs that have no runtime of their own.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

use crate::SOCKET_BYTES;
use crate::failure::{Doing, Failure};

/// The socket, which never waits.
pub struct Socket {
    socket: UdpSocket,
    /// `None`: one datagram for each system call.
    segmentation: Option<UdpSocketState>,
    buffers: Vec<Vec<u8>>,
    address: SocketAddr,
}

/// A datagram that has come.
#[derive(Debug)]
pub struct Received<'a> {
    /// Its sender.
    pub from: SocketAddr,
    /// Its mark of congestion.
    pub ecn: Option<EcnCodepoint>,
    /// Its bytes.
    pub bytes: &'a mut [u8],
}

/// Datagrams of one receiver that leave together.
#[derive(Debug)]
pub struct Burst<'a> {
    /// Their receiver.
    pub to: SocketAddr,
    /// Their mark of congestion.
    pub ecn: Option<EcnCodepoint>,
    /// The datagrams, one behind the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last.
    pub stride: usize,
}

impl Socket {
    /// A socket at this address.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr, segmentation: bool) -> Result<Self, Failure> {
        let socket = UdpSocket::bind(address).doing("binding the socket")?;
        socket.set_nonblocking(true).doing("setting up the socket")?;
        enlarge(&socket);
        let segmentation = match segmentation {
            true => Some(UdpSocketState::new((&socket).into()).doing("setting up segmentation")?),
            false => None,
        };
        let count = segmentation.as_ref().map_or(1, |_| BUFFERS);
        let address = socket.local_addr().doing("asking for the address")?;
        Ok(Self { socket, segmentation, buffers: vec![vec![0; DATAGRAMS_BYTES]; count], address })
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams of one [`Burst`] at most.
    #[must_use]
    pub fn burst_max(&self) -> usize {
        let state = self.segmentation.as_ref();
        state.map_or(1, |state| state.max_gso_segments())
    }

    /// Hands over datagrams that are there, and says whether there may be more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&mut self, mut take: impl FnMut(Received<'_>)) -> io::Result<bool> {
        let Some(state) = &self.segmentation else {
            return self.receive_one(take);
        };
        let mut metas = [RecvMeta::default(); BUFFERS];
        let mut slices = self.buffers.iter_mut().map(|of| IoSliceMut::new(of));
        let mut slices: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| slices.next().expect("as many as BUFFERS"));
        let filled = match state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        for (buffer, meta) in self.buffers.iter_mut().zip(&metas[..filled]) {
            for bytes in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                take(Received { from: meta.addr, ecn: meta.ecn, bytes });
            }
        }
        Ok(true)
    }

    fn receive_one(&mut self, mut take: impl FnMut(Received<'_>)) -> io::Result<bool> {
        match self.socket.recv_from(&mut self.buffers[0]) {
            Ok((length, from)) => {
                take(Received { from, ecn: None, bytes: &mut self.buffers[0][..length] });
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a burst. Returns `false` if the socket's buffer is full: it was not sent.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, burst: &Burst<'_>) -> io::Result<bool> {
        let sent = match &self.segmentation {
            None => {
                let mut datagrams = burst.bytes.chunks(burst.stride.max(1));
                datagrams.try_for_each(|one| self.socket.send_to(one, burst.to).map(|_| ()))
            }
            Some(state) => {
                let is_one = burst.bytes.len() <= burst.stride;
                let transmit = Transmit {
                    destination: burst.to,
                    ecn: burst.ecn,
                    contents: burst.bytes,
                    segment_size: (!is_one).then_some(burst.stride),
                    src_ip: None,
                };
                state.try_send((&self.socket).into(), &transmit)
            }
        };
        match sent {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Asks for the kit's buffers. The kernel gives what it may.
pub fn enlarge(socket: &UdpSocket) {
    use rustix::net::sockopt;
    let _ = sockopt::set_socket_recv_buffer_size_force(socket, SOCKET_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, SOCKET_BYTES));
    let _ = sockopt::set_socket_send_buffer_size(socket, SOCKET_BYTES);
}

/// Buffers that one system call fills.
const BUFFERS: usize = 8;
/// Bytes of one: the largest that the kernel joins.
const DATAGRAMS_BYTES: usize = 65_535;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn bursts_come_as_their_datagrams_with_segmentation_and_without() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        for (of_sender, of_receiver) in [(true, true), (true, false), (false, true)] {
            let sender = Socket::bind(any, of_sender).unwrap();
            let mut receiver = Socket::bind(any, of_receiver).unwrap();
            let bytes: Vec<u8> = (0..2_500_u32).map(|n| (n % 251) as u8).collect();
            let burst = Burst { to: receiver.address(), ecn: None, bytes: &bytes, stride: 1_000 };
            assert!(sender.send(&burst).unwrap());
            let (mut lengths, mut all) = (Vec::new(), Vec::new());
            while all.len() < bytes.len() {
                receiver
                    .receive(|received| {
                        lengths.push(received.bytes.len());
                        all.extend_from_slice(received.bytes);
                        assert_eq!(received.from, sender.address());
                    })
                    .unwrap();
            }
            assert_eq!((lengths, all), (vec![1_000, 1_000, 500], bytes));
        }
    }
}
