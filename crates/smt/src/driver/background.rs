// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drives an endpoint that tasks use, while no future leads: receives, sends the corked messages,
//! and does what is due.
//!
//! 1. It looks. While that pays it spins: in place where others run all tasks meanwhile, else by
//!    yielding.
//! 2. Something has come: it sleeps until those whom it has told have taken what they were told,
//!    and looks again: what they have sent leaves together.
//! 3. Nothing comes: the watch is on, and it sleeps until that tells, until a timer, or until it is
//!    woken. While a future leads it sees every millisecond whether that still looks.
//!
//! It has [`DriverServices`] of what runs it: a task of a runtime (`asynchronous::task_driver`) or
//! a thread of the endpoint's own (`io_thread`).

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use smt_proto::Time;

use super::Driver;
use super::leader::{LED_MAX, Leader, LedBy};
use crate::sync::thread;

/// The services that a driver needs of its task or thread.
pub(crate) trait DriverServices: Send {
    /// How the driver may spin now; what is returned is kept as long as it does.
    fn spinning(&self) -> Spinning<impl Sized>;

    /// Ready when there may be something to receive.
    ///
    /// # Errors
    /// The runtime shuts down.
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Sets the alarm to go off after this time, or sooner.
    fn set_alarm(&mut self, time: Duration);

    /// Ready when the alarm has gone off.
    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Lets all tasks run that are ready to.
    fn yield_now(&mut self) -> impl Future<Output = ()> + Send;
}

/// How a driver may spin.
pub(crate) enum Spinning<T> {
    /// In place: others run all tasks meanwhile.
    InPlace(T),
    /// By yielding: nobody else runs tasks.
    ByYields,
    /// Not at all: enough others do.
    Never,
}

/// The driver of one endpoint. Fields are dropped in their order: whoever is told that nobody
/// drives may bind the address.
pub(crate) struct BackgroundDriver<S> {
    services: S,
    /// When it began to spin by yielding.
    spinning_since: Option<Time>,
    driver: Driven,
}

/// An endpoint that is driven. Its runtime may end before the endpoint: then nobody would ever wake
/// those who wait.
struct Driven(Arc<Driver>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The outcome of a look.
enum Outcome {
    /// Something has come, and those who were told run now.
    Came,
    /// Nothing yet: it is worth looking again.
    Again,
    /// A future looks.
    Led,
    /// Nothing comes, and the watch is on.
    Quiet,
}

/// Why a sleep is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wakeup {
    Readable,
    Raised,
    Elapsed,
}

/// Nothing is left to be driven.
struct Over;

impl<S: DriverServices> BackgroundDriver<S> {
    pub(crate) fn new(driver: Arc<Driver>, services: S) -> Self {
        Self { services, spinning_since: None, driver: Driven(driver) }
    }

    /// Drives until the endpoint's last handle is gone, or the runtime shuts down.
    pub(crate) async fn drive(mut self) {
        let driver = Arc::clone(&self.driver.0);
        loop {
            let outcome = self.look(&driver);
            let ended = match outcome {
                Outcome::Came => self.await_turn(&driver).await,
                Outcome::Again => {
                    thread::yield_now();
                    self.services.yield_now().await;
                    Ok(())
                }
                Outcome::Led => self.sleep(&driver, LED_MAX).await,
                Outcome::Quiet => self.sleep(&driver, IDLE_MAX).await,
            };
            if ended.is_err() {
                return;
            }
        }
    }

    fn look(&mut self, driver: &Driver) -> Outcome {
        let Some(mut leader) = driver.try_lead(LedBy::BackgroundDriver) else {
            return Outcome::Led;
        };
        if leader.is_led_by_future() {
            return Outcome::Led;
        }
        let has_come = match self.services.spinning() {
            Spinning::InPlace(_spinner) => leader.spin(),
            Spinning::Never => leader.look(),
            Spinning::ByYields => {
                return spin_by_yields(&mut self.spinning_since, leader, driver.now());
            }
        };
        if has_come {
            return Outcome::Came;
        }
        leader.stop();
        Outcome::Quiet
    }

    /// Sleeps until those who were told have taken what they were told.
    async fn await_turn(&mut self, driver: &Driver) -> Result<(), Over> {
        // One alone runs before this driver does.
        if driver.untaken() > 1 && driver.await_turn() {
            let until = driver.now() + LED_MAX;
            while driver.is_turn_awaited() {
                let left = until.since(driver.now());
                if left.is_zero() {
                    driver.give_up_turn();
                } else {
                    // The alarm may have been set to go off sooner.
                    self.next(driver, Await::Turn, left).await?;
                }
            }
            if !driver.has_handlers() {
                return Ok(());
            }
        }
        // Those who are ready to run do so first.
        self.services.yield_now().await;
        Ok(())
    }

    /// Sleeps until something comes or is due, or a thread wakes this driver.
    ///
    /// # Errors
    /// The endpoint has ended, or the runtime shuts down.
    async fn sleep(&mut self, driver: &Driver, longest: Duration) -> Result<(), Over> {
        let idle = driver.look(|state| {
            let now = driver.now();
            (!state.is_over(now)).then(|| state.sleep(now, longest))
        });
        let idle = idle.ok_or(Over)?;
        let wakeup = self.next(driver, Await::Anything, idle).await?;
        if wakeup == Wakeup::Elapsed {
            driver.fire_due();
        }
        if let Some(mut leader) = driver.try_lead(LedBy::BackgroundDriver) {
            leader.wake(wakeup == Wakeup::Readable);
        }
        Ok(())
    }

    /// The next of what is awaited, for this time at most.
    async fn next(&mut self, driver: &Driver, what: Await, time: Duration) -> Result<Wakeup, Over> {
        let services = &mut self.services;
        services.set_alarm(time);
        poll_fn(|context| {
            if what == Await::Anything
                && let Poll::Ready(readable) = services.poll_readable(context)
            {
                return Poll::Ready(readable.map(|()| Wakeup::Readable).map_err(|_| Over));
            }
            if driver.poll_raised(context).is_ready() {
                return Poll::Ready(Ok(Wakeup::Raised));
            }
            let elapsed = services.poll_alarm(context);
            elapsed.map(|()| Ok(Wakeup::Elapsed))
        })
        .await
    }
}

/// The events that end a sleep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Await {
    Turn,
    Anything,
}

/// One look, which is repeated when all tasks have run. `since`: when that began.
fn spin_by_yields(since: &mut Option<Time>, mut leader: Leader<'_>, now: Time) -> Outcome {
    if leader.look() {
        if let Some(since) = since.take() {
            leader.come(since, now);
        }
        return Outcome::Came;
    }
    let may_spin = match *since {
        Some(since) => now.since(since) < leader.bound(),
        None => !leader.has_told_many() && leader.begin(now),
    };
    if may_spin {
        since.get_or_insert(now);
        return Outcome::Again;
    }
    if let Some(since) = since.take() {
        leader.miss(now.since(since));
    }
    leader.stop();
    Outcome::Quiet
}

/// Sleep without any timer.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(3600);
