// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A thread of an endpoint's own that drives it for tasks: for runtimes whose workers handlers keep
//! busy or block.
//!
//! It runs the same driver as a task of the runtime does (`driver::background`), by a set of
//! descriptors that is readable when the socket is, when the alarm goes off, or when a thread wakes
//! it. It spins in place, by the same rules.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use smt_carrier::Carrier;
use smt_io::{CarrierWatch, Epoll, TimerFd, Token};

use crate::driver::Guard;
use crate::driver::background::{BackgroundDriver, DriverServices, Spinning};
use crate::sync::{AtomicBool, Ordering, thread};

/// Starts the thread. It ends when the endpoint's last handle is gone.
///
/// # Errors
/// The process has no descriptors left, or the system gives no thread.
pub(crate) fn spawn_io_thread(guard: &Guard, carrier: Arc<dyn Carrier>) -> io::Result<()> {
    let watch = CarrierWatch::new(carrier)?;
    let events = Arc::new(Events::new(watch.descriptors()?)?);
    let driver = Arc::clone(guard.driver());
    driver.set_watch(watch);
    let background = BackgroundDriver::new(driver, IoThread(Arc::clone(&events)));
    let thread = thread::Builder::new().name("smt-io".to_owned());
    thread.spawn(move || run(background, &events))?;
    Ok(())
}

/// Polls the driver until it has ended, and sleeps while it waits.
fn run(background: BackgroundDriver<IoThread>, events: &Arc<Events>) {
    let waker = Waker::from(Arc::clone(events));
    let mut context = Context::from_waker(&waker);
    let mut driving = pin!(background.drive());
    while driving.as_mut().poll(&mut context).is_pending() {
        if let Err(error) = events.wait() {
            // Dropped, the driver tells those who wait that nobody drives any more.
            tracing::error!(%error, "the endpoint's thread cannot wait any more");
            return;
        }
    }
}

/// The events that the thread sleeps for.
struct Events {
    set: Epoll,
    /// The set has them as long as they are open.
    _sockets: Vec<OwnedFd>,
    alarm: TimerFd,
    /// A timer that goes off at once wakes the thread.
    wakeup: TimerFd,
    is_readable: AtomicBool,
    has_elapsed: AtomicBool,
}

impl Events {
    fn new(sockets: Vec<OwnedFd>) -> io::Result<Self> {
        let (set, alarm, wakeup) = (Epoll::new()?, TimerFd::new()?, TimerFd::new()?);
        for socket in &sockets {
            set.add(socket.as_fd(), SOCKET)?;
        }
        set.add(alarm.as_fd(), ALARM)?;
        set.add(wakeup.as_fd(), WAKEUP)?;
        Ok(Self {
            set,
            _sockets: sockets,
            alarm,
            wakeup,
            is_readable: AtomicBool::new(false),
            has_elapsed: AtomicBool::new(false),
        })
    }

    /// Sleeps until something happens. A wake-up that is cleared here is heard by the poll that
    /// follows.
    fn wait(&self) -> io::Result<()> {
        let mut ready = [SOCKET; 4];
        let count = self.set.wait(&mut ready, None)?;
        for event in &ready[..count] {
            match *event {
                ALARM => {
                    self.alarm.set(None)?;
                    self.has_elapsed.store(true, Ordering::Relaxed);
                }
                WAKEUP => self.wakeup.set(None)?,
                _ => self.is_readable.store(true, Ordering::Relaxed),
            }
        }
        Ok(())
    }
}

impl Wake for Events {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Err(error) = self.wakeup.set(Some(Duration::ZERO)) {
            tracing::error!(%error, "the endpoint's thread cannot be woken");
        }
    }
}

/// The thread, for its driver.
struct IoThread(Arc<Events>);

impl DriverServices for IoThread {
    fn spinning(&self) -> Spinning<impl Sized> {
        Spinning::InPlace(())
    }

    fn poll_readable(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.is_readable.swap(false, Ordering::Relaxed) {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    fn set_alarm(&mut self, time: Duration) {
        self.0.has_elapsed.store(false, Ordering::Relaxed);
        if let Err(error) = self.0.alarm.set(Some(time)) {
            tracing::error!(%error, "the endpoint's timer could not be set");
        }
    }

    fn poll_alarm(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        match self.0.has_elapsed.swap(false, Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    async fn yield_now(&mut self) {
        thread::yield_now();
    }
}

const SOCKET: Token = Token(0);
const ALARM: Token = Token(1);
const WAKEUP: Token = Token(2);
