// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams between two threads of a model: none is lost, and each arrives at once.
//!
//! Not here: loss and reordering, which are the protocol's affair (`smt-sim`).

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use shuttle::sync::Condvar;
use smt_carrier::{Arrival, Batch, Capabilities, Carrier, Path, ReceiveError, SendError, Wait};

use crate::driver::watch::Watch;
use crate::sync::{Mutex, MutexGuard, PoisonError, thread, thread_local};

/// One end of a network of two.
pub(super) struct ModelCarrier {
    address: SocketAddr,
    remote: SocketAddr,
    own: Arc<Inbox>,
    other: Arc<Inbox>,
}

/// Datagrams that have come to one end.
pub(super) struct Inbox {
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Default)]
struct State {
    datagrams: VecDeque<Vec<u8>>,
    /// No thread is to wait any more.
    is_stopped: bool,
    is_watched: bool,
    /// The watch has something to tell.
    is_ready: bool,
    reader: Option<Waker>,
    /// The receive call that panics, counted from now; and likewise of what this end sends.
    receives_left: Option<usize>,
    sends_left: Option<usize>,
}

impl ModelCarrier {
    /// Two ends.
    pub(super) fn pair() -> [Self; 2] {
        let [first, second] = [Inbox::new(), Inbox::new()];
        let [one, two] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 1)));
        let end = |(address, remote), own: &Arc<Inbox>, other: &Arc<Inbox>| Self {
            address,
            remote,
            own: Arc::clone(own),
            other: Arc::clone(other),
        };
        [end((one, two), &first, &second), end((two, one), &second, &first)]
    }

    pub(super) fn inbox(&self) -> &Arc<Inbox> {
        &self.own
    }

    /// The address of the other end.
    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }
}

impl Inbox {
    fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), has_changed: Condvar::new() })
    }

    /// Ends the waiting of all threads, now and later.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.has_changed.notify_all();
    }

    /// One of the next calls of this end panics: to send after it has sent, or to receive before
    /// anything is taken.
    pub(super) fn break_once(&self, receives: Option<usize>, sends: Option<usize>) {
        let mut state = self.lock();
        state.receives_left = receives;
        state.sends_left = sends;
    }

    /// Ready when the watch tells of something.
    pub(super) fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_ready) {
            return Poll::Ready(());
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    fn put(&self, datagrams: impl Iterator<Item = Vec<u8>>) {
        let reader = {
            let mut state = self.lock();
            state.datagrams.extend(datagrams);
            state.tell()
        };
        self.has_changed.notify_all();
        reader.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Tells of what is there, if that is watched. Returns the waker that is to be woken.
    fn tell(&mut self) -> Option<Waker> {
        if !self.is_watched || self.datagrams.is_empty() {
            return None;
        }
        self.is_ready = true;
        self.reader.take()
    }
}

impl Carrier for ModelCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let segments = batch.bytes.chunks(batch.plain_segment_size());
        self.other.put(segments.map(<[u8]>::to_vec));
        panic_at_last(&mut self.own.lock().sends_left);
        Ok(())
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        let mut state = self.own.lock();
        panic_at_last(&mut state.receives_left);
        while wait != Wait::Never && state.datagrams.is_empty() && !state.is_stopped {
            let waited = self.own.has_changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let datagram = state.datagrams.pop_front();
        drop(state);
        let Some(datagram) = datagram else {
            // Its time is over: others run meanwhile.
            thread::yield_now();
            return Ok(0);
        };
        sink(Arrival::datagram(Path::to(self.remote), &datagram));
        Ok(1)
    }

    fn local_address(&self) -> SocketAddr {
        self.address
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1_472).with_segments_max(64)
    }
}

thread_local! {
    static MAY_BREAK: Cell<bool> = Cell::new(false);
}

/// Runs what the carrier may break; `Err` if it did. Elsewhere it does not.
pub(super) fn catch_break<T>(act: impl FnOnce() -> T) -> Result<T, ()> {
    MAY_BREAK.with(|may_break| may_break.set(true));
    let outcome = catch_unwind(AssertUnwindSafe(act));
    MAY_BREAK.with(|may_break| may_break.set(false));
    outcome.map_err(|_| ())
}

/// Panics if this is the last call that is left, without the noise of a failed test.
fn panic_at_last(left: &mut Option<usize>) {
    if !MAY_BREAK.with(Cell::get) {
        return;
    }
    *left = match left.take() {
        Some(0) => std::panic::resume_unwind(Box::new("the carrier breaks")),
        left => left.map(|left| left - 1),
    };
}

/// The watch of one end, which is edge-triggered as tokio's is.
pub(super) struct ModelWatch(Arc<Inbox>);

impl ModelWatch {
    /// A watch that is on.
    pub(super) fn new(inbox: &Arc<Inbox>) -> Self {
        let mut watch = Self(Arc::clone(inbox));
        watch.turn(true);
        watch
    }
}

impl Watch for ModelWatch {
    fn is_on(&self) -> bool {
        self.0.lock().is_watched
    }

    fn turn(&mut self, on: bool) {
        let reader = {
            let mut state = self.0.lock();
            if state.is_watched == on {
                return;
            }
            state.is_watched = on;
            state.tell()
        };
        reader.into_iter().for_each(Waker::wake);
    }
}
