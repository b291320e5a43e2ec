// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IP packets as the datagrams of a carrier, over one queue of a TUN device.
//!
//! The host gets sent packets as if a network had brought them, and what it routes into the device
//! is received. The model of a NIC, for example, has its network here.
//!
//! 1. A batch is packets, each from its IP header on. The path of a batch is not read: a packet has
//!    its addresses in it.
//! 2. An arrival is one packet. Its path is where the carrier is, and tells nothing of the packet.
//! 3. The host leaves no work over: checksums are whole, and nothing is longer than the MTU.
//!
//! Not here: the meaning of the packets.

use crate::native::{self, received_error};
use crate::receive_buffer::ReceiveBuffer;
use crate::tun::{TUN_HEADER_LEN, TunError, TunOffloads, TunQueue};
use crate::udp::wait_readable;
use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, Path, Readiness, ReceiveError, SendError, Wait,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// A carrier of IP packets over a TUN device.
#[derive(Debug)]
pub struct TunCarrier {
    queue: TunQueue,
    local: SocketAddr,
    mtu: usize,
    buffer: ReceiveBuffer,
}

impl TunCarrier {
    /// Opens the TUN device with this name, or makes it where there is none. `local` is an address
    /// behind the device, to which the host has a route; it is not the host's own.
    ///
    /// # Errors
    /// See [`TunError`].
    pub fn open(device: &str, local: SocketAddr) -> Result<Self, TunError> {
        let offloads =
            TunOffloads { checksums: false, tcp_segmentation: false, udp_segmentation: false };
        let queue = TunQueue::open_one_of(device, offloads)?;
        let mtu = TunQueue::mtu(device)?;
        Ok(Self { queue, local, mtu, buffer: ReceiveBuffer::default() })
    }
}

impl Carrier for TunCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let size = batch.plain_segment_size();
        if size.min(batch.bytes.len()) > self.mtu {
            return Err(SendError::TooLarge);
        }
        let mut bytes_sent = 0;
        for packet in batch.bytes.chunks(size) {
            let written = self.queue.write(&NO_OFFLOAD, packet);
            written.map_err(|error| sending_error(error, bytes_sent))?;
            bytes_sent += packet.len();
        }
        Ok(())
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        if let Wait::AtMost(limit) = wait
            && !limit.is_zero()
        {
            let waited = wait_readable([self.queue.as_fd()], limit);
            waited.map_err(|error| received_error(&error))?;
        }
        self.buffer.lend(|buffer| {
            let read = self.queue.read(buffer);
            let length = read.map_err(|error| received_error(&error))?;
            let packet = length.and_then(|length| buffer.get(TUN_HEADER_LEN..length));
            let Some(packet) = packet else { return Ok(0) };
            sink(Arrival::datagram(Path::to(self.local), packet));
            Ok(1)
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::of([Some(self.queue.as_fd()), None])
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.mtu)
    }
}

/// The error for the caller of a send.
fn sending_error(error: io::Error, bytes_sent: usize) -> SendError {
    match error.raw_os_error() {
        // The device is down.
        Some(libc::EIO) => SendError::Unreachable,
        _ => native::sending_error(error, bytes_sent),
    }
}

/// The header of a packet that leaves no work to the host.
const NO_OFFLOAD: [u8; TUN_HEADER_LEN] = [0; TUN_HEADER_LEN];
