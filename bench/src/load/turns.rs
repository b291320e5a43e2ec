// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One thread with many calls in progress: it begins calls, then takes a turn, which sends all that
//! is ready in as few system calls as the peer can, and takes all that has come.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Arrivals, Callers, FINISH, Group, Tally, check};
use crate::failure::Failure;
use crate::frame;

/// A client that its owner drives.
pub(crate) trait Exchange {
    /// Connections; calls name theirs.
    fn connections(&self) -> usize;

    /// Begins a call. Its `number` is that of no call in progress.
    fn begin(&mut self, connection: usize, number: u32, request: &Bytes) -> Result<(), Failure>;

    /// Sends what is ready, waits for at most `wait`, and adds `(number, reply's length)` of calls
    /// that have ended.
    fn turn(&mut self, wait: Duration, ended: &mut Vec<(u32, usize)>) -> Result<(), Failure>;
}

/// The callers of one thread.
pub(crate) struct Turns<E> {
    exchange: E,
    /// The connection that the next call takes.
    connection: usize,
    callers: usize,
}

impl<E: Exchange> Turns<E> {
    /// Keeps `callers` calls in progress at once.
    pub(crate) fn new(exchange: E, callers: usize) -> Self {
        Self { exchange, connection: 0, callers }
    }

    fn begin(&mut self, number: u32, request: &Bytes) -> Result<(), Failure> {
        self.connection = (self.connection + 1) % self.exchange.connections();
        self.exchange.begin(self.connection, number, request)
    }
}

/// Whose turn it is, and since when.
struct Caller {
    group: usize,
    since: Instant,
}

impl<E: Exchange> Callers for Turns<E> {
    fn closed(&mut self, groups: &[Group], duration: Duration) -> Result<Vec<Tally>, Failure> {
        let requests: Vec<Bytes> = groups.iter().map(Group::message).collect();
        let empty = groups.iter().map(|_| Tally::new());
        let mut tallies = empty.collect::<Result<Vec<_>, _>>()?;
        let began = Instant::now();
        let mut callers = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let caller = || Caller { group: number, since: began };
            callers.extend(std::iter::repeat_with(caller).take(group.callers));
        }
        for (number, caller) in callers.iter().enumerate() {
            self.begin(number as u32, &requests[caller.group])?;
        }
        let (mut in_progress, mut ended) = (callers.len(), Vec::new());
        while in_progress > 0 {
            self.exchange.turn(WAIT, &mut ended)?;
            let now = Instant::now();
            for (number, length) in ended.drain(..) {
                let caller = &mut callers[number as usize];
                check(length, groups[caller.group].reply)?;
                tallies[caller.group].record(now - caller.since);
                caller.since = now;
                if now - began < duration {
                    let group = caller.group;
                    self.begin(number, &requests[group])?;
                } else {
                    in_progress -= 1;
                }
            }
            if now - began > duration + FINISH {
                return Err(Failure::new(format!("{in_progress} calls have not ended")));
            }
        }
        tallies.iter_mut().for_each(|tally| tally.end(began));
        Ok(tallies)
    }

    fn open(&mut self, size: u32, mut arrivals: Arrivals) -> Result<Tally, Failure> {
        let request = frame::request(size, size);
        let (began, limit) = (arrivals.began(), arrivals.limit());
        let mut tally = Tally::new()?;
        let mut due_at = vec![began; self.callers];
        let mut idle: Vec<u32> = (0..self.callers as u32).collect();
        let (mut waiting, mut ended) = (VecDeque::new(), Vec::new());
        let mut next = arrivals.next();
        loop {
            let now = Instant::now();
            while let Some(due) = next.filter(|due| *due <= now) {
                waiting.push_back(due);
                next = arrivals.next();
            }
            while let (Some(number), Some(due)) = (idle.last().copied(), waiting.front().copied()) {
                idle.pop();
                waiting.pop_front();
                due_at[number as usize] = due;
                self.begin(number, &request)?;
            }
            let is_all_done = idle.len() == self.callers && waiting.is_empty();
            if next.is_none() && (is_all_done || now > limit) {
                break;
            }
            // Busy, as the other kinds of callers are: a sleep would end late.
            self.exchange.turn(Duration::ZERO, &mut ended)?;
            let now = Instant::now();
            for (number, length) in ended.drain(..) {
                check(length, size)?;
                tally.record_until(due_at[number as usize], now, limit);
                idle.push(number);
            }
        }
        let in_progress = (0..self.callers as u32).filter(|number| !idle.contains(number));
        let in_progress = in_progress.map(|number| due_at[number as usize]);
        for due in in_progress.chain(waiting) {
            tally.record_unfinished(due, limit);
        }
        tally.end(began);
        Ok(tally)
    }
}

/// A turn in which nothing comes ends after this time.
const WAIT: Duration = Duration::from_millis(100);
