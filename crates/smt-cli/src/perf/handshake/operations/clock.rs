// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When the parts of a handshake began and ended, for one thread.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A part that the TLS library leaves to its cryptographic provider, or asks its user for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operation {
    KeyGeneration,
    Agreement,
    Derivation,
    Signing,
    /// The server looks for its certificate: the client's hello is read.
    Resolution,
    Decoding,
    ChainVerification,
    SignatureVerification,
}

/// One of them, when it ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    operation: Operation,
    begin: Instant,
    end: Instant,
}

/// One side's work between two flights.
#[derive(Debug)]
pub(super) struct Step {
    begin: Instant,
    end: Instant,
    events: Vec<Event>,
}

thread_local! {
    static EVENTS: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

/// Does an operation, and remembers when.
pub(super) fn timed<T>(operation: Operation, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let end = Instant::now();
    EVENTS.with_borrow_mut(|events| {
        events.push(Event { operation, begin, end });
    });
    result
}

/// Does one side's work between two flights.
pub(super) fn step<T>(work: impl FnOnce() -> T) -> (T, Step) {
    EVENTS.take();
    let begin = Instant::now();
    let result = work();
    let end = Instant::now();
    let events = EVENTS.take();
    (result, Step { begin, end, events })
}

impl Step {
    pub(super) fn total(&self) -> Duration {
        self.end - self.begin
    }

    /// All operations of a kind.
    pub(super) fn of(&self, operation: Operation) -> Duration {
        self.sum(|event| event.operation == operation)
    }

    /// Those of a kind that ended before another kind began for the first time.
    pub(super) fn of_before(&self, operation: Operation, other: Operation) -> Duration {
        let limit = self.first(other).map_or(self.end, |event| event.begin);
        self.sum(|event| event.operation == operation && event.end <= limit)
    }

    /// From the beginning to the first of a kind.
    pub(super) fn until(&self, operation: Operation) -> Duration {
        let first = self.first(operation);
        first.map_or(Duration::ZERO, |event| event.begin - self.begin)
    }

    /// From the end of the first of one kind to the beginning of the first of another.
    pub(super) fn between(&self, one: Operation, other: Operation) -> Duration {
        let both = self.first(one).zip(self.first(other));
        both.map_or(Duration::ZERO, |(one, other)| other.begin.saturating_duration_since(one.end))
    }

    /// From the end of the first of a kind on.
    pub(super) fn since(&self, operation: Operation) -> Duration {
        let first = self.first(operation);
        first.map_or(Duration::ZERO, |event| self.end - event.end)
    }

    fn first(&self, operation: Operation) -> Option<&Event> {
        self.events.iter().find(|event| event.operation == operation)
    }

    fn sum(&self, is_counted: impl Fn(&Event) -> bool) -> Duration {
        let counted = self.events.iter().filter(|event| is_counted(event));
        counted.map(|event| event.end - event.begin).sum()
    }
}
