// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open endpoint: its lock, its carrier, and who drives it. The one who waits drives.
//!
//! *Threads* (`threads`): the first thread that waits leads: it receives for all, and serves the others; when it leaves,
//! one of them leads on. An unloaded call is one send and one receive, in the caller's thread. While nobody waits, the
//! caretaker looks in now and then (`caretaker`).
//!
//! *Futures* (`leader`): a future that `block_on` polls leads in place, as a thread does. Else one task of the runtime
//! leads (`driver`), or a thread of the endpoint's own (`io_thread`), and while nobody looks the runtime watches the
//! socket. Messages whose senders were told of something together leave when the last of them has taken that (`turn`).
//!
//! A change is made with the lock held; sending and waking come after, without it ([`Hub::change`]).

mod answers;
mod caretaker;
mod changes;
#[cfg(feature = "tokio")]
pub(crate) mod driver;
mod ending;
#[cfg(feature = "tokio")]
pub(crate) mod leader;
mod receiving;
mod threads;
mod waking;
#[cfg(feature = "tokio")]
pub(crate) mod watch;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
#[cfg(feature = "tokio")]
use std::task::{Context, Poll};
use std::time::Duration;

use smt_carrier::Carrier;
use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use smt_io::Process;
use smt_proto::{CloseCode, RpcId, Time};

use caretaker::take_care;
use threads::Lead;
use waking::DeferredWakes;

use crate::accept_queue::AcceptQueue;
use crate::answer_queue::AnswerQueue;
use crate::clock::Clock;
use crate::core::Core;
use crate::driver_signal::DriverSignal;
use crate::error::OpenError;
use crate::spin::Spin;
use crate::statistics::Statistics;
use crate::sync::{Mutex, thread};
use crate::turn::Turn;

/// An open endpoint.
pub(crate) struct Hub {
    core: Mutex<Core>,
    turn: Arc<Turn>,
    answers: AnswerQueue,
    accepted: Arc<AcceptQueue>,
    lead: Mutex<Lead>,
    local_address: SocketAddr,
    clock: Clock,
    span: tracing::Span,
    receiver: Mutex<Receiver>,
    caretaker: OnceLock<thread::Thread>,
    /// Where it was opened.
    process: Process,
    /// Wakes whoever drives for tasks; threads have no use for it.
    driver: Option<DriverSignal>,
    /// Tasks that are woken together run on several workers.
    has_workers: bool,
    deferred: DeferredWakes,
}

/// What receiving needs; only the leader has it.
pub(crate) struct Receiver {
    /// Until the endpoint is shut down.
    carrier: Option<Arc<dyn Carrier>>,
    buffer: Vec<u8>,
    spin: Spin,
    #[cfg(feature = "tokio")]
    looks: leader::Looks,
}

/// What every handle of an endpoint shares: when the last one goes, the endpoint closes.
pub(crate) struct Guard {
    hub: Arc<Hub>,
}

impl Hub {
    /// Opens an endpoint, and keeps it open as long as a handle is there.
    ///
    /// # Errors
    /// The system gives no thread for the caretaker.
    pub(crate) fn open(
        core: Core,
        carrier: Arc<dyn Carrier>,
        drive: Drive,
    ) -> Result<Arc<Guard>, OpenError> {
        let local_address = carrier.local_address();
        let receiver = Receiver {
            carrier: Some(carrier),
            buffer: vec![0; RECEIVE_BUFFER_BYTES],
            spin: Spin::new(drive.spin),
            #[cfg(feature = "tokio")]
            looks: leader::Looks::new(),
        };
        let is_for_threads = drive.by == DriveBy::Threads;
        let hub = Arc::new(Self {
            turn: Arc::clone(core.turn()),
            accepted: Arc::clone(core.accepted()),
            core: Mutex::new(core),
            answers: AnswerQueue::new(),
            lead: Mutex::new(Lead::default()),
            local_address,
            clock: drive.clock,
            span: drive.span,
            receiver: Mutex::new(receiver),
            caretaker: OnceLock::new(),
            process: Process::this(),
            driver: (!is_for_threads).then(DriverSignal::default),
            has_workers: drive.by == DriveBy::Workers,
            deferred: DeferredWakes::new(),
        });
        if is_for_threads {
            let weak = Arc::downgrade(&hub);
            let caretaker = thread::Builder::new().spawn(move || take_care(&weak));
            let caretaker = caretaker.map_err(|reason| OpenError::System {
                what: "starting the endpoint's thread",
                reason,
            })?;
            let _ = hub.caretaker.set(caretaker.thread().clone());
        }
        Ok(Arc::new(Guard { hub }))
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.look(|core| Statistics {
            protocol: core.endpoint.statistics(),
            socket: core.socket_statistics(),
            sessions: core.endpoint.sessions_len(),
            memory: core.endpoint.memory(),
        })
    }

    pub(crate) fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.raise();
        }
    }

    /// Ready when whoever drives was woken.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_raised(&self, context: &Context<'_>) -> Poll<()> {
        let signal = self.driver.as_ref();
        signal.map_or(Poll::Pending, |signal| signal.poll_raised(context))
    }

    /// Somebody has taken what it was told.
    pub(crate) fn taken(&self) {
        if self.turn.take(1) {
            self.wake_driver();
        }
    }

    /// Whether a request's caller still waits for its reply.
    pub(crate) fn is_wanted(&self, rpc: RpcId) -> bool {
        self.look(|core| core.endpoint.is_wanted(rpc))
    }
}

impl Guard {
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.hub.process.is_this() {
            // The sessions are the original's, and another thread of it may have held a lock.
            return;
        }
        self.hub.change(|core, now| {
            core.close();
            core.close_sessions(now, CloseCode::Done);
        });
        match self.hub.driver {
            Some(_) => self.hub.wake_driver(),
            None => self.hub.send_the_rest(),
        }
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_address", &self.hub.local_address())
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
}

/// The driver of an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(
    not(feature = "tokio"),
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
