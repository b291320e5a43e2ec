// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How quickly a replica catches up that was away, beside the rate of its group.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use smt_loopback::{Places, Running};
use smt_report::Table;

use super::REPLICAS;
use super::bft::Executed;
use super::device::{Attesting, Devices};
use super::figures::IN_PROGRESS;
use super::over_smt::{Clients, TICK};
use super::system::{Kind, Place, System};
use crate::Failure;
use crate::times::told;

/// Batches that the replica misses, of either size: fewer than its peers keep by default (4,096).
const MISSED: u64 = 3000;
/// A replica is up to date that has all batches but for so many, which are on their way.
const ON_THEIR_WAY: u64 = 4;
/// A replica that has not caught up after so long has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// Measures BFT without requests and under load, for batches of 1 and of 16.
pub(crate) fn catching_up() -> Result<Table, Failure> {
    let rows = [1, 16].map(|batch| Ok((format!("batch {batch}"), row(batch, MISSED)?)));
    let columns = [
        "two replicas, batches/s",
        "the third one",
        "beside the two",
        "under load: the two meanwhile",
        "the third one",
        "beside the two",
    ];
    Ok(Table {
        corner: "library".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.into_iter().collect::<Result<_, Failure>>()?,
    })
}

fn row(batch: usize, missed: u64) -> Result<Vec<String>, Failure> {
    let [idle, loaded] = [false, true].map(|is_loaded| Away::run(batch, missed, is_loaded));
    let (idle, loaded) = (idle?, loaded?);
    let share = |own: f64, of: f64| format!("{:.2}", own / of);
    Ok(vec![
        told(idle.before),
        told(idle.caught_up),
        share(idle.caught_up, idle.before),
        told(loaded.meanwhile),
        told(loaded.caught_up),
        share(loaded.caught_up, loaded.meanwhile),
    ])
}

/// Batches in a second.
struct Rates {
    /// The rate of two replicas before the third one comes.
    before: f64,
    /// The rate of two replicas until the third one has caught up.
    meanwhile: f64,
    /// The rate of the third one.
    caught_up: f64,
}

/// Two replicas with clients, and a third one that is away.
struct Away {
    place: Place,
    places: Places,
    replicas: Vec<Running<Failure>>,
    executed: [Executed; REPLICAS as usize],
}

impl Away {
    fn run(batch: usize, missed: u64, is_loaded: bool) -> Result<Rates, Failure> {
        let system = System { kind: Kind::Bft { batch }, attesting: Attesting::Library };
        let devices = Devices::start(system.attesting, REPLICAS)?;
        let place = system.place(&devices, IN_PROGRESS)?;
        let places = Places::make(REPLICAS)?;
        let mut own = Self { place, places, replicas: Vec::new(), executed: Default::default() };
        own.start(0)?;
        own.start(1)?;
        let mut clients = Clients::open(&own.place, &own.places, IN_PROGRESS)?;
        let begin = Instant::now();
        while own.has_executed(0) < missed {
            clients.run(u64::from(IN_PROGRESS) * 8)?;
        }
        let before = own.has_executed(0) as f64 / begin.elapsed().as_secs_f64();
        let (meanwhile, caught_up) = own.third_one(&mut clients, is_loaded)?;
        for it in own.replicas {
            it.end().map_err(|it| it.to_string())?;
        }
        Ok(Rates { before, meanwhile, caught_up })
    }

    fn start(&mut self, number: u32) -> Result<(), Failure> {
        let (place, executed) = (self.place.clone(), self.executed[number as usize].clone());
        let make = move || place.watched_machine(number, executed);
        self.replicas.push(Running::start(&self.places.replica(number), TICK, make)?);
        Ok(())
    }

    fn has_executed(&self, number: usize) -> u64 {
        self.executed[number].load(Ordering::Relaxed)
    }

    /// Starts the third replica, and waits until it has caught up. Returns batches in a second, of
    /// the others meanwhile and its own.
    fn third_one(&mut self, clients: &mut Clients, is_loaded: bool) -> Result<(f64, f64), Failure> {
        let (before, begin) = (self.has_executed(0), Instant::now());
        self.start(2)?;
        let [of_first, _, of_third] = &self.executed;
        let is_over = AtomicBool::new(false);
        let seconds = std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let seconds = until_caught_up(of_first, of_third, begin);
                is_over.store(true, Ordering::Relaxed);
                seconds
            });
            while is_loaded && !is_over.load(Ordering::Relaxed) {
                clients.run(u64::from(IN_PROGRESS) * 8)?;
            }
            watching.join().map_err(|_| Failure::from("the watching thread has panicked"))?
        })?;
        let rate = |it: u64| it as f64 / seconds;
        Ok((rate(self.has_executed(0) - before), rate(self.has_executed(2))))
    }
}

/// The seconds since `begin` when the third replica has all but the last batches of the first.
fn until_caught_up(first: &Executed, third: &Executed, begin: Instant) -> Result<f64, Failure> {
    loop {
        let (goal, done) = (first.load(Ordering::Relaxed), third.load(Ordering::Relaxed));
        if done + ON_THEIR_WAY >= goal {
            return Ok(begin.elapsed().as_secs_f64());
        }
        if begin.elapsed() > DEADLINE {
            return Err(format!("a replica has {done} of {goal} batches after a minute").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_replica_that_was_away_catches_up_without_requests_and_under_load() {
        for is_loaded in [false, true] {
            let rates = Away::run(8, 30, is_loaded).unwrap();
            assert!(rates.before > 0.0 && rates.caught_up > 0.0, "{is_loaded}");
        }
    }
}
