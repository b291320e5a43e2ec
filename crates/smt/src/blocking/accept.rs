// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of peers, for threads.

use std::sync::Arc;

use crate::driver::Guard;
use crate::message::{Incoming, Request};

/// The next message of a peer.
pub(super) fn accept(guard: &Arc<Guard>) -> Option<Incoming> {
    let mut ticket = None;
    let delivered =
        guard.driver().block_on(|state, now, waker| state.poll_accept(now, &mut ticket, waker))?;
    Some(Incoming::new(Arc::clone(guard), delivered))
}

/// The next request of a peer; one-way messages before it are dropped.
pub(super) fn accept_request(guard: &Arc<Guard>) -> Option<Request> {
    loop {
        match accept(guard)? {
            Incoming::Request(request) => return Some(request),
            Incoming::Message(message) => guard.driver().drop_message(message.peer().address),
        }
    }
}
