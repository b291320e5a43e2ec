// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stands between clients and a server on real sockets, and does to each datagram what a rule says.
//!
//! Clients call the forwarder. For each it has a socket of its own towards the server, so that the
//! server sees as many addresses as there are clients. One thread per socket; kernel buffers are in
//! the way as on a real path.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

impl Way {
    pub(crate) fn back(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// The decision of a rule about a datagram: which datagrams leave now, each with the way it goes.
pub(crate) type Outcome = Vec<(Way, Vec<u8>)>;

type Rule = dyn FnMut(Way, &[u8]) -> Outcome + Send;

/// A running forwarder; it stops when it is dropped.
pub(crate) struct Forwarder {
    address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
}

impl Forwarder {
    /// Forwards to `server` by `rule`, which sees the datagrams of all clients.
    pub(crate) fn new(
        server: SocketAddr,
        rule: impl FnMut(Way, &[u8]) -> Outcome + Send + 'static,
    ) -> Self {
        let front = socket();
        let address = front.local_addr().unwrap();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            front,
            server,
            rule: Mutex::new(Box::new(rule)),
            is_stopped: Arc::clone(&is_stopped),
        });
        std::thread::spawn(move || shared.listen());
        Self { address, is_stopped }
    }

    /// Where clients find it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

struct Shared {
    front: UdpSocket,
    server: SocketAddr,
    rule: Mutex<Box<Rule>>,
    is_stopped: Arc<AtomicBool>,
}

impl Shared {
    fn listen(self: &Arc<Self>) {
        let mut backs: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut buffer = vec![0; 65_536];
        while !self.is_stopped.load(Ordering::Relaxed) {
            let Ok((length, client)) = self.front.recv_from(&mut buffer) else {
                continue;
            };
            let back = backs.entry(client).or_insert_with(|| self.open_back(client));
            self.pass(Way::ToServer, &buffer[..length], client, back);
        }
    }

    fn open_back(self: &Arc<Self>, client: SocketAddr) -> Arc<UdpSocket> {
        let back = Arc::new(socket());
        let (shared, socket) = (Arc::clone(self), Arc::clone(&back));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while !shared.is_stopped.load(Ordering::Relaxed) {
                if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                    shared.pass(Way::ToClient, &buffer[..length], client, &socket);
                }
            }
        });
        back
    }

    fn pass(&self, way: Way, datagram: &[u8], client: SocketAddr, back: &UdpSocket) {
        let outcome = (self.rule.lock().unwrap())(way, datagram);
        for (way, bytes) in outcome {
            // A full buffer or an absent server is a loss, as on any path.
            let _: io::Result<usize> = match way {
                Way::ToServer => back.send_to(&bytes, self.server),
                Way::ToClient => self.front.send_to(&bytes, client),
            };
        }
    }
}

/// A socket of large buffers that looks up now and then whether it is still wanted.
fn socket() -> UdpSocket {
    let carrier =
        smt::UdpOptions::new().receive_offload(false).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let fd = std::os::fd::AsFd::as_fd(&carrier).try_clone_to_owned().unwrap();
    let socket = UdpSocket::from(fd);
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket
}
