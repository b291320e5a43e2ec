// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How host and device find each other, and wake each other.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{Ordering, fence};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};
use smt_attestation::{DeviceId, Epoch, PUBLIC_KEY_LEN, Start};

use crate::error::DeviceError;
use crate::layout::{DEVICE_SLEEPS, HOST_SLEEPS};
use crate::shared_memory::SharedMemory;

/// Bytes of a [`Hello`].
const HELLO_LEN: usize = 64;
/// The version of layout and frames.
const VERSION: u32 = 1;

/// The device's greeting to a new connection, beside the file of its memory.
///
/// | offset | bytes | field |
/// |---|---|---|
/// | 0 | 4 | version, 1, big-endian like all numbers here |
/// | 4 | 4 | device |
/// | 8 | 8 | epoch |
/// | 16 | 16 | nonce of the start |
/// | 32 | 32 | public key |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hello {
    /// The device's start.
    pub own: Start,
    /// The public key of its signatures.
    pub public_key: [u8; PUBLIC_KEY_LEN],
}

impl Hello {
    fn encode(&self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        bytes[0..4].copy_from_slice(&VERSION.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.own.device.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.own.epoch.0.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.own.nonce);
        bytes[32..].copy_from_slice(&self.public_key);
        bytes
    }

    fn decode(bytes: &[u8; HELLO_LEN]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk::<4>()?;
        let (device, rest) = rest.split_first_chunk::<4>()?;
        let (epoch, rest) = rest.split_first_chunk::<8>()?;
        let (nonce, public_key) = rest.split_first_chunk::<16>()?;
        let own = Start {
            device: DeviceId(u32::from_be_bytes(*device)),
            epoch: Epoch(u64::from_be_bytes(*epoch)),
            nonce: *nonce,
        };
        let is_ours = u32::from_be_bytes(*version) == VERSION;
        is_ours.then_some(Self { own, public_key: public_key.try_into().ok()? })
    }

    /// Sends this with the file of a connection's memory.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn send(&self, socket: &UnixStream, memory: &OwnedFd) -> io::Result<()> {
        let files = [memory.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = self.encode();
        let sent = sendmsg(socket, &[io::IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Receives what [`Hello::send`] sent.
    ///
    /// # Errors
    /// [`DeviceError::Busy`] if the other side closed, [`DeviceError::Protocol`] if it is no device
    /// of this version, [`DeviceError::System`].
    pub fn receive(socket: &UnixStream) -> Result<(Self, OwnedFd), DeviceError> {
        let mut bytes = [0; HELLO_LEN];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [io::IoSliceMut::new(&mut bytes)];
        let received = recvmsg(socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(DeviceError::Busy);
        }
        let mut files = control.drain().filter_map(|it| match it {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let memory = files.next().and_then(|mut files| files.next());
        let hello = Self::decode(&bytes).filter(|_| received.bytes == HELLO_LEN);
        let greeting = hello.zip(memory);
        greeting.ok_or(DeviceError::Protocol("its greeting is not one of this version"))
    }
}

/// One side of the socket over which host and device wake each other, and learn of the end.
///
/// Each side has an end of the socket of its own, whose flags the other one cannot change. An
/// `eventfd` would be one file for both: a host that made it blocking would stop the device, and
/// with it all other hosts.
#[derive(Debug)]
pub struct Wake {
    socket: UnixStream,
    /// The register that says whether this side sleeps.
    own: usize,
    /// The register that says whether the other side sleeps.
    other: usize,
}

impl Wake {
    /// The device's side.
    #[must_use]
    pub fn of_device(socket: UnixStream) -> Self {
        Self { socket, own: DEVICE_SLEEPS, other: HOST_SLEEPS }
    }

    /// The host's side.
    #[must_use]
    pub fn of_host(socket: UnixStream) -> Self {
        Self { socket, own: HOST_SLEEPS, other: DEVICE_SLEEPS }
    }

    /// The socket, to wait for: it can be read when there is a wake to take, and after the other
    /// side has gone.
    #[must_use]
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Says whether this side sleeps. It looks into its ring once more before it really does.
    pub fn sleep(&self, memory: &SharedMemory, sleeps: bool) {
        memory.word(self.own).store(sleeps.into(), Ordering::Relaxed);
        // The store is seen before positions are read again; `wake` has the other half.
        fence(Ordering::SeqCst);
    }

    /// Wakes the other side if it sleeps. Never waits.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn wake(&self, memory: &SharedMemory) -> io::Result<()> {
        // The position that was published is seen before the flag is read: either the sleeper finds
        // it when it looks once more, or this side finds the flag.
        fence(Ordering::SeqCst);
        if memory.word(self.other).load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        // One wake is enough for a side that is slow to wake.
        memory.word(self.other).store(0, Ordering::Relaxed);
        match send(&self.socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            // A socket that is full wakes too. `Wake::take` tells that the other side has gone.
            Ok(_) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the wakes that have come, so that the next wait waits again. False if the other side
    /// has gone. Never waits.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn take(&self) -> io::Result<bool> {
        match recv(&self.socket, &mut [0_u8; 64], RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Ok(false),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides() -> (SharedMemory, Wake, Wake) {
        let (memory, _) = SharedMemory::create().unwrap();
        let (device, host) = UnixStream::pair().unwrap();
        (memory, Wake::of_device(device), Wake::of_host(host))
    }

    #[test]
    fn a_side_is_woken_only_while_it_says_that_it_sleeps() {
        let (memory, device, host) = sides();
        let has_come = |wake: &Wake| {
            wake.socket().set_nonblocking(true).unwrap();
            recv(wake.socket(), &mut [0_u8; 2], RecvFlags::PEEK).is_ok()
        };
        host.wake(&memory).unwrap();
        assert!(!has_come(&device));
        device.sleep(&memory, true);
        host.wake(&memory).unwrap();
        assert!(has_come(&device));
        assert!(device.take().unwrap());
        // The first wake has taken the flag back.
        host.wake(&memory).unwrap();
        assert!(!has_come(&device));
        host.sleep(&memory, true);
        device.wake(&memory).unwrap();
        assert!(has_come(&host));
    }

    /// Both sockets are blocking ones: a call that relied on their flags would never return.
    #[test]
    fn a_side_that_takes_no_wake_does_not_stop_the_other_one() {
        let (memory, device, host) = sides();
        assert!(device.take().unwrap());
        for _ in 0..10_000 {
            host.sleep(&memory, true);
            device.wake(&memory).unwrap();
        }
        assert!(host.take().unwrap());
    }

    #[test]
    fn a_side_learns_that_the_other_one_has_gone() {
        let (memory, device, host) = sides();
        host.sleep(&memory, true);
        drop(host);
        device.wake(&memory).unwrap();
        assert!(!device.take().unwrap());
    }
}
