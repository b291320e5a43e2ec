// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An `AF_XDP` socket at one queue of an interface, in copy mode: whole frames in and out, through
//! memory that it shares with the kernel.
//!
//! 1. The memory is frames of 4 KiB. The first ones are for receiving: they are in the fill ring or
//!    the receive ring, or one of them is being looked at. The others are for sending: they are
//!    free, or in the transmit ring or the completion ring.
//! 2. A thread that receives or sends holds the lock of that side, and with it the frames that are
//!    in no ring.

use super::mapping::Mapping;
use super::ring::Ring;
use libc::{c_int, c_void, off_t, socklen_t, xdp_desc, xdp_mmap_offsets, xdp_umem_reg};
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a frame's memory: the least that all kernels take.
const FRAME_BYTES: usize = 4_096;
/// Bytes that the kernel keeps free before each received packet (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: usize = 256;
/// Bytes of the longest packet, with the header of Ethernet.
pub(super) const PACKET_BYTES_MAX: usize = FRAME_BYTES - HEADROOM_BYTES;
/// Frames to receive in: a burst of some megabytes in full packets.
pub(super) const RECEIVE_FRAMES: u32 = 2_048;
/// A queue in use is tried again for a fifth of a second.
const BIND_TRIES: u32 = 20;
const BIND_DISTANCE: Duration = Duration::from_millis(10);
/// Frames to send from.
const SEND_FRAMES: u32 = 1_024;
/// Calls in a row that ask the kernel to send: it takes 32 frames a call.
const SEND_CALLS_MAX: u32 = SEND_FRAMES / 32 + 4;

/// A socket for packets of Ethernet.
#[derive(Debug)]
pub(super) struct PacketSocket {
    socket: Socket,
    frames: Mapping,
    receiving: Mutex<Receiving>,
    sending: Mutex<Sending>,
}

#[derive(Debug)]
struct Receiving {
    received: Ring<xdp_desc>,
    fill: Ring<u64>,
}

#[derive(Debug)]
struct Sending {
    transmit: Ring<xdp_desc>,
    completed: Ring<u64>,
    free: Vec<u64>,
}

impl PacketSocket {
    /// Opens a socket at a queue of an interface.
    pub(super) fn open(interface: u32, queue: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None)?;
        let frames = Mapping::anonymous((RECEIVE_FRAMES + SEND_FRAMES) as usize * FRAME_BYTES)?;
        let registration = xdp_umem_reg {
            addr: frames.start().as_ptr() as u64,
            len: frames.length() as u64,
            chunk_size: FRAME_BYTES as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&socket, libc::XDP_UMEM_REG, &registration)?;
        for (name, capacity) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE_FRAMES),
            (libc::XDP_RX_RING, RECEIVE_FRAMES),
            (libc::XDP_UMEM_COMPLETION_RING, SEND_FRAMES),
            (libc::XDP_TX_RING, SEND_FRAMES),
        ] {
            set(&socket, name, &capacity)?;
        }
        let offsets = ring_offsets(&socket)?;
        let descriptor = socket.as_fd();
        let fill = Ring::map(
            descriptor,
            offsets.fr,
            RECEIVE_FRAMES,
            libc::XDP_UMEM_PGOFF_FILL_RING as off_t,
        )?;
        let completed = Ring::map(
            descriptor,
            offsets.cr,
            SEND_FRAMES,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING as off_t,
        )?;
        let received = Ring::map(descriptor, offsets.rx, RECEIVE_FRAMES, libc::XDP_PGOFF_RX_RING)?;
        let transmit = Ring::map(descriptor, offsets.tx, SEND_FRAMES, libc::XDP_PGOFF_TX_RING)?;
        let mut receiving = Receiving { received, fill };
        let place = |frame: u32| u64::from(frame) * FRAME_BYTES as u64;
        for frame in 0..RECEIVE_FRAMES {
            receiving.fill.push(place(frame));
        }
        let free = (RECEIVE_FRAMES..RECEIVE_FRAMES + SEND_FRAMES).map(place);
        let sending = Sending { transmit, completed, free: free.collect() };
        bind_soon(&socket, interface, queue)?;
        Ok(Self { socket, frames, receiving: Mutex::new(receiving), sending: Mutex::new(sending) })
    }

    /// Receives one packet without waiting, if there is one.
    pub(super) fn receive<T>(&self, look: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
        let mut receiving = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptor = receiving.received.pop()?;
        let (start, length) = (descriptor.addr as usize, descriptor.len as usize);
        let is_inside = start
            .checked_add(length)
            .is_some_and(|end| end <= RECEIVE_FRAMES as usize * FRAME_BYTES);
        // The kernel's word; it never is otherwise.
        let length = if is_inside { length } else { 0 };
        let start = if is_inside { start } else { 0 };
        // SAFETY: the bytes are inside the frames for receiving. The frame has come out of the
        // receive ring, so that the kernel does not write to it, and goes back behind this borrow.
        // The lock keeps other threads from it.
        let packet = unsafe {
            let start = self.frames.start().add(start);
            std::slice::from_raw_parts_mut(start.as_ptr(), length)
        };
        let looked = look(packet);
        let frame = descriptor.addr - descriptor.addr % FRAME_BYTES as u64;
        receiving.fill.push(frame);
        Some(looked)
    }

    /// Begins to send packets.
    pub(super) fn sending(&self) -> Outbox<'_> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(frame) = sending.completed.pop() {
            sending.free.push(frame);
        }
        Outbox { socket: self, sending }
    }
}

/// The sending side of a socket, for one caller.
pub(super) struct Outbox<'a> {
    socket: &'a PacketSocket,
    sending: MutexGuard<'a, Sending>,
}

impl Outbox<'_> {
    /// Puts a packet into a free frame by `write`, which tells its length; `None` if there is no
    /// room now, and nothing is written.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> Option<()> {
        let frame = self.sending.free.pop()?;
        // SAFETY: the frame is one of those for sending, which are inside the mapping. It is in no
        // ring, so that the kernel does not read it. The lock keeps other threads from it.
        let bytes = unsafe {
            let start = self.socket.frames.start().add(frame as usize);
            std::slice::from_raw_parts_mut(start.as_ptr(), PACKET_BYTES_MAX)
        };
        let length = write(bytes).min(PACKET_BYTES_MAX);
        let descriptor = xdp_desc { addr: frame, len: length as u32, options: 0 };
        // The ring has room for all frames.
        self.sending.transmit.push(descriptor);
        Some(())
    }

    /// Has the kernel send what was put in.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for _ in 0..SEND_CALLS_MAX {
            if self.sending.transmit.len() == 0 {
                break;
            }
            match self.socket.socket.send_with_flags(&[], libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    // More is left than a call takes, or the interface is busy.
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sets an option of the level `SOL_XDP`. The value is of a type that the kernel reads so.
fn set<T: Copy>(socket: &Socket, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length name `value`, which is live; the kernel copies it.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            name,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where counters and descriptors are in the rings.
fn ring_offsets(socket: &Socket) -> io::Result<xdp_mmap_offsets> {
    // SAFETY: the type is integers alone, for which zeros are values.
    let mut offsets: xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = size_of::<xdp_mmap_offsets>() as socklen_t;
    // SAFETY: pointers and length name live locals; the kernel writes at most so many bytes.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast::<c_void>(),
            &raw mut length,
        )
    };
    match outcome {
        0 if length as usize == size_of::<xdp_mmap_offsets>() => Ok(offsets),
        // Kernels before 5.4 tell less.
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Binds, and waits a little for a queue in use: the kernel takes the queue from a socket that was
/// closed some milliseconds later, in a thread of its own.
fn bind_soon(socket: &Socket, interface: u32, queue: u32) -> io::Result<()> {
    for _ in 0..BIND_TRIES {
        match bind(socket, interface, queue) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(BIND_DISTANCE);
            }
            outcome => return outcome,
        }
    }
    bind(socket, interface, queue)
}

fn bind(socket: &Socket, interface: u32, queue: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: pointer and length name `address`, which is live; the kernel copies it.
    let outcome = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast::<libc::sockaddr>(),
            size_of::<libc::sockaddr_xdp>() as socklen_t,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
