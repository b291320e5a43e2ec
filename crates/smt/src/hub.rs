// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open endpoint: its lock, its carrier, and who drives it. Whoever waits drives.
//!
//! *Threads* (`threads`): the first thread that waits leads: it receives for all, and serves the others; when it leaves,
//! one of them leads on. So an unloaded call is one send and one receive, in the caller's thread. While nobody waits, the
//! caretaker looks in now and then (`caretaker`).
//!
//! *Futures* (`leader`): a future that `block_on` polls leads in place, as a thread does. Else one task of the runtime
//! leads (`driver`), or a thread of the endpoint's own (`io_thread`), and while nobody looks the runtime watches the
//! socket. What several send who were told together leaves when the last of them has taken what it was told (`turn`).
//!
//! A change is made with the lock held; sending and waking come after, without it ([`Hub::change`]).

mod caretaker;
#[cfg(feature = "tokio")]
pub(crate) mod driver;
mod ending;
#[cfg(feature = "tokio")]
pub(crate) mod leader;
mod threads;
mod waking;
#[cfg(feature = "tokio")]
pub(crate) mod watch;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
#[cfg(feature = "tokio")]
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use smt_carrier::{Carrier, ReceiveError, Received, SendError, Wait};
use smt_io::Process;
use smt_proto::{CloseCode, RpcId, Time};
use smt_wire::AbortCode;

use caretaker::take_care;
use threads::Lead;
use waking::DeferredWakes;

use crate::accept_queue::AcceptQueue;
use crate::answer_queue::{Answer, AnswerQueue};
use crate::clock::Clock;
use crate::core::{Core, Woken};
use crate::driver_signal::DriverSignal;
use crate::error::{ErrorKind, OpenError};
#[cfg(feature = "tokio")]
use crate::message::Arrival;
use crate::outbox::Batch;
use crate::spin::Spin;
use crate::statistics::Statistics;
use crate::sync::{Mutex, MutexGuard, PoisonError, TryLockError, thread};
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

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        if !self.process.is_this() {
            return self.lock_copy();
        }
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if nobody has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Core>> {
        if !self.process.is_this() {
            return Some(self.lock_copy());
        }
        match self.core.try_lock() {
            Ok(core) => Some(core),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
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

    /// Looks at the state, or changes what nobody is to be told of. Not by the bare lock: of answers that are left meanwhile
    /// nobody else would know.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut Core) -> T) -> T {
        let seen = look(&mut self.lock());
        self.take_answers();
        seen
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
        self.change_in(self.lock(), now, change, look)
    }

    /// The same for whoever has the lock.
    fn change_in<'a, T, U>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        now: Time,
        change: impl FnOnce(&mut Core, Time) -> T,
        look: impl FnOnce(&Core, Time, T) -> U,
    ) -> U {
        let _entered = self.span.enter();
        let now = core.advance(now);
        let result = change(&mut core, now);
        let (core, now) = self.send(core, now);
        let seen = look(&core, now, result);
        self.unlock(core, now);
        seen
    }

    /// Tells what has happened, and sends what is to leave now; the lock is not held while the carrier sends.
    fn send<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        mut now: Time,
    ) -> (MutexGuard<'a, Core>, Time) {
        for answer in self.answers.take() {
            // A caller that has given up, or whose session has ended, needs none.
            let _ = core.answer(now, answer);
        }
        core.tell_all();
        if !core.sends_now(now) {
            if core.has_output(now) {
                self.turn.gather();
            }
            return (core, now);
        }
        while let Some(batch) = core.next_batch(now) {
            drop(core);
            let sending = Sending::new(self, batch);
            let outcome = sending.send();
            core = self.lock();
            now = core.advance(self.now());
            let has_room = sending.put_back(&mut core, outcome);
            // Sending changes the core, too: what is told of is told before others may take the lock.
            core.tell_all();
            if !has_room {
                break;
            }
        }
        core.cork.has_sent(now);
        (core, now)
    }

    /// Gives the lock back, wakes those who are to be woken, and takes answers that were left meanwhile.
    fn unlock(&self, core: MutexGuard<'_, Core>, now: Time) {
        self.give_back(core, now, Self::wake);
        self.take_answers();
    }

    /// Gives the lock back, and wakes those who are to be woken.
    fn give_back(
        &self,
        mut core: MutexGuard<'_, Core>,
        now: Time,
        wake: impl FnOnce(&Self, Woken),
    ) {
        let woken = core.take_woken();
        let wakes_driver =
            self.driver.is_some() && (std::mem::take(&mut core.ends_turn) | core.oversleeps(now));
        drop(core);
        wake(self, woken);
        if wakes_driver {
            self.wake_driver();
        }
    }

    /// Takes answers that were left while the lock was taken, unless it is taken again: then its holder finds them.
    fn take_answers(&self) {
        if self.driver.is_none() {
            return;
        }
        while !self.answers.is_empty() {
            let Some(mut core) = self.try_lock() else {
                return;
            };
            let now = core.advance(self.now());
            let (core, now) = self.send(core, now);
            self.give_back(core, now, Self::wake);
        }
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

    /// A message that another acceptor has taken for this one.
    #[cfg(feature = "tokio")]
    pub(crate) fn accept_queued(&self) -> Option<Arrival> {
        self.accepted.pop()
    }

    /// Replies to a request whose caller takes at most so many bytes. If a task finds the lock taken, the reply waits for
    /// it, and not the task: then nothing is known yet of a caller that has given up.
    pub(crate) fn reply(&self, rpc: RpcId, body: Bytes, limit: u32) -> Result<(), ErrorKind> {
        let is_too_large = body.len() > limit as usize;
        let reply = Answer::Reply(rpc, body);
        match self.driver.is_some() && !is_too_large {
            true => self.answer_or_queue(reply),
            false => self.change(|core, now| core.answer(now, reply)),
        }
    }

    /// Ends a request without a reply. It may have been given up by its caller: then there is nothing to end.
    pub(crate) fn abort(&self, rpc: RpcId, code: AbortCode) {
        let abort = Answer::Abort(rpc, code);
        // What could be wrong with it is of no interest.
        let _ = match self.driver {
            Some(_) => self.answer_or_queue(abort),
            None => self.change(|core, now| core.answer(now, abort)),
        };
    }

    fn answer_or_queue(&self, answer: Answer) -> Result<(), ErrorKind> {
        let Some(core) = self.try_lock() else {
            return match self.answers.push(answer) {
                Ok(()) => {
                    self.take_answers();
                    Ok(())
                }
                // The endpoint is shut down, and says so.
                Err(answer) => self.change(|core, now| core.answer(now, answer)),
            };
        };
        let answer = |core: &mut Core, now| core.answer(now, answer);
        self.change_in(core, self.now(), answer, |_, _, outcome| outcome)
    }

    /// Whether a request's caller still waits for its reply.
    pub(crate) fn is_wanted(&self, rpc: RpcId) -> bool {
        self.look(|core| core.endpoint.is_wanted(rpc))
    }

    /// Receives one batch without waiting; whether there was one.
    pub(crate) fn receive_now(&self) -> bool {
        self.receive_one(&mut self.lock_receiver()).is_some()
    }

    fn lock_receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives one batch without waiting; its bytes, if there was one.
    fn receive_one(&self, receiver: &mut Receiver) -> Option<usize> {
        if !self.process.is_this() {
            // What comes to the socket is for the original.
            return None;
        }
        let Receiver {
            carrier, buffer, ..
        } = receiver;
        let received = carrier.as_ref()?.receive(buffer, Wait::Never);
        let bytes = match &received {
            Ok(Some(received)) => Some(received.length),
            Err(ReceiveError::Unreachable { .. }) => Some(0),
            // A carrier that does not work any more never has anything.
            Ok(None) | Err(_) => None,
        };
        if bytes.is_some() || !matches!(received, Ok(None)) {
            self.take_in(self.now(), received, buffer);
        }
        bytes
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
        core.tell_all();
        let has_told = core.has_woken();
        if self.driver.is_some() && self.turn.untaken() > 0 && !core.is_closed {
            // Whoever was told runs soon, and the leader again after them.
            core.cork.put_in(now);
        }
        let (core, now) = self.send(core, now);
        self.give_back(core, now, Self::wake_together);
        self.take_answers();
        has_told
    }
}

/// A batch on its way, which comes back also if the carrier panics: else nobody would send any more.
struct Sending<'a> {
    hub: &'a Hub,
    batch: Option<Batch>,
}

impl<'a> Sending<'a> {
    fn new(hub: &'a Hub, batch: Batch) -> Self {
        Self {
            hub,
            batch: Some(batch),
        }
    }

    fn send(&self) -> Result<(), SendError> {
        self.batch.as_ref().map_or(Ok(()), Batch::send)
    }

    /// Whether there may be room for the next one.
    fn put_back(mut self, core: &mut Core, outcome: Result<(), SendError>) -> bool {
        let batch = self.batch.take();
        batch.is_some_and(|batch| core.put_back(batch, outcome))
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            let mut core = self.hub.lock();
            core.put_back(batch, Ok(()));
            let now = core.advance(self.hub.now());
            self.hub.give_back(core, now, Hub::wake);
        }
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

/// Who drives an endpoint.
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
