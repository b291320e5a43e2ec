// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device below an endpoint of quinn: a socket that opens and seals, as a NIC behind it would.
//!
//! quinn and what is built on it (HTTP/3 by h3) run unchanged: their configurations are linked
//! ([`crate::session`]), and the endpoint is made with this socket.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::{AsyncUdpSocket, UdpPoller};
use quinn_udp::{RecvMeta, Transmit};

use crate::built;
use crate::device::{Device, OffloadCounts};
use crate::link::{Link, Links};
use crate::sealing::begins_in;

/// The socket. Several may share a device: a client that moves to another address has a new one.
pub struct OffloadedSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    device: SharedDevice,
}

/// A device that sockets share.
#[derive(Clone, Debug)]
pub struct SharedDevice {
    device: Arc<Mutex<Device>>,
    links: Links,
}

impl SharedDevice {
    /// The device.
    #[must_use]
    pub fn new(device: Device) -> Self {
        let links = device.links().clone();
        Self { device: Arc::new(Mutex::new(device)), links }
    }

    /// The links of its connections, for their sessions.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The counts, up to now.
    #[must_use]
    pub fn counts(&self) -> OffloadCounts {
        self.lock().counts()
    }

    /// Connections, and their ids, that the engine has now.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        let mut device = self.lock();
        device.tend();
        device.sizes()
    }

    fn lock(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OffloadedSocket {
    /// A socket whose packets the device opens and seals.
    #[must_use]
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, device: SharedDevice) -> Self {
        Self { inner, device }
    }

    /// The connection whose unsealed packets a buffer has: the one for which quinn has just built
    /// on this thread, or one whose buffer is offered again.
    fn link_of(&self, transmit: &Transmit<'_>) -> Option<Arc<Link>> {
        let built = built::take().filter(|link| self.device.links.has(link));
        built.or_else(|| {
            let stride = transmit.segment_size.unwrap_or(transmit.contents.len());
            let mut waiting = self.device.links.unsealed().into_iter();
            waiting.find(|link| {
                let notes = link.notes();
                begins_in(&link.down, transmit.contents, stride, &notes.unsealed)
            })
        })
    }
}

impl AsyncUdpSocket for OffloadedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let inner = Arc::clone(&self.inner).create_io_poller();
        Box::pin(Poller { inner })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let Some(link) = self.link_of(transmit) else {
            return self.inner.try_send(transmit);
        };
        let mut bytes = transmit.contents.to_vec();
        let stride = transmit.segment_size.unwrap_or(bytes.len());
        let unsealed = link.take_unsealed();
        let sealed = {
            let mut device = self.device.lock();
            device.tend();
            device.seal(&link, &unsealed, (&mut bytes, stride))
        };
        if sealed.is_err() {
            // It would leave in the clear: to quinn it is lost.
            return Ok(());
        }
        let sent = self.inner.try_send(&Transmit { contents: &bytes, ..transmit.clone() });
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::WouldBlock
        {
            // quinn offers the same plaintext again: sealed again, it is the same packets.
            link.put_back(unsealed);
            built::note(&link);
        }
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        let mut device = self.device.lock();
        device.tend();
        for (buffer, meta) in bufs.iter_mut().zip(meta.iter()).take(count) {
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                device.receive(datagram);
            }
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

impl fmt::Debug for OffloadedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffloadedSocket").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Poller {
    inner: Pin<Box<dyn UdpPoller>>,
}

impl UdpPoller for Poller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.inner.as_mut().poll_writable(cx);
        if !matches!(polled, Poll::Ready(Ok(()))) {
            // quinn keeps the buffer for later; the next one on this thread is another's.
            let _ = built::take();
        }
        polled
    }
}
