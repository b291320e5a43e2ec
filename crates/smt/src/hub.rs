// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open endpoint: its lock, its carrier, and who drives it.
//!
//! *Threads* (`threads`): whoever waits drives. The first thread that waits leads: it receives for all, and
//! serves the others; when it leaves, one of them leads on. So an unloaded call is one send and one receive, in
//! the caller's thread. While nobody waits, the caretaker looks in now and then (`caretaker`).
//! *Tasks*: one task of the runtime drives (`asynchronous::driver`), and callers wait for it.

mod caretaker;
mod ending;
mod threads;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use smt_carrier::{Carrier, ReceiveError, Received, Wait};
use smt_io::Process;
use smt_proto::{CloseCode, Refused, RpcId, Time};
use smt_wire::AbortCode;

use caretaker::take_care;
use threads::Lead;

use crate::clock::Clock;
use crate::core::Core;
use crate::driver_signal::DriverSignal;
use crate::error::{ErrorKind, OpenError};
use crate::spin::Spin;
use crate::statistics::Statistics;

/// An open endpoint.
pub(crate) struct Hub {
    core: Mutex<Core>,
    lead: Mutex<Lead>,
    local_address: SocketAddr,
    clock: Clock,
    span: tracing::Span,
    receiver: Mutex<Receiver>,
    caretaker: OnceLock<Thread>,
    /// Where it was opened.
    process: Process,
    /// Wakes the driving task; threads have no use for it.
    driver: Option<DriverSignal>,
}

/// What receiving needs; only the leader has it.
struct Receiver {
    /// Until the endpoint is shut down.
    carrier: Option<Arc<dyn Carrier>>,
    buffer: Vec<u8>,
    spin: Spin,
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
        };
        let hub = Arc::new(Self {
            core: Mutex::new(core),
            lead: Mutex::new(Lead::default()),
            local_address,
            clock: drive.clock,
            span: drive.span,
            receiver: Mutex::new(receiver),
            caretaker: OnceLock::new(),
            process: Process::this(),
            driver: drive.is_task.then(DriverSignal::default),
        });
        if !drive.is_task {
            let weak = Arc::downgrade(&hub);
            let caretaker = std::thread::Builder::new().spawn(move || take_care(&weak));
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
        let core = self.lock();
        Statistics {
            protocol: core.endpoint.statistics(),
            socket: core.socket_statistics(),
            sessions: core.endpoint.sessions_len(),
            memory: core.endpoint.memory(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        if !self.process.is_this() {
            return self.lock_copy();
        }
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state in a copy of the process (`fork`): it is given up, since the keys are the original's.
    ///
    /// # Panics
    /// If another thread was using the endpoint when the process was copied: here is no such thread, and the lock would
    /// be held for ever.
    fn lock_copy(&self) -> MutexGuard<'_, Core> {
        let mut core = match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!(
                "this process is a copy (fork) of one that was using the endpoint at that moment; open another one here"
            ),
        };
        core.leave_to_original();
        core
    }

    /// Makes a change, and sends and tells what comes of it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Core, Time) -> T) -> T {
        if self.driver.is_some() {
            return self.change_at(self.now(), change, |_, _, result| result);
        }
        let look = |core: &Core, now, result| (result, core.idle_time(now).map(|idle| now + idle));
        let (result, due) = self.change_at(self.now(), change, look);
        if let Some(due) = due.filter(|_| self.process.is_this()) {
            self.tell_caretaker(due);
        }
        result
    }

    /// The same at a time that was read before, and a last look at what has become of it.
    fn change_at<T, U>(
        &self,
        now: Time,
        change: impl FnOnce(&mut Core, Time) -> T,
        look: impl FnOnce(&Core, Time, T) -> U,
    ) -> U {
        let _entered = self.span.enter();
        let mut core = self.lock();
        let now = core.advance(now);
        // The driving task sleeps until what was the next timer when it last looked; but not while it has corked.
        let sleeps = self.driver.is_some() && !core.is_corked();
        let before = if sleeps { core.idle_time(now) } else { None };
        let result = change(&mut core, now);
        core.turn(now, || self.now());
        let is_earlier = sleeps
            && core
                .idle_time(now)
                .is_some_and(|after| before.is_none_or(|before| after < before));
        let seen = look(&core, now, result);
        drop(core);
        if is_earlier {
            self.wake_driver();
        }
        seen
    }

    pub(crate) fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.raise();
        }
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn driver(&self) -> Option<&DriverSignal> {
        self.driver.as_ref()
    }

    pub(crate) fn reply(&self, rpc: RpcId, body: Bytes) -> Result<(), ErrorKind> {
        self.change(|core, now| {
            let outcome = core.endpoint.reply(now, rpc, body);
            if matches!(outcome, Err(Refused::TooLarge { .. })) {
                // It waits for its answer, so this cannot be refused.
                let _ = core.endpoint.abort(now, rpc, AbortCode::ReplyTooLarge);
            }
            outcome.map_err(|refused| match core.why_shut_down() {
                Some(why) => why.into(),
                None => refused.into(),
            })
        })
    }

    /// Ends a request without a reply. It may have been given up by its caller: then there is nothing to end.
    pub(crate) fn abort(&self, rpc: RpcId, code: AbortCode) {
        self.change(|core, now| {
            let _ = core.endpoint.abort(now, rpc, code);
        });
    }

    /// Whether a request's caller still waits for its reply.
    pub(crate) fn is_wanted(&self, rpc: RpcId) -> bool {
        self.lock().endpoint.is_wanted(rpc)
    }

    /// Receives one batch without waiting; whether there was one.
    pub(crate) fn receive_now(&self) -> bool {
        if !self.process.is_this() {
            // What comes to the socket is for the original.
            return false;
        }
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let Receiver {
            carrier, buffer, ..
        } = &mut *receiver;
        let Some(carrier) = carrier else {
            return false;
        };
        let received = carrier.receive(buffer, Wait::Never);
        // A carrier that does not work any more never has nothing.
        let is_some = matches!(
            received,
            Ok(Some(_)) | Err(ReceiveError::Unreachable { .. })
        );
        self.take_in(self.now(), received, buffer);
        is_some
    }

    /// Takes what was received. Whether somebody was told of something.
    fn take_in(
        &self,
        now: Time,
        received: Result<Option<Received>, ReceiveError>,
        buffer: &mut [u8],
    ) -> bool {
        let _entered = self.span.enter();
        let mut core = self.lock();
        let now = core.advance(now);
        let told = core.told();
        let has_come = matches!(received, Ok(Some(_)));
        match received {
            Ok(None) => {}
            Ok(Some(received)) => {
                for datagram in received.segments(buffer) {
                    core.endpoint.handle_datagram(now, received.path, datagram);
                }
            }
            Err(ReceiveError::Unreachable {
                remote: Some(remote),
            }) => core.endpoint.handle_unreachable(now, remote),
            Err(error) => tracing::trace!(?error, "receiving failed once"),
        }
        core.fire_timers(now, has_come);
        core.turn(now, || self.now());
        core.told() > told
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
    pub(crate) is_task: bool,
    pub(crate) spin: Duration,
    /// Named by the role: everything that is logged on the way stands in it.
    pub(crate) span: tracing::Span,
}
