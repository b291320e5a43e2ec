// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device's loop: connections, their requests, and sleep.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use smt_device_client::{AppendOnly, Corrupt, Hello, Wake};

use crate::session::Session;

/// Connections at a time. Each has 1 MiB of memory.
const CONNECTIONS_MAX: usize = 32;
/// Requests of one connection before another has its turn.
const TURN: usize = 256;
/// How often the device looks for requests before it sleeps.
const LOOKS: u32 = 128;
/// Rounds of work between two looks at the listening socket.
const ROUNDS: u32 = 256;

/// A listening device with its connections.
pub struct Server {
    listener: UnixListener,
    connections: Vec<Connection>,
}

struct Connection {
    session: Session,
    wake: Wake,
}

impl Server {
    /// Serves those who connect to `listener`.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn new(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: Vec::new() })
    }

    /// Serves for ever.
    ///
    /// # Errors
    /// The operating system failed. A host can end its own connection at most.
    pub fn run(&mut self, device: &mut impl AppendOnly) -> io::Result<()> {
        let hello = Hello { own: device.own(), public_key: device.public_key() };
        loop {
            // A host that always has requests keeps the device awake, and others may come.
            let mut looks = 0;
            for _ in 0..ROUNDS {
                let served = self.serve(device);
                looks = if served { 0 } else { looks + 1 };
                if looks > LOOKS {
                    break;
                }
                std::hint::spin_loop();
            }
            self.wait(&hello, looks > 0)?;
        }
    }

    /// One turn of each connection; whether there was a request.
    fn serve(&mut self, device: &mut impl AppendOnly) -> bool {
        let mut has_served = false;
        self.connections.retain_mut(|Connection { session, wake }| {
            match session.serve(device, TURN) {
                Ok(0) => true,
                Ok(_) => {
                    has_served = true;
                    wake.wake(session.memory()).is_ok()
                }
                Err(why) => is_dropped(why),
            }
        });
        has_served
    }

    /// Waits for requests if `sleeps`, takes new connections, and lets go of those that ended.
    fn wait(&mut self, hello: &Hello, sleeps: bool) -> io::Result<()> {
        let mut has_work = false;
        if sleeps {
            self.connections.retain_mut(|Connection { session, wake }| {
                wake.sleep(session.memory(), true);
                match session.has_work() {
                    Ok(work) => {
                        has_work |= work;
                        true
                    }
                    Err(why) => is_dropped(why),
                }
            });
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = (!sleeps || has_work).then_some(&at_once);
        let sockets =
            self.connections.iter().map(|it| PollFd::new(it.wake.socket(), PollFlags::IN));
        let listener = PollFd::new(&self.listener, PollFlags::IN);
        let mut files: Vec<_> = sockets.chain([listener]).collect();
        match poll(&mut files, timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready: Vec<bool> = files.iter().map(|it| !it.revents().is_empty()).collect();
        // One for each connection, and the listener's.
        let mut is_ready = is_ready.into_iter();
        self.connections.retain(|Connection { session, wake }| {
            if sleeps {
                wake.sleep(session.memory(), false);
            }
            is_ready.next() == Some(false) || matches!(wake.take(), Ok(true))
        });
        if is_ready.next() == Some(true) { self.take(hello) } else { Ok(()) }
    }

    /// Takes a connection; a full device closes it, which the host reads as "busy".
    fn take(&mut self, hello: &Hello) -> io::Result<()> {
        // A host that does not read cannot stop the device.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match accept_with(&self.listener, flags) {
            Ok(socket) => UnixStream::from(socket),
            // The host has gone meanwhile.
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if self.connections.len() == CONNECTIONS_MAX {
            eprintln!("smt-device: a connection was closed: there are {CONNECTIONS_MAX}");
            return Ok(());
        }
        match connect(hello, socket) {
            Ok(connection) => self.connections.push(connection),
            Err(error) => eprintln!("smt-device: a connection failed: {error}"),
        }
        Ok(())
    }
}

fn connect(hello: &Hello, socket: UnixStream) -> io::Result<Connection> {
    let (session, file) = Session::create()?;
    hello.send(&socket, &file)?;
    Ok(Connection { session, wake: Wake::of_device(socket) })
}

/// Says why a connection is not kept.
fn is_dropped(why: Corrupt) -> bool {
    eprintln!("smt-device: a connection was closed: its host broke the protocol: {why}");
    false
}
