// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The task that drives an endpoint on tokio: receives, and does what is due.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use smt_io::UdpCarrier;
use tokio::io::Interest;
use tokio::net::{UdpSocket, UnixDatagram};

use crate::hub::{Guard, Hub};

/// Starts the task. It ends when the endpoint's last handle is gone.
pub(crate) fn spawn_driver(guard: &Guard, udp: &UdpCarrier) -> io::Result<()> {
    // A second descriptor of the same socket, by which the runtime learns that it is readable; the carrier
    // does the reading. Non-blocking holds for both, and the carrier is never asked to wait here.
    let socket = std::net::UdpSocket::from(udp.as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from_std(socket)?;
    let inbox = udp.inbox_fd().map(watch_inbox).transpose()?;
    let driving = Driving {
        socket,
        inbox,
        hub: Driven(Arc::clone(guard.hub())),
    };
    tokio::spawn(
        async move { drive(&driving.hub.0, &driving.socket, driving.inbox.as_ref()).await },
    );
    Ok(())
}

/// The task drives as long as this lives. When it goes the socket goes first (fields are dropped in their order): whoever
/// is told that nobody drives may bind its address.
struct Driving {
    socket: UdpSocket,
    inbox: Option<UnixDatagram>,
    hub: Driven,
}

/// An endpoint that a task drives. Its runtime may end before the endpoint, or have no timers: then nobody would ever wake
/// those who wait.
struct Driven(Arc<Hub>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What rings when another shard has received something for this one.
fn watch_inbox(bell: BorrowedFd<'_>) -> io::Result<UnixDatagram> {
    let bell = std::os::unix::net::UnixDatagram::from(bell.try_clone_to_owned()?);
    UnixDatagram::from_std(bell)
}

async fn drive(hub: &Hub, socket: &UdpSocket, inbox: Option<&UnixDatagram>) {
    let Some(signal) = hub.driver() else { return };
    loop {
        let idle = {
            let (core, now) = (hub.lock(), hub.now());
            if core.is_over(now) {
                return;
            }
            core.idle_time(now).unwrap_or(IDLE_MAX)
        };
        tokio::select! {
            biased;
            ready = socket.ready(Interest::READABLE | Interest::ERROR) => {
                let Ok(ready) = ready else {
                    // The runtime shuts down.
                    return;
                };
                if ready.is_error() {
                    receive_error(hub, socket);
                }
                take_turn(hub, |receive| socket.try_io(Interest::READABLE, receive)).await;
            }
            inbox = readable(inbox) => {
                take_turn(hub, |receive| inbox.try_io(Interest::READABLE, receive)).await;
            }
            () = poll_fn(|context| signal.poll_raised(context)) => {}
            () = tokio::time::sleep(idle) => hub.change(|core, now| core.fire_timers(now, false)),
        }
    }
}

/// Ready when something is in an inbox; never without one.
async fn readable(inbox: Option<&UnixDatagram>) -> &UnixDatagram {
    match inbox {
        Some(inbox) if inbox.readable().await.is_ok() => inbox,
        _ => std::future::pending().await,
    }
}

/// Receives what is there, and lets those run who are told of it.
async fn take_turn(hub: &Hub, try_io: impl Fn(&dyn Fn() -> io::Result<()>) -> io::Result<()>) {
    // What the woken tasks send leaves together, when this task runs again: right after them.
    hub.lock().cork(hub.now());
    receive_some(hub, try_io);
    let told = hub.lock().gather(hub.now());
    // One that is woken alone has nobody to wait for.
    if told > 1 {
        tokio::select! {
            biased;
            // This lets a future run too that `Runtime::block_on` polls; waking itself would not.
            () = tokio::task::yield_now() => {}
            // It is this worker that wakes after a yield: if one of the tasks keeps it busy, another takes over.
            () = tokio::time::sleep(YIELD_MAX) => {}
        }
    }
    hub.change(|core, _| core.uncork());
}

/// Takes the report that nobody listens at the server's port: it comes without data. The runtime's note is
/// cleared before the look, so that a report in between is noted again.
fn receive_error(hub: &Hub, socket: &UdpSocket) {
    let clear = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
    let cleared = socket.try_io(Interest::ERROR, clear);
    debug_assert!(cleared.is_err(), "the closure always fails");
    hub.receive_now();
}

/// Receives what is there, up to some batches. After the last one the descriptor counts as readable again when
/// something comes: also what comes in this moment, since the runtime notes readiness before the look.
fn receive_some(hub: &Hub, try_io: impl Fn(&dyn Fn() -> io::Result<()>) -> io::Result<()>) {
    let receive = || match hub.receive_now() {
        true => Ok(()),
        false => Err(io::ErrorKind::WouldBlock.into()),
    };
    let mut batches = 0..BATCHES_PER_TURN;
    while batches.next().is_some() && try_io(&receive).is_ok() {}
}

/// Batches received before other tasks get a turn (quinn's `IO_LOOP_BOUND` serves the same end).
const BATCHES_PER_TURN: usize = 64;
/// What has gathered leaves after this time although a task keeps the worker busy. Timers have a millisecond's grain.
const YIELD_MAX: Duration = Duration::from_millis(1);
/// Sleep without any timer.
const IDLE_MAX: Duration = Duration::from_secs(3600);
