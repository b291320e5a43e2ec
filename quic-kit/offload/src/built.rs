// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The connection for which quinn has built packets on this thread that nothing has sealed yet.
//!
//! quinn builds the packets of a buffer and offers it to its socket at once, on one thread: the
//! buffer must have all of them. One that is offered later, since the socket was full, is found by
//! its marks.

use std::cell::RefCell;
use std::sync::Arc;

use crate::link::Link;

thread_local! {
    static BUILT: RefCell<Option<Arc<Link>>> = const { RefCell::new(None) };
}

/// quinn has left a packet of this connection unsealed.
pub(crate) fn note(link: &Arc<Link>) {
    BUILT.with_borrow_mut(|built| {
        if !built.as_ref().is_some_and(|of| Arc::ptr_eq(of, link)) {
            *built = Some(Arc::clone(link));
        }
    });
}

/// The connection, once.
pub(crate) fn take() -> Option<Arc<Link>> {
    BUILT.take()
}
