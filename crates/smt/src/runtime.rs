// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The runtime on which endpoints for tasks run: tokio by default, or any other that has tasks,
//! timers and descriptors to watch.
//!
//! An endpoint asks its runtime for little: one task that drives it, one timer of that task, and
//! word of when its socket has something. Sending and receiving are system calls of the endpoint's
//! own. Each of the methods here is called when an endpoint is opened or closed, or once for a
//! wake-up of its driver: never for a message.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use smt::runtime::Runtime;
//! # use std::error::Error;
//! # async fn client(trust: smt::Trust, smol: Arc<dyn Runtime>) -> Result<(), Box<dyn Error>> {
//! let client = smt::client(trust).runtime(smol).connect("db7").await?;
//! # Ok(())
//! # }
//! ```
//!
//! A whole runtime by `async-executor` and `async-io` is in `tests/other_runtimes.rs`: some sixty
//! lines.

#[cfg(feature = "tokio")]
mod tokio;

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(feature = "tokio")]
pub use self::tokio::TokioRuntime;
#[cfg(all(feature = "tokio", not(smt_model)))]
pub(crate) use self::tokio::is_in_block_on;
#[cfg(feature = "tokio")]
pub(crate) use self::tokio::{defer, is_on_worker};

/// A runtime that drives endpoints ([`Builder::runtime`](crate::Builder::runtime)).
///
/// Endpoints that share a runtime should share its [`Arc`](std::sync::Arc): at most half of its
/// workers spin for all of them together.
pub trait Runtime: Debug + Send + Sync + 'static {
    /// Runs this task until it ends. A runtime that ends drops it: then all that waits for its
    /// endpoint fails.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// A timer that goes off after this time; times of many years may be cut.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported): the runtime has no timers.
    fn timer(&self, after: Duration) -> io::Result<Pin<Box<dyn Timer>>>;

    /// Begins to watch a descriptor for reading. It is of Unix, does not block, and stays open as
    /// long as the watch. It need not be a socket: on Linux it is a set of epoll.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported): the runtime watches no descriptors. Others are
    /// the operating system's.
    fn watch(&self, descriptor: OwnedFd) -> io::Result<Box<dyn Watched>>;

    /// The number of threads that run tasks at the same time, from 1 on: 1 by default. Half of
    /// them spin at most ([`Builder::spin`](crate::Builder::spin)); one alone does not, and runs
    /// all tasks between two looks instead.
    fn workers(&self) -> usize {
        1
    }
}

/// A timer of a [`Runtime`].
pub trait Timer: Send {
    /// Sets it to go off after this time from now, also if it has gone off before.
    fn reset(self: Pin<&mut Self>, after: Duration);

    /// Ready once it has gone off. Else the task of this context is woken when it does.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()>;
}

/// A descriptor that a [`Runtime`] watches.
pub trait Watched: Send {
    /// Ready if the descriptor has become readable since it was ready last, or since the watch
    /// began. Else the task of this context is woken when it does. To be ready too often costs a
    /// look, and does no harm; whether the descriptor is still readable need not be told again.
    ///
    /// # Errors
    /// The runtime shuts down, or does not watch any more: the endpoint ends.
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}
