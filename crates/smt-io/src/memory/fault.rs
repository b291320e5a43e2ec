// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of a datagram in memory, as the caller's rule decides.

use super::mailbox::Datagram;
use smt_carrier::Ecn;
use std::fmt;

/// The fate of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// It is held back until this many later datagrams of the same sender have passed (so the last
    /// ones of all may never arrive). 0 is the same as [`Fault::Deliver`].
    Delay(usize),
    /// It arrives.
    Deliver,
    /// It arrives with the mark of congestion (CE of ECN).
    Mark,
    /// No more than this many bytes of its beginning arrive, marked as trimmed.
    Trim(usize),
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
}

/// Decides about a datagram, and may change its bytes.
type Rule = dyn FnMut(&mut Vec<u8>) -> Fault + Send;

/// The datagrams of one sender, passing its rule in order.
pub(super) struct FaultLine {
    rule: Box<Rule>,
    /// Datagrams held back, each with how many more are to pass before it.
    held: Vec<(usize, Datagram)>,
}

impl FaultLine {
    pub(super) fn new(rule: impl FnMut(&mut Vec<u8>) -> Fault + Send + 'static) -> Self {
        Self { rule: Box::new(rule), held: Vec::new() }
    }

    /// Applies the rule to each of `datagrams` and gives those that go on, in their new order.
    pub(super) fn pass(&mut self, datagrams: impl Iterator<Item = Datagram>) -> Vec<Datagram> {
        let mut passed = Vec::new();
        for mut datagram in datagrams {
            let fault = (self.rule)(&mut datagram.bytes);
            // Those held back before this one have seen one more pass by; they follow it.
            let mut due = self.release();
            match fault {
                Fault::Deliver | Fault::Delay(0) => passed.push(datagram),
                Fault::Mark => {
                    datagram.marks.ecn = Ecn::Ce;
                    passed.push(datagram);
                }
                Fault::Trim(length) => {
                    datagram.bytes.truncate(length);
                    datagram.marks.trimmed = true;
                    passed.push(datagram);
                }
                Fault::Drop => {}
                Fault::Duplicate => passed.extend([datagram.clone(), datagram]),
                Fault::Delay(count) => self.held.push((count, datagram)),
            }
            passed.append(&mut due);
        }
        passed
    }

    /// Counts one datagram as passed and gives the held ones that waited for it.
    fn release(&mut self) -> Vec<Datagram> {
        for (count, _) in &mut self.held {
            *count -= 1;
        }
        let due = self.held.extract_if(.., |(count, _)| *count == 0);
        due.map(|(_, datagram)| datagram).collect()
    }
}

impl fmt::Debug for FaultLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FaultLine").field("held", &self.held.len()).finish_non_exhaustive()
    }
}
