// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of correct clients in simulations.

use crate::client::Completion;
use crate::client_table::first_number;

/// Requests in progress of a process that has several.
const SEVERAL: usize = 4;

/// The client of a system.
pub trait SystemClient {
    /// Something that it wants sent.
    type Output;

    /// Begins a request.
    fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64>;
    /// Accepts a message.
    fn receive(&mut self, bytes: &[u8]) -> Option<Completion>;
    /// Time passes.
    fn tick(&mut self);
    /// All that is to be sent.
    fn outputs(&mut self) -> Vec<Self::Output>;
}

/// A process of a client.
pub struct Process<C> {
    /// The client's number.
    pub number: u32,
    /// How many requests it has begun.
    pub begun: usize,
    /// The client.
    pub client: C,
    in_progress: usize,
    in_progress_max: usize,
}

/// The processes of clients: one of each, with one request at a time; or two of each, whose
/// sessions have several requests in progress. `new` makes one of a client and its last number.
pub fn processes<C>(
    clients: &[u32],
    are_several: bool,
    new: impl Fn(u32, u64) -> C,
) -> Vec<Process<C>> {
    let process = |number, session| Process {
        number,
        client: new(number, first_number(session)),
        begun: 0,
        in_progress: 0,
        in_progress_max: if are_several { SEVERAL } else { 1 },
    };
    let sessions = if are_several { 2 } else { 1 };
    (0..sessions).flat_map(|session| clients.iter().map(move |it| process(*it, session))).collect()
}

impl<C: SystemClient> Process<C> {
    /// Begins a request, if it may have one more, and returns its number.
    pub fn begin(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        if self.in_progress == self.in_progress_max {
            return None;
        }
        let number = self.client.submit(nonce, operation)?;
        (self.begun, self.in_progress) = (self.begun + 1, self.in_progress + 1);
        Some(number)
    }

    /// Whether a request waits for its end.
    pub fn is_waiting(&self) -> bool {
        self.in_progress > 0
    }

    /// Accepts a message, and returns the end of a request.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        let completion = self.client.receive(bytes)?;
        self.in_progress -= 1;
        Some(completion)
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.client.tick();
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<C::Output> {
        self.client.outputs()
    }
}
