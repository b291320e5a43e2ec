// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokio as a runtime of endpoints, and what else they know of tokio's workers.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::time::{Instant, Sleep, sleep};

use super::{Runtime, Timer, Watched};

/// A runtime of tokio. Endpoints use the one in which they are opened, unless
/// [`Builder::runtime`](crate::Builder::runtime) names one: so they may be opened anywhere.
#[derive(Debug)]
pub struct TokioRuntime {
    handle: Handle,
}

impl TokioRuntime {
    /// The runtime of this handle: always the same one for a runtime, as long as it is in use.
    #[must_use]
    pub fn of(handle: &Handle) -> Arc<Self> {
        let mut runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
        let runtimes = runtimes.get_or_insert_with(HashMap::new);
        runtimes.retain(|_, runtime| runtime.strong_count() > 0);
        if let Some(runtime) = runtimes.get(&handle.id()).and_then(Weak::upgrade) {
            return runtime;
        }
        let runtime = Arc::new(Self { handle: handle.clone() });
        runtimes.insert(handle.id(), Arc::downgrade(&runtime));
        runtime
    }

    /// The runtime in which this is called, if there is one.
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        Handle::try_current().ok().map(|handle| Self::of(&handle))
    }
}

static RUNTIMES: Mutex<Option<HashMap<Id, Weak<TokioRuntime>>>> = Mutex::new(None);

impl Runtime for TokioRuntime {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.handle.spawn(task);
    }

    fn timer(&self, after: Duration) -> io::Result<Pin<Box<dyn Timer>>> {
        // An endpoint may be closed on another runtime, after its own has ended.
        let here = Handle::try_current().ok();
        let handles = here.iter().chain([&self.handle]);
        let mut timers = handles.map(|handle| {
            let _entered = handle.enter();
            supported(|| sleep(after))
        });
        match timers.find_map(Result::ok) {
            Some(timer) => Ok(Box::pin(timer)),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn watch(&self, descriptor: OwnedFd) -> io::Result<Box<dyn Watched>> {
        let _entered = self.handle.enter();
        #[expect(
            deprecated,
            reason = "unsound for what changes its descriptor, which an `OwnedFd` does not; what replaces it is unsafe"
        )]
        let watched = supported(|| AsyncFd::new(descriptor))??;
        Ok(Box::new(watched))
    }

    fn workers(&self) -> usize {
        match self.handle.runtime_flavor() {
            RuntimeFlavor::MultiThread => self.handle.metrics().num_workers(),
            _ => 1,
        }
    }
}

/// Makes something that a runtime may have been built without. Tokio tells that by a panic alone.
fn supported<T>(make: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(make)).map_err(|_| io::ErrorKind::Unsupported.into())
}

impl Timer for Sleep {
    fn reset(self: Pin<&mut Self>, after: Duration) {
        let now = Instant::now();
        let due = now.checked_add(after).unwrap_or(now + LONGEST);
        Self::reset(self, due);
    }

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Future::poll(self, context)
    }
}

impl Watched for AsyncFd<OwnedFd> {
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context).map(|ready| {
            // Before the look: what comes after it is told again.
            ready?.clear_ready();
            Ok(())
        })
    }
}

/// Whether this thread runs a task of a runtime of tokio.
pub(crate) fn is_on_worker() -> bool {
    tokio::task::try_id().is_some()
}

/// Whether tokio's `block_on` polls here, on a runtime whose workers run meanwhile.
#[cfg_attr(smt_model, expect(dead_code, reason = "a model has a stand-in"))]
pub(crate) fn is_in_block_on() -> bool {
    let has_workers = |handle: Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
    !is_on_worker() && Handle::try_current().is_ok_and(has_workers)
}

/// Wakes when this worker has nothing else to run. A task that yields is woken so by tokio, and
/// here another one is in its stead: tokio wakes every waker that it was given so.
pub(crate) fn defer(waker: &Waker) {
    let mut context = Context::from_waker(waker);
    let _ = pin!(tokio::task::yield_now()).poll(&mut context);
}

/// For a time that the clock does not reach.
const LONGEST: Duration = Duration::from_secs(86_400 * 365 * 30);
