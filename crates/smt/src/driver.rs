// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open endpoint: its lock, its carrier, and the thread or task that drives it. The one that
//! waits drives.
//!
//! *Threads* (`threads`): the first thread that waits leads: it receives for all, and serves the
//! others; when it leaves, one of them leads on. An unloaded call is one send and one receive, in
//! the caller's thread. While no thread waits, the background thread looks in now and then
//! (`background_thread`).
//!
//! *Futures* (`leader`): a future that `block_on` polls leads in place, as a thread does. Else one
//! task of the runtime leads (`background`), or a thread of the endpoint's own (`io_thread`), and
//! while nobody looks the runtime watches the socket. Messages whose senders were told of something
//! together leave when the last of them has taken that (`turn`).
//!
//! A change is made with the lock held; sending and waking come after, without it
//! ([`Driver::change`]).

mod answers;
#[cfg(feature = "async")]
pub(crate) mod background;
mod background_thread;
mod changes;
mod ending;
mod judging;
#[cfg(feature = "async")]
pub(crate) mod leader;
mod receiving;
mod threads;
mod waking;
#[cfg(feature = "async")]
pub(crate) mod watch;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
#[cfg(feature = "async")]
use std::task::{Context, Poll};
use std::time::Duration;

use smt_carrier::Carrier;
use smt_io::Process;
use smt_proto::{CloseCode, RpcId, Time};

use background_thread::look_after;
use threads::Lead;
use waking::DeferredWakes;

use crate::accept_queue::AcceptQueue;
use crate::answer_queue::AnswerQueue;
use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::distrust::HasPeers;
use crate::driver_signal::DriverSignal;
use crate::endpoint_state::EndpointState;
use crate::error::OpenError;
#[cfg(feature = "async")]
use crate::runtime::Runtime;
use crate::spin::Spin;
use crate::statistics::Statistics;
use crate::sync::{Mutex, thread};
use crate::turn::Turn;

/// An open endpoint.
pub(crate) struct Driver {
    state: Mutex<EndpointState>,
    turn: Arc<Turn>,
    answers: AnswerQueue,
    accepted: Arc<AcceptQueue>,
    lead: Mutex<Lead>,
    local_address: SocketAddr,
    clock: Clock,
    span: tracing::Span,
    credentials: Credentials,
    receiver: Mutex<Receiver>,
    background_thread: OnceLock<thread::Thread>,
    /// Where it was opened.
    process: Process,
    /// Wakes the driver of tasks; threads have no use for it.
    background: Option<DriverSignal>,
    /// Tasks that are woken together run on several workers.
    has_workers: bool,
    deferred: DeferredWakes,
    /// The runtime of an endpoint for tasks.
    #[cfg(feature = "async")]
    runtime: Option<Arc<dyn Runtime>>,
    /// One-way messages that an acceptor of requests has dropped.
    messages_dropped: AtomicU64,
}

/// The parts that receiving needs; only the leader has them.
pub(crate) struct Receiver {
    /// Until the endpoint is shut down.
    carrier: Option<Arc<dyn Carrier>>,
    spin: Spin,
    #[cfg(feature = "async")]
    looks: leader::Looks,
}

/// Shared by all handles of an endpoint. The endpoint closes when the last handle is dropped.
pub(crate) struct Guard {
    driver: Arc<Driver>,
}

impl Driver {
    /// Opens an endpoint, and keeps it open as long as a handle is there.
    ///
    /// # Errors
    /// The system gives no thread for the background thread.
    pub(crate) fn open(
        state: EndpointState,
        carrier: Arc<dyn Carrier>,
        drive: Drive,
    ) -> Result<Arc<Guard>, OpenError> {
        let local_address = carrier.local_address();
        let receiver = Receiver {
            carrier: Some(carrier),
            spin: Spin::new(drive.spin),
            #[cfg(feature = "async")]
            looks: leader::Looks::new(),
        };
        let is_for_threads = drive.by == DriveBy::Threads;
        let driver = Arc::new(Self {
            turn: Arc::clone(state.turn()),
            accepted: Arc::clone(state.accepted()),
            state: Mutex::new(state),
            answers: AnswerQueue::new(),
            lead: Mutex::new(Lead::default()),
            local_address,
            clock: drive.clock,
            span: drive.span,
            credentials: drive.credentials,
            receiver: Mutex::new(receiver),
            background_thread: OnceLock::new(),
            process: Process::this(),
            background: (!is_for_threads).then(DriverSignal::default),
            has_workers: drive.by == DriveBy::Workers,
            deferred: DeferredWakes::new(),
            #[cfg(feature = "async")]
            runtime: drive.runtime,
            messages_dropped: AtomicU64::new(0),
        });
        driver.look(|state| state.set_driver(Arc::downgrade(&driver)));
        let weak: Weak<dyn HasPeers> = Arc::<Self>::downgrade(&driver);
        driver.credentials.opened(&weak);
        if is_for_threads {
            let weak = Arc::downgrade(&driver);
            let background_thread = thread::Builder::new().spawn(move || look_after(&weak));
            let background_thread = background_thread.map_err(|reason| OpenError::System {
                what: "starting the endpoint's thread",
                reason,
            })?;
            let _ = driver.background_thread.set(background_thread.thread().clone());
        }
        Ok(Arc::new(Guard { driver }))
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.look(|state| Statistics {
            protocol: state.endpoint.statistics(),
            socket: state.socket_statistics(),
            sessions: state.endpoint.sessions_len(),
            memory: state.endpoint.memory(),
            messages_dropped: self.messages_dropped.load(Ordering::Relaxed),
            messages_refused: state.messages_refused,
            clients_refused: state.clients_refused(),
            sessions_refused: state.sessions_refused,
            sessions_distrusted: state.sessions_distrusted,
        })
    }

    /// The credentials that may be replaced.
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A one-way message has come to an acceptor that takes requests alone.
    pub(crate) fn drop_message(&self, peer: SocketAddr) {
        if self.messages_dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            let _entered = self.span.enter();
            tracing::warn!(%peer, "a one-way message was dropped: this endpoint accepts requests alone (further ones are counted)");
        }
    }

    pub(crate) fn wake_driver(&self) {
        if let Some(background) = &self.background {
            background.raise();
        }
    }

    /// The runtime of an endpoint for tasks.
    #[cfg(feature = "async")]
    pub(crate) fn runtime(&self) -> Option<&Arc<dyn Runtime>> {
        self.runtime.as_ref()
    }

    /// Ready when the driver was woken.
    #[cfg(feature = "async")]
    pub(crate) fn poll_raised(&self, context: &Context<'_>) -> Poll<()> {
        let signal = self.background.as_ref();
        signal.map_or(Poll::Pending, |signal| signal.poll_raised(context))
    }

    /// Takes in that a task has taken what it was told of.
    pub(crate) fn taken(&self) {
        if self.turn.take(1) {
            self.wake_driver();
        }
    }

    /// Whether a request's caller still waits for its reply.
    pub(crate) fn is_wanted(&self, rpc: RpcId) -> bool {
        self.look(|state| state.endpoint.is_wanted(rpc))
    }
}

impl Guard {
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.driver.process.is_this() {
            // The sessions are the original's, and another thread of it may have held a lock.
            return;
        }
        self.driver.change(|state, now| {
            state.close();
            state.close_sessions(now, CloseCode::Done);
        });
        match self.driver.background {
            Some(_) => self.driver.wake_driver(),
            None => self.driver.send_the_rest(),
        }
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_address", &self.driver.local_address())
            .finish_non_exhaustive()
    }
}

/// How an endpoint is driven.
pub(crate) struct Drive {
    pub(crate) clock: Clock,
    pub(crate) by: DriveBy,
    pub(crate) spin: Duration,
    /// Named by the role: everything that is logged on the way stands in it.
    pub(crate) span: tracing::Span,
    /// Those that may be replaced.
    pub(crate) credentials: Credentials,
    /// The runtime of an endpoint for tasks.
    #[cfg(feature = "async")]
    pub(crate) runtime: Option<Arc<dyn Runtime>>,
}

/// The driver of an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(
    not(feature = "async"),
    expect(dead_code, reason = "without a runtime there are threads alone")
)]
pub(crate) enum DriveBy {
    /// The threads that wait.
    Threads,
    /// The thread of a runtime that has one, which runs all tasks in turn.
    OneWorker,
    /// The threads of a runtime that has several.
    Workers,
    /// A thread of the endpoint's own; tasks run on any runtime.
    IoThread,
}
