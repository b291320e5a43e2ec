// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP in UDP (RFC 3948): batches of datagrams by one system call each.

use super::{
    BUFFERS, EspArrival, EspSocketError, EspSocketOptions, bind_to_device, receive_arrival,
    send_patiently, spi_bpf,
};
use crate::udp::{Family, Outgoing, Preparation, prepare, send, size_buffers};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A UDP socket under ESP, of one IP version.
#[derive(Debug)]
pub struct EspUdpSocket {
    socket: Socket,
    local: SocketAddr,
    segmentation: AtomicBool,
    coalescing: bool,
}

/// Datagrams to one peer, of one size but for the last.
#[derive(Clone, Copy, Debug)]
pub struct EspDatagrams<'a> {
    /// The peer.
    pub to: SocketAddr,
    /// TOS or traffic class.
    pub traffic_class: u8,
    /// Bytes of each datagram but the last, which may be shorter.
    pub segment_size: usize,
    /// One datagram behind another.
    pub bytes: &'a [u8],
}

impl EspUdpSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// See [`EspSocketError`].
    pub fn open(options: &EspSocketOptions) -> Result<Self, EspSocketError> {
        let preparing = EspSocketError::preparing;
        let domain = Domain::for_address(options.local);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
        let socket = socket.map_err(preparing("open it"))?;
        let family = Family::of(options.local.ip());
        if family == Family::V6 {
            socket.set_only_v6(true).map_err(preparing("choose IPv6"))?;
        }
        let preparation = Preparation {
            family,
            report_local: options.local.ip().is_unspecified(),
            segmentation_offload: options.segmentation,
            receive_offload: options.coalescing,
        };
        let offloads = prepare(&socket, preparation).map_err(preparing("forbid fragments"))?;
        size_buffers(&socket, BUFFERS).map_err(preparing("size the buffers"))?;
        bind_to_device(&socket, options.device.as_deref())?;
        let count = options.sharing.count;
        if count > 1 {
            socket.set_reuse_port(true).map_err(preparing("share a port"))?;
        }
        let bound = socket.bind(&SockAddr::from(options.local));
        bound.map_err(EspSocketError::binding(options.local))?;
        if count > 1 && options.sharing.index == 0 {
            let attached = spi_bpf::select_by_spi(&socket, count);
            attached.map_err(preparing("spread packets by SPI"))?;
        }
        let local = socket.local_addr().map_err(preparing("ask for its address"))?;
        Ok(Self {
            socket,
            local: local.as_socket().unwrap_or(options.local),
            segmentation: AtomicBool::new(offloads.segmentation),
            coalescing: offloads.receive,
        })
    }

    /// The address of the socket.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether a batch leaves by one call.
    pub fn has_segmentation(&self) -> bool {
        self.segmentation.load(Ordering::Relaxed)
    }

    /// Whether datagrams come coalesced.
    #[must_use]
    pub const fn has_coalescing(&self) -> bool {
        self.coalescing
    }

    /// Sends a batch, and tells by how many calls. A device that refuses to have batches cut gets
    /// datagram after datagram from then on.
    ///
    /// # Errors
    /// The answer of the system; datagrams before the one that failed have left.
    pub fn send(&self, datagrams: &EspDatagrams<'_>) -> io::Result<usize> {
        let mut calls = 0;
        if self.has_segmentation() && datagrams.bytes.len() > datagrams.segment_size {
            calls += 1;
            match self.send_once(datagrams, datagrams.bytes, true) {
                Err(error) if is_refusal(&error) => {}
                outcome => return outcome.map(|()| calls),
            }
        }
        for datagram in datagrams.bytes.chunks(datagrams.segment_size.max(1)) {
            calls += 1;
            self.send_once(datagrams, datagram, false)?;
            if calls == 2 && self.has_segmentation() {
                // The plainer way has succeeded: batches are what was refused.
                self.segmentation.store(false, Ordering::Relaxed);
            }
        }
        Ok(calls)
    }

    fn send_once(
        &self,
        datagrams: &EspDatagrams<'_>,
        bytes: &[u8],
        is_batch: bool,
    ) -> io::Result<()> {
        let segment_size = u16::try_from(datagrams.segment_size);
        let outgoing = Outgoing {
            to: Some(datagrams.to),
            ipv4: datagrams.to.is_ipv4(),
            source: None,
            traffic_class: (datagrams.traffic_class != 0).then_some(datagrams.traffic_class),
            segment_size: segment_size.ok().filter(|_| is_batch),
            bytes,
        };
        send_patiently(&self.socket, || send(&self.socket, &outgoing))
    }

    /// Receives without waiting. Nothing if nothing is there.
    ///
    /// # Errors
    /// The answer of the system.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<EspArrival>> {
        receive_arrival(&self.socket, self.local.ip(), buffer)
    }
}

impl AsFd for EspUdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether an answer may mean that batches are not cut here (see `udp/offload_state.rs`).
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::esp::Sharing;
    use std::time::Duration;

    fn options(port: u16, sharing: Sharing) -> EspSocketOptions {
        EspSocketOptions {
            local: SocketAddr::new([127, 0, 0, 1].into(), port),
            device: None,
            segmentation: true,
            coalescing: true,
            sharing,
        }
    }

    fn receive_all(socket: &EspUdpSocket, bytes: usize) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 65_536]);
        while all.len() < bytes {
            crate::udp::wait_readable([socket.as_fd()], Duration::from_secs(10)).unwrap();
            let arrival = socket.receive(&mut buffer).unwrap().expect("it was readable");
            all.extend_from_slice(&buffer[..arrival.length]);
        }
        all
    }

    #[test]
    fn a_batch_arrives_whole_with_and_without_segmentation() {
        for segmentation in [true, false] {
            let mut options = options(0, Sharing::ALONE);
            options.segmentation = segmentation;
            let receiver = EspUdpSocket::open(&options).unwrap();
            let sender = EspUdpSocket::open(&options).unwrap();
            let bytes: Vec<u8> = (0..2_500_u32).map(|at| at as u8).collect();
            let batch = EspDatagrams {
                to: receiver.local(),
                traffic_class: 0x28,
                segment_size: 1_000,
                bytes: &bytes,
            };
            let calls = sender.send(&batch).unwrap();
            assert_eq!(calls, if sender.has_segmentation() { 1 } else { 3 });
            assert_eq!(receive_all(&receiver, bytes.len()), bytes);
        }
    }

    #[test]
    fn sockets_of_one_port_get_the_packets_of_their_spis() {
        let sharing = |index| Sharing { index, count: 2 };
        let first = EspUdpSocket::open(&options(0, sharing(0))).unwrap();
        let port = first.local().port();
        let second = EspUdpSocket::open(&options(port, sharing(1))).unwrap();
        let sender = EspUdpSocket::open(&options(0, Sharing::ALONE)).unwrap();
        for spi in 0x1000_u32..0x1008 {
            let bytes = [spi.to_be_bytes(), [0; 4]].concat();
            let datagram = EspDatagrams {
                to: first.local(),
                traffic_class: 0,
                segment_size: bytes.len(),
                bytes: &bytes,
            };
            sender.send(&datagram).unwrap();
            let expected = if spi % 2 == 0 { &first } else { &second };
            assert_eq!(receive_all(expected, 8), bytes, "SPI {spi:#x}");
        }
    }
}
