// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection of a host, seen from the device.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use smt_device_client::{Answer, AppendOnly, Corrupt, Reader, SharedMemory, Writer, answer_to};

/// After how many answers the host sees them, while more are made.
const ANSWERS_SHOWN: usize = 16;

/// The device's side of a connection. The host owns the memory and may write anything into it.
pub struct Session {
    memory: Arc<SharedMemory>,
    requests: Reader,
    answers: Writer,
    /// Private memory: a request is copied here before anything in it is looked at.
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Session {
    /// Makes the memory of a connection, and a file descriptor for the host.
    ///
    /// # Errors
    /// The operating system has no memory or no file descriptor left.
    pub fn create() -> io::Result<(Self, OwnedFd)> {
        let (memory, file) = SharedMemory::create()?;
        let memory = Arc::new(memory);
        let requests = Reader::of_requests(memory.clone());
        let answers = Writer::of_answers(memory.clone());
        Ok((Self { memory, requests, answers, request: Vec::new(), answer: Vec::new() }, file))
    }

    /// The memory.
    #[must_use]
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// Has a device answer `most` requests at most, and returns how many there were. A request
    /// whose answer would not fit stays where it is.
    ///
    /// # Errors
    /// The host breaks the protocol of the rings. The connection ends.
    pub fn serve(&mut self, device: &mut impl AppendOnly, most: usize) -> Result<usize, Corrupt> {
        let mut served = 0;
        while served < most && self.answers.has_room(Answer::LEN_MAX)? {
            let Some(tag) = self.requests.next(&mut self.request)? else {
                break;
            };
            answer_to(device, &self.request, &mut self.answer);
            // There is room: it was asked for before the request was taken.
            self.answers.push(tag, &self.answer)?;
            served += 1;
            if served.is_multiple_of(ANSWERS_SHOWN) {
                self.publish();
            }
        }
        self.publish();
        Ok(served)
    }

    /// Whether there is a request that can be answered.
    ///
    /// # Errors
    /// Those of [`Session::serve`].
    pub fn has_work(&mut self) -> Result<bool, Corrupt> {
        Ok(!self.requests.is_empty()? && self.answers.has_room(Answer::LEN_MAX)?)
    }

    fn publish(&self) {
        self.requests.publish();
        self.answers.publish();
    }
}
