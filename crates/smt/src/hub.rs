// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open endpoint: its lock, its carrier, and who drives it.
//!
//! *Threads* ([`Hub::block_on`]): whoever waits drives. The first thread that waits leads: it receives for
//! all, and serves the others; when it leaves, one of them leads on. So an unloaded call is one send and one
//! receive, in the caller's thread. While nobody waits, the caretaker looks in now and then ([`take_care`]);
//! it also keeps the timers that are set while the leader already waits for longer.
//! *Tasks*: one task of the runtime drives (`asynchronous::driver`), and callers wait for it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use smt_carrier::{Carrier, ReceiveError, Received, Wait};
use smt_io::{Process, UdpCarrier};
use smt_proto::{CloseCode, Refused, RpcId, Time};
use smt_wire::AbortCode;

use crate::clock::Clock;
use crate::core::Core;
use crate::driver_signal::DriverSignal;
use crate::error::OpenError;
use crate::spin::Spin;
use crate::statistics::Statistics;

/// An open endpoint.
pub(crate) struct Hub {
    core: Mutex<Core>,
    lead: Mutex<Lead>,
    carrier: Arc<dyn Carrier>,
    udp: Option<Arc<UdpCarrier>>,
    clock: Clock,
    span: tracing::Span,
    receiver: Mutex<Receiver>,
    caretaker: OnceLock<Thread>,
    /// Where it was opened.
    process: Process,
    /// Wakes the driving task; threads have no use for it.
    driver: Option<DriverSignal>,
}

/// Who drives, and who waits to.
#[derive(Default)]
struct Lead {
    is_taken: bool,
    next_follower: u64,
    followers: BTreeMap<u64, Thread>,
    /// When somebody last led.
    last: Time,
    /// When timers are looked at next, if nothing comes: by the leader, or by the caretaker for it.
    until: Time,
}

/// What receiving needs; only the leader has it.
struct Receiver {
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
        udp: Option<Arc<UdpCarrier>>,
        drive: Drive,
    ) -> Result<Arc<Guard>, OpenError> {
        let receiver = Receiver {
            buffer: vec![0; RECEIVE_BUFFER_BYTES],
            spin: Spin::new(drive.spin),
        };
        let hub = Arc::new(Self {
            core: Mutex::new(core),
            lead: Mutex::new(Lead::default()),
            carrier,
            udp,
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
        self.carrier.local_address()
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let core = self.lock();
        Statistics {
            protocol: core.endpoint.statistics(),
            socket: self.udp.as_ref().map(|udp| udp.statistics()),
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

    /// Something is due, perhaps before the leader looks around: it cannot be woken while it receives.
    fn tell_caretaker(&self, due: Time) {
        let mut lead = self.lock_lead();
        if lead.is_taken {
            self.look_by(&mut lead, due);
        }
    }

    /// The caretaker looks around for the leader at `due`, unless somebody does before.
    fn look_by(&self, lead: &mut Lead, due: Time) {
        if due < lead.until {
            lead.until = due;
            self.caretaker.get().into_iter().for_each(Thread::unpark);
        }
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
        core.turn(now);
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

    pub(crate) fn reply(&self, rpc: RpcId, body: Bytes) -> Result<(), Refused> {
        self.change(|core, now| {
            let outcome = core.endpoint.reply(now, rpc, body);
            if matches!(outcome, Err(Refused::TooLarge { .. })) {
                // It waits for its answer, so this cannot be refused.
                let _ = core.endpoint.abort(now, rpc, AbortCode::ReplyTooLarge);
            }
            outcome
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

    /// Waits in this thread for `poll` to be ready, and drives meanwhile if nobody else does.
    pub(crate) fn block_on<T>(
        &self,
        mut poll: impl FnMut(&mut Core, Time, &Waker) -> Poll<T>,
    ) -> T {
        // Looks at the clock are felt in an unloaded call (docs/PERF.md): it is read when time has passed.
        let mut now = self.now();
        THREAD_WAKER.with(|waker| {
            loop {
                let poll = |core: &mut Core, now| poll(core, now, waker);
                let look = |core: &Core, now, polled| match polled {
                    Poll::Ready(result) => Ok(result),
                    Poll::Pending => Err(core.idle_time(now)),
                };
                let idle = match self.change_at(now, poll, look) {
                    Ok(result) => {
                        self.hand_over();
                        return result;
                    }
                    Err(idle) => idle,
                };
                if !self.process.is_this() {
                    // All has ended with the look at it: the next one finds that.
                    std::thread::yield_now();
                    continue;
                }
                if self.driver.is_some() {
                    // A task drives, and wakes this thread.
                    std::thread::park_timeout(WAIT_MAX);
                    now = self.now();
                    continue;
                }
                let wait = idle.map_or(LEAD_MAX, |idle| idle.min(LEAD_MAX));
                now = match self.follow_or_lead(now + wait) {
                    Some(follower) => {
                        std::thread::park_timeout(WAIT_MAX);
                        self.stop_following(follower);
                        self.now()
                    }
                    None => self.lead_once(wait),
                }
            }
        })
    }

    /// Receives one batch without waiting; whether there was one.
    pub(crate) fn receive_now(&self) -> bool {
        if !self.process.is_this() {
            // What comes to the socket is for the original.
            return false;
        }
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let received = self.carrier.receive(&mut receiver.buffer, Wait::Never);
        // A carrier that does not work any more never has nothing.
        let is_some = matches!(
            received,
            Ok(Some(_)) | Err(ReceiveError::Unreachable { .. })
        );
        self.take_in(self.now(), received, &mut receiver.buffer);
        is_some
    }

    /// Receives one batch, waiting for at most `wait`; when that was.
    fn lead_once(&self, wait: Duration) -> Time {
        let leading = Leading::of(self);
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let Receiver { buffer, spin } = &mut *receiver;
        let received = spin.receive(self.carrier.as_ref(), buffer, wait);
        if matches!(received, Err(ReceiveError::Other { .. })) {
            // If it goes on like this, it shall not take a core.
            std::thread::sleep(wait.min(RECEIVE_AGAIN));
        }
        let now = self.now();
        let has_told = self.take_in(now, received, buffer);
        drop(receiver);
        let is_crowded = leading.end(now);
        if has_told && is_crowded {
            // Whoever was woken would else wait for a core until this thread's time slice ends, some milliseconds.
            std::thread::yield_now();
        }
        now
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
        core.turn(now);
        core.told() > told
    }

    /// Takes the lead (`None`), or a place among the followers. The next timer is at `due`.
    fn follow_or_lead(&self, due: Time) -> Option<u64> {
        let mut lead = self.lock_lead();
        if !std::mem::replace(&mut lead.is_taken, true) {
            lead.until = due;
            return None;
        }
        self.look_by(&mut lead, due);
        let follower = lead.next_follower;
        lead.next_follower += 1;
        lead.followers.insert(follower, std::thread::current());
        Some(follower)
    }

    fn stop_following(&self, follower: u64) {
        self.lock_lead().followers.remove(&follower);
    }

    /// This thread has what it waited for: somebody else leads on.
    fn hand_over(&self) {
        if !self.process.is_this() {
            return;
        }
        let lead = self.lock_lead();
        if !lead.is_taken
            && let Some((_, thread)) = lead.followers.first_key_value()
        {
            thread.unpark();
        }
    }

    fn lock_lead(&self) -> MutexGuard<'_, Lead> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One look of the caretaker; how long it may sleep after it.
    fn look_after(&self) -> Duration {
        {
            let (mut lead, now) = (self.lock_lead(), self.now());
            if lead.is_taken && lead.until <= now {
                drop(lead);
                return self.look_for_leader(now);
            }
            if lead.is_taken {
                return lead.until.since(now).min(CARE_AFTER);
            }
            if now.since(lead.last) < CARE_AFTER {
                return CARE_AFTER;
            }
            lead.is_taken = true;
        }
        let leading = Leading::of(self);
        while self.receive_now() {}
        let mut core = self.lock();
        let now = core.advance(self.now());
        core.fire_timers(now, false);
        core.turn(now);
        let idle = core.idle_time(now);
        drop(core);
        drop(leading);
        self.hand_over();
        idle.map_or(CARE_IDLE, |idle| idle.clamp(CARE_AFTER, CARE_IDLE))
    }

    /// Does what is due while the leader waits for longer; how long nothing more is.
    fn look_for_leader(&self, now: Time) -> Duration {
        let _entered = self.span.enter();
        // From here on others tell of what they make due, also while this looks.
        self.lock_lead().until = now + WAIT_MAX;
        let mut core = self.lock();
        let now = core.advance(now);
        core.fire_timers(now, false);
        core.turn(now);
        let wait = core
            .idle_time(now)
            .map_or(WAIT_MAX, |idle| idle.min(WAIT_MAX));
        drop(core);
        let mut lead = self.lock_lead();
        lead.until = lead.until.min(now + wait);
        lead.until.since(self.now()).min(CARE_AFTER)
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
        self.hub.change(|core, _| {
            core.close();
            core.endpoint.close_all(CloseCode::Done);
        });
        self.hub.wake_driver();
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

/// Looks in while no thread waits: answers NEED_ACK, repeats CANCEL, notices CLOSE. It never waits for the
/// socket, so that it is never in a caller's way.
fn take_care(hub: &Weak<Hub>) {
    let mut sleep = CARE_AFTER;
    loop {
        std::thread::park_timeout(sleep);
        let Some(hub) = hub.upgrade() else { return };
        if hub.lock().is_closed {
            return;
        }
        sleep = hub.look_after();
    }
}

/// Wakes a thread.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// Made once per thread, so that a call allocates nothing for it.
    static THREAD_WAKER: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
}

/// The lead, given back also if the carrier panics: else nobody would receive any more.
struct Leading<'a> {
    hub: &'a Hub,
    is_over: bool,
}

impl<'a> Leading<'a> {
    /// Who has taken it.
    fn of(hub: &'a Hub) -> Self {
        Self {
            hub,
            is_over: false,
        }
    }

    /// Gives it back; whether many follow. The lock is taken once, since an unloaded call comes by here.
    fn end(mut self, now: Time) -> bool {
        self.is_over = true;
        let mut lead = self.hub.lock_lead();
        lead.is_taken = false;
        lead.last = now;
        lead.followers.len() >= CROWD
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.hub.lock_lead().is_taken = false;
        }
    }
}

/// A carrier that fails is asked again after this time.
const RECEIVE_AGAIN: Duration = Duration::from_millis(1);
/// A leader looks around at least this often. It cannot be woken while it receives, so what another thread does
/// to what it waits for (a shutdown, a close) it learns at most so late.
const LEAD_MAX: Duration = Duration::from_millis(250);
/// Who only waits looks around at least this often; nobody relies on it.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// So many waiting threads make a leader yield to those it has woken. With few it would lose more than they gain: to
/// the scheduler a thread that yields has had its slice.
const CROWD: usize = 6;
/// The caretaker leaves an endpoint alone that was driven this recently.
const CARE_AFTER: Duration = Duration::from_millis(20);
/// The caretaker's longest sleep.
const CARE_IDLE: Duration = Duration::from_millis(250);
