// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stands between a client and a server, and keeps every datagram: a capture without privileges.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// One datagram, as if it had been captured on the client's side.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) time: Duration,
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    pub(crate) payload: Vec<u8>,
}

/// Two threads, one for each direction.
pub(crate) struct Forwarder {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Forwarder {
    /// Forwards between one client, the one that calls, and the server.
    pub(crate) fn start(server: &str) -> Self {
        let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let inside = UdpSocket::bind("127.0.0.1:0").unwrap();
        inside.connect(server).unwrap();
        let address = outside.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let client: Arc<Mutex<Option<SocketAddr>>> = Arc::default();

        let there = {
            let (client, seen, inside) =
                (Arc::clone(&client), Arc::clone(&seen), inside.try_clone().unwrap());
            pump(outside.try_clone().unwrap(), &is_over, move |payload, source| {
                *client.lock().unwrap() = Some(source);
                note(&seen, source, address, payload);
                // A client that asks again gets another chance.
                let _ = inside.send(payload);
            })
        };
        let back = {
            let seen = Arc::clone(&seen);
            pump(inside, &is_over, move |payload, _| {
                if let Some(client) = *client.lock().unwrap() {
                    note(&seen, address, client, payload);
                    let _ = outside.send_to(payload, client);
                }
            })
        };
        Self { address, is_over, threads: vec![there, back], seen }
    }

    /// The address that clients call instead of the server's.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything that was forwarded.
    pub(crate) fn end(self) -> Vec<Seen> {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn pump(
    socket: UdpSocket,
    is_over: &Arc<AtomicBool>,
    mut forward: impl FnMut(&[u8], SocketAddr) + Send + 'static,
) -> JoinHandle<()> {
    let is_over = Arc::clone(is_over);
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while !is_over.load(Ordering::Relaxed) {
            if let Ok((length, source)) = socket.recv_from(&mut buffer) {
                forward(&buffer[..length], source);
            }
        }
    })
}

fn note(seen: &Mutex<Vec<Seen>>, source: SocketAddr, target: SocketAddr, payload: &[u8]) {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    seen.lock().unwrap().push(Seen { time, source, target, payload: payload.to_vec() });
}
