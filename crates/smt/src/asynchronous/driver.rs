// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The task that drives an endpoint on tokio, while no future does: receives, sends what has gathered, and does what is due.
//!
//! 1. It looks. While that pays it spins: in place where other workers run all other tasks meanwhile, else by yielding.
//! 2. Something has come: it sleeps until those whom it has told have taken what they were told, and looks again: what they
//!    have sent leaves together.
//! 3. Nothing comes: it lets the runtime watch the socket, and sleeps until that tells, until a timer, or until it is woken.
//!    While a future leads it sees every millisecond whether that still looks.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use smt_io::{SocketWatch, UdpCarrier};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use super::spinners::Spinners;
use crate::driver_signal::DriverSignal;
use crate::hub::leader::{LED_MAX, Leader, LedBy};
use crate::hub::{Guard, Hub};

/// Starts the task. It ends when the endpoint's last handle is gone.
pub(crate) fn spawn_driver(guard: &Guard, udp: &Arc<UdpCarrier>) -> io::Result<()> {
    let watch = SocketWatch::new(Arc::clone(udp))?;
    let watched = Watched::new(watch.descriptors()?)?;
    let hub = Arc::clone(guard.hub());
    hub.set_watch(watch);
    let driver = Driver {
        watched,
        alarm: Alarm::default(),
        spinners: Spinners::of(&Handle::current()),
        spinning_since: None,
        hub: Driven(hub),
    };
    tokio::spawn(driver.drive());
    Ok(())
}

/// What the runtime watches for an endpoint.
struct Watched(Vec<AsyncFd<OwnedFd>>);

impl Watched {
    #[expect(
        deprecated,
        reason = "unsound for what changes its descriptor, which an `OwnedFd` does not; what replaces it is unsafe"
    )]
    fn new(descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let descriptors = descriptors.into_iter().map(AsyncFd::new);
        descriptors.collect::<io::Result<_>>().map(Self)
    }

    /// Ready when there may be something to receive; an error when the runtime shuts down.
    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for descriptor in &self.0 {
            if let Poll::Ready(ready) = descriptor.poll_read_ready(context) {
                // Before the look: what comes after it is told again.
                ready?.clear_ready();
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    }
}

/// The task. Fields are dropped in their order: whoever is told that nobody drives may bind the address.
struct Driver {
    watched: Watched,
    alarm: Alarm,
    spinners: Spinners,
    /// When it began to spin by yielding.
    spinning_since: Option<Instant>,
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

/// What a look comes to.
enum Outcome {
    /// Something has come, and those who were told run now.
    Came,
    /// Nothing yet: it is worth looking again.
    Again,
    /// A future looks.
    Led,
    /// Nothing comes, and the runtime watches.
    Quiet,
}

impl Driver {
    async fn drive(mut self) {
        let hub = Arc::clone(&self.hub.0);
        let Some(signal) = hub.driver() else { return };
        loop {
            match self.look(&hub) {
                Outcome::Came => self.await_turn(&hub, signal).await,
                Outcome::Again => {
                    std::thread::yield_now();
                    tokio::task::yield_now().await;
                }
                outcome => {
                    let is_led = matches!(outcome, Outcome::Led);
                    if self.sleep(&hub, signal, is_led).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn look(&mut self, hub: &Hub) -> Outcome {
        let Some(mut leader) = hub.try_lead(LedBy::Driver) else {
            return Outcome::Led;
        };
        if leader.is_led_by_future() {
            return Outcome::Led;
        }
        if !self.spinners.is_possible() {
            return self.spin_by_yields(leader);
        }
        let has_come = match self.spinners.begin() {
            Some(_spinner) => leader.spin(),
            None => leader.look(),
        };
        if has_come {
            return Outcome::Came;
        }
        leader.stop();
        Outcome::Quiet
    }

    /// One look, which is repeated when all other tasks have run.
    fn spin_by_yields(&mut self, mut leader: Leader<'_>) -> Outcome {
        let has_come = leader.look();
        let now = Instant::now();
        if has_come {
            if let Some(since) = self.spinning_since.take() {
                leader.come(since, now);
            }
            return Outcome::Came;
        }
        let may_spin = match self.spinning_since {
            Some(since) => now - since < leader.bound(),
            None => !leader.has_told_many() && leader.begin(now),
        };
        if may_spin {
            self.spinning_since.get_or_insert(now);
            return Outcome::Again;
        }
        if let Some(since) = self.spinning_since.take() {
            leader.miss(now - since);
        }
        leader.stop();
        Outcome::Quiet
    }

    /// Sleeps until those who were told have taken what they were told.
    async fn await_turn(&mut self, hub: &Hub, signal: &DriverSignal) {
        // One alone runs before this task does.
        if hub.untaken() > 1 && hub.await_turn() {
            let until = tokio::time::Instant::now() + LED_MAX;
            while hub.is_turn_awaited() && tokio::time::Instant::now() < until {
                tokio::select! {
                    biased;
                    () = poll_fn(|context| signal.poll_raised(context)) => {}
                    () = self.alarm.at(until) => {}
                }
            }
            if hub.is_turn_awaited() {
                hub.give_up_turn();
            }
            if !hub.has_handlers() {
                return;
            }
        }
        // Those who are ready to run do so first.
        tokio::task::yield_now().await;
    }

    /// Sleeps until something comes or is due, or somebody wakes this task.
    ///
    /// # Errors
    /// The endpoint has ended, or the runtime shuts down.
    async fn sleep(&mut self, hub: &Hub, signal: &DriverSignal, is_led: bool) -> Result<(), Over> {
        let idle = {
            let (mut core, now) = (hub.lock(), hub.now());
            if core.is_over(now) {
                return Err(Over);
            }
            core.sleep(now, if is_led { LED_MAX } else { IDLE_MAX })
        };
        let until = tokio::time::Instant::now() + idle;
        let has_come = tokio::select! {
            biased;
            ready = poll_fn(|context| self.watched.poll_ready(context)) => {
                ready.map_err(|_| Over)?;
                true
            }
            () = poll_fn(|context| signal.poll_raised(context)) => false,
            () = self.alarm.at(until) => {
                hub.fire_due();
                false
            }
        };
        if let Some(mut leader) = hub.try_lead(LedBy::Driver) {
            leader.wake(has_come);
        }
        Ok(())
    }
}

/// Nothing is left to be driven.
struct Over;

/// One timer, which is set again only where it would come too late: to set one may wake another worker, which then sets
/// its own sleep by it.
#[derive(Default)]
struct Alarm(Option<Pin<Box<tokio::time::Sleep>>>);

impl Alarm {
    /// Ready at this time, perhaps before.
    async fn at(&mut self, due: tokio::time::Instant) {
        // Made in the task: a runtime without timers panics there, and ends what it cannot drive.
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.is_elapsed() || sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        sleep.as_mut().await;
    }
}

/// Sleep without any timer.
const IDLE_MAX: Duration = Duration::from_secs(3600);
